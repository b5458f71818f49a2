"""`fairlane detect`: what goes to standard output, what to standard error, and the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rich_click")

from click.testing import CliRunner

from fairlane.cli.detect import detect
from fairlane.detect.local import Unreadable, inspect_path


@pytest.fixture
def letter(tmp_path: Path) -> str:
    path = tmp_path / "letter.png"  # the content decides, not the name
    path.write_text("手机13812345678", "utf-8")
    return str(path)


def test_json_is_one_object_a_file(letter: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    result = CliRunner().invoke(detect, ["--json", letter, str(empty)])
    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "path": letter,
            "kind": "text",
            "findings": [
                {"type": "PHONE", "value": "138******78", "start": 2, "end": 13, "rule": "phone.cn"}
            ],
        },
        {"path": str(empty), "kind": "text", "findings": []},
    ]


def test_reveal_shows_the_value_and_standard_input_is_a_path() -> None:
    result = CliRunner().invoke(detect, ["--json", "--reveal", "-"], input="a@example.com\n")
    report = json.loads(result.stdout)
    assert report["path"] == "-"
    assert report["findings"][0]["value"] == "a@example.com"


def test_a_table_for_people(letter: str) -> None:
    result = CliRunner().invoke(detect, [letter])
    assert result.exit_code == 0
    assert "138******78" in result.stdout
    assert "13812345678" not in result.stdout


def test_brackets_are_data_not_markup(tmp_path: Path) -> None:
    path = tmp_path / "[red].txt"
    path.write_text("user@[192.168.0.1]", "utf-8")
    result = CliRunner().invoke(detect, ["--reveal", str(path)])
    assert "[red].txt (text): 1 found" in result.stdout
    assert "user@[192.168.0.1]" in result.stdout


def test_an_unreadable_path_is_told_and_the_others_are_searched(letter: str) -> None:
    result = CliRunner().invoke(detect, ["--json", "no/such/file", letter])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["path"] == letter
    assert "no/such/file: No such file" in result.stderr


def test_wrong_usage() -> None:
    assert CliRunner().invoke(detect, []).exit_code == 2
    assert CliRunner().invoke(detect, ["--keywords", "no/such/list", "-"]).exit_code == 2


def test_a_users_list(letter: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("手机", "utf-8")
    result = CliRunner().invoke(detect, ["--json", "--keywords", str(words), letter])
    types = [finding["type"] for finding in json.loads(result.stdout)["findings"]]
    assert types == ["KEYWORD", "PHONE"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "letter"
    path.write_text("请拨打电话13812345678", encoding)
    (finding,) = inspect_path(str(path), reveal=True)["findings"]
    assert (finding["value"], finding["start"]) == ("13812345678", 5)


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"\xff\xff\xff", b"\x89PNG\r\n\x1a\nrest"])
def test_what_is_neither_text_nor_image_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match="thing"):
        inspect_path(str(path))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="directory"):
        inspect_path(str(tmp_path))


def test_a_closed_standard_input_is_a_file_that_cannot_be_read() -> None:
    command = [sys.executable, "-m", "fairlane", "detect", "-"]
    done = subprocess.run(command, stdin=None, capture_output=True, text=True, close_fds=True,
                          preexec_fn=lambda: os.close(0))  # fmt: skip
    assert done.returncode == 1
    assert "standard input is closed" in done.stderr
    assert "Traceback" not in done.stderr
