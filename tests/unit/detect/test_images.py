"""OCR on the labelled images, and images that are small, odd or hostile."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rapidocr")

from PIL import Image

from fairlane.detect import configure, engine
from fairlane.detect.bands import read
from fairlane.detect.image import FORMATS, BadImage, decode, is_image
from fairlane.detect.ocr import detect_image, ocr
from fairlane.files import FileStore
from fairlane.model import Task
from fairlane.samples import images

DATA = Path(__file__).parents[2] / "data" / "detect"
LABELLED = json.loads((DATA / "images.json").read_text("utf-8"))
TYPES = {"PHONE", "EMAIL"}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    target = BytesIO()
    image.save(target, kind)
    return target.getvalue()


def sample(name: str) -> bytes:
    names = sorted(label["file"] for label in LABELLED)
    return images()[names.index(name)]


@pytest.mark.parametrize("label", LABELLED, ids=[label["file"] for label in LABELLED])
def test_a_labelled_image(label: dict[str, Any]) -> None:
    lines, findings = detect_image(sample(label["file"]))
    assert len(lines) == len(label["lines"])
    expected = {(item["type"], item["value"]) for item in label["sensitive"]}
    assert {(finding.type, finding.value) for finding in findings} == {
        item for item in expected if item[0] in TYPES
    }
    for finding in findings:
        assert finding.box is not None
        assert all(0 <= x <= label["w"] and 0 <= y <= label["h"] for x, y in finding.box)


def test_the_handler_shows_no_value(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    configure(store)
    name = store.put(sample("en_two_lines_phone.jpg"))
    result = ocr(Task("t-1", "ocr", "02:00:00:00:00:01", 0, 1, {"file": name}))
    assert "202-555-0121" not in json.dumps(result)
    assert [line["text"] for line in result["lines"]] == [
        "John Smith lives in New York.",
        "His phone number is 202-***-**21.",
    ]
    (finding,) = result["findings"]
    assert finding["value"] == "202-***-**21"
    assert finding["box"] == result["lines"][1]["box"]
    assert result["counts"] == {"PHONE": 1}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_recognised_and_decoded(kind: str) -> None:
    content = encoded(Image.new("RGB", (40, 30), "white"), kind)
    assert is_image(content)
    assert decode(content).size == (40, 30)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I", "CMYK", "F"])
@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (1, 3000)])
def test_every_mode_and_shape_is_read(mode: str, size: tuple[int, int]) -> None:
    kind = "TIFF" if mode in {"CMYK", "F", "I"} else "PNG"
    assert read(decode(encoded(Image.new(mode, size), kind))) == []


def test_an_image_is_turned_as_its_camera_was() -> None:
    image = Image.new("RGB", (40, 20), "white")
    exif = Image.Exif()
    exif[0x0112] = 6
    target = BytesIO()
    image.save(target, "JPEG", exif=exif)
    assert decode(target.getvalue()).size == (20, 40)


def test_a_tall_image_is_read_in_bands_and_no_line_twice() -> None:
    line = decode(sample("en_two_lines_phone.jpg")).resize((442, 55))
    tall = Image.new("RGB", (460, 3000), "white")
    tops = range(10, 2900, 61)  # some of them across a cut
    for top in tops:
        tall.paste(line, (9, top))
    lines, findings = detect_image(encoded(tall))
    assert sum(line.text.startswith("John") for line in lines) == len(tops)
    assert [finding.value for finding in findings] == ["202-555-0121"] * len(tops)
    boxes = [finding.box for finding in findings]
    assert all(
        box is not None and top <= box[0][1] <= top + 55
        for box, top in zip(boxes, tops, strict=True)
    )


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and has no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"")


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no image"),
        (b"GIF89a" + bytes(20), "no image"),
        (png_header(50_000, 50_000), "pixels"),
        (png_header(31_000, 10), "pixels"),
        (png_header(10_000, 10_000), "pixels"),
        (png_header(10, 10), "damaged"),
        (sample("en_letter_pii.png")[:2000], "damaged"),
        (b"\xff\xd8\xff\xe0" + bytes(100), "no image|damaged"),
    ],
    ids=["empty", "gif", "bomb", "long", "large", "no pixels", "cut", "zeros"],
)
def test_a_bad_image_is_told(content: bytes, reason: str) -> None:
    with pytest.raises(BadImage, match=reason):
        decode(content)


def test_a_text_may_begin_like_a_bitmap() -> None:
    assert not is_image(b"BMW is a maker of cars")


@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_builds_its_own_engine() -> None:
    read(decode(sample("en_two_lines_phone.jpg")))
    parent = engine._engine
    child = os.fork()
    if child == 0:
        try:
            lines = read(decode(sample("en_two_lines_phone.jpg")))
            os._exit(0 if len(lines) == 2 and engine._engine is not parent else 1)
        except BaseException:  # noqa: BLE001 - a fork must not run the rest of the tests
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine._engine is parent


def test_the_model_leaves_nothing_on_the_disk_and_tells_nobody(tmp_path: Path) -> None:
    program = (
        "import sys; from fairlane import samples; from fairlane.detect.ocr import detect_image; "
    )
    program += "detect_image(samples.image('en_two_lines_phone.jpg')); import onnxruntime, os; "
    program += "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environ = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert list(tmp_path.rglob("*")) == []
