"""The examples, and those of the pages, run as they are and say what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fairlane
from fairlane.embedded import server_program
from fairlane.errors import StoreUnavailable

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _needs_the_embedded_server() -> None:
    try:
        server_program()
    except StoreUnavailable as error:
        pytest.skip(str(error))


def python(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, which takes temporary files too; return what it prints."""
    path = os.pathsep.join([str(Path(fairlane.__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": path, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def walkthrough(temporary: Path, *options: str) -> str:
    """Run the walkthrough with a temporary folder of its own; return what it prints."""
    return python(temporary, str(ROOT / "examples" / "walkthrough.py"), *options)


def example(page: str, pattern: str) -> str:
    """Return the one piece of a page that a pattern with one group finds."""
    (found,) = re.findall(pattern, (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def test_the_walkthrough_shows_both_presets_and_leaves_nothing_behind(tmp_path: Path) -> None:
    said = walkthrough(tmp_path)
    seed, default = said.split("preset default:")
    for line in (
        "A       3        15.2   15.2     main  1",
        "A is next (all three tie; it came first); lock token 1, batch 10",
        "B is next; A and C have waited 30 s or more, so its batch is 1",
        "B       1        45.2   45.2     main  backoff",
        "5      480 s    pending",
        "6      -        dead",
        "C enqueues 250 tasks: 201 accepted, 49 refused",
        "A enqueues a task: refused (device_full)",
        "(G > 5000) ∨ (|O| > 0) = False: G = 201, |O| = 0",
    ):
        assert line in seed
    for line in (
        "leased: A A C C",
        "A's task after the sweep: pending, 1 lease lost",
        "done meanwhile: B#1",
        "C enqueues 250 tasks: 200 accepted, 50 refused",
        "two free places go to: C A",
    ):
        assert line in default
    assert list(tmp_path.iterdir()) == []
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in processes.stdout


def test_the_walkthrough_speaks_chinese(tmp_path: Path) -> None:
    said = walkthrough(tmp_path, "--preset", "seed", "--lang", "zh")
    assert "选中设备 B；A 和 C 已等待超过 30 秒，批大小为 1" in said
    assert "[10] 最终调度集状态" in said
    assert "preset" not in said


def test_the_first_program_of_the_readme_runs(tmp_path: Path) -> None:
    program = example("README.md", r"```python\n(from fairlane import Client, .*?)```")
    assert re.fullmatch(r"[0-9a-f-]{36} pending\n", python(tmp_path, "-c", program))


def test_contributing_shows_how_to_read_the_library(tmp_path: Path) -> None:
    program = example("CONTRIBUTING.md", r"\.venv/bin/python -c '([^']+)'")
    said = python(tmp_path, "-c", program)
    assert re.match(r"#!lua name=fairlane_[0-9a-f]{16}\n", said)
    assert "redis.register_function" in said
