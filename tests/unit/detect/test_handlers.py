"""The two handlers: what data they take, what they answer, what they never show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.detect import configure, engine, setup
from fairlane.detect.engine import Line
from fairlane.detect.ocr import find_in_lines, ocr
from fairlane.detect.text import MAX_CHARS, MAX_FINDINGS, text
from fairlane.errors import Defer, Fail
from fairlane.files import FileStore
from fairlane.model import Task


def task(task_type: str, data: dict[str, Any]) -> Task:
    return Task("t-1", task_type, "02:00:00:00:00:01", 0, 1, data)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    monkeypatch.setattr(setup, "_setup", setup._Setup())
    store = FileStore(tmp_path)
    configure(store)
    return store


def test_a_text_in_the_data() -> None:
    result = text(task("text", {"text": "手机１３８12345678，邮箱test@example.com"}))
    assert result == {
        "findings": [
            {"type": "PHONE", "value": "１３８******78", "start": 2, "end": 13, "rule": "phone.cn"},
            {
                "type": "EMAIL",
                "value": "t***@example.com",
                "start": 16,
                "end": 32,
                "rule": "email.address",
            },
        ],
        "masked": "手机１３８******78，邮箱t***@example.com",
        "counts": {"PHONE": 1, "EMAIL": 1},
    }
    assert json.loads(json.dumps(result)) == result


def test_a_stored_text(files: FileStore) -> None:
    name = files.put("\ufeff电话13812345678".encode())
    assert text(task("text", {"file": name}))["masked"] == "电话138******78"


def test_the_configured_lists_are_searched(files: FileStore, tmp_path: Path) -> None:
    (tmp_path / "ours.txt").write_text("蓝鹭", "utf-8")
    configure(files, [tmp_path / "ours.txt"])
    assert text(task("text", {"text": "蓝鹭计划，机密"}))["counts"] == {"KEYWORD": 2}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"text": 1},
        {"text": None},
        {"text": "a", "file": "b"},
        {"file": 7},
        {"file": "../../etc/passwd"},
        {"file": "0" * 64},
        {"url": "https://example.com"},
    ],
)
@pytest.mark.parametrize("handler", [text, ocr])
def test_other_data_fails_for_good(files: FileStore, handler: Any, data: dict[str, Any]) -> None:
    with pytest.raises(Fail, match=r"^data"):
        handler(task("text", data))


def test_a_file_that_is_no_text_fails(files: FileStore) -> None:
    name = files.put(b"\xff\xfe\x00")
    with pytest.raises(Fail, match="no UTF-8 text"):
        text(task("text", {"file": name}))


def test_a_text_that_is_too_long_fails() -> None:
    with pytest.raises(Fail, match="at most 1,000,000"):
        text(task("text", {"text": "a" * (MAX_CHARS + 1)}))


@pytest.mark.parametrize("handler", [text, ocr])
def test_without_a_file_store_a_file_fails(monkeypatch: pytest.MonkeyPatch, handler: Any) -> None:
    monkeypatch.setattr(setup, "_setup", setup._Setup())
    with pytest.raises(Fail, match="no file store is configured"):
        handler(task("text", {"file": "0" * 64}))


def test_the_answer_is_bounded_and_still_counts_all() -> None:
    result = text(task("text", {"text": "13812345678 " * (MAX_FINDINGS + 5)}))
    assert len(result["findings"]) == MAX_FINDINGS
    assert result["counts"] == {"PHONE": MAX_FINDINGS + 5}
    assert "13812345678" not in json.dumps(result)


def test_a_file_that_is_no_image_fails(files: FileStore) -> None:
    with pytest.raises(Fail, match="PNG, JPEG"):
        ocr(task("ocr", {"file": files.put(b"no image at all")}))


def test_a_model_that_cannot_be_loaded_defers(
    monkeypatch: pytest.MonkeyPatch, files: FileStore
) -> None:
    from fairlane.samples import images

    monkeypatch.setattr(engine, "_engine", engine._Engine())
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(Defer, match="cannot be loaded"):
        ocr(task("ocr", {"file": files.put(images()[0])}))


def test_a_label_on_one_line_speaks_for_the_number_on_the_next() -> None:
    lines = [
        Line("Phone:", ((0, 0), (60, 0), (60, 9), (0, 9)), 0.9),
        Line("a 2125551234", ((0, 10), (60, 10), (60, 19), (0, 19)), 0.9),
    ]
    (finding,) = find_in_lines(lines)
    assert (finding.line, finding.start, finding.end, finding.value) == (1, 2, 12, "2125551234")
    assert finding.to_dict() == {
        "type": "PHONE",
        "value": "212*****34",
        "line": 1,
        "box": [[0, 10], [60, 10], [60, 19], [0, 19]],
        "rule": "phone.us",
    }


def test_importing_the_handlers_loads_no_model() -> None:
    code = (
        "import sys, fairlane.detect.text, fairlane.detect.ocr, fairlane.detect.local; "
        "print({'rapidocr', 'onnxruntime', 'cv2', 'numpy', 'PIL'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
