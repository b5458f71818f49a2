"""Files by their SHA-256: stored once, found again, and no name leads out of the folder."""

from __future__ import annotations

import hashlib
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.errors import FileNotKnown
from fairlane.files import FileStore


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.binary(max_size=1_000))
def test_a_name_is_the_hash_of_the_content(files: FileStore, content: bytes) -> None:
    name = files.put(content)
    assert name == hashlib.sha256(content).hexdigest()
    assert files.get(name) == content


def test_storing_twice_stores_once(files: FileStore, tmp_path: Path) -> None:
    name = files.put(b"same")
    (stored,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    touched = stored.stat().st_mtime_ns
    assert files.put(b"same") == name
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [stored]
    assert stored.stat().st_mtime_ns == touched


def test_only_the_owner_reads_them(files: FileStore, tmp_path: Path) -> None:
    files.put(b"private")
    (stored,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert stored.stat().st_mode & 0o077 == 0
    assert stored.parent.stat().st_mode & 0o077 == 0


def test_an_unknown_file(files: FileStore) -> None:
    with pytest.raises(FileNotKnown, match="not stored here"):
        files.get("0" * 64)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "../../../../etc/passwd",
        "/etc/passwd",
        "0" * 63,
        "0" * 65,
        "A" * 64,
        "0" * 63 + "\n",
        "0" * 62 + "/.",
        "\x00" * 64,
        "g" * 64,
        "x" * 100_000,
        None,
        7,
        b"0" * 64,
        Path("/etc/passwd"),
    ],
    ids=lambda name: ascii(name)[:24],
)
def test_a_hostile_name(files: FileStore, name: Any) -> None:
    with pytest.raises(FileNotKnown) as raised:
        files.get(name)
    assert len(str(raised.value)) < 250


def test_a_broken_write_leaves_nothing_behind(files: FileStore, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            files.put(b"x" * 1_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files.get(files.put(b"x" * 1_000)) == b"x" * 1_000
