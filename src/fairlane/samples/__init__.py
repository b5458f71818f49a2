"""Real texts, images and traffic to try fairlane with: the demo, the bench, the simulator, tests.

The rule: data of others, carried unchanged, with its sources and licences in README.md beside it.
Every number and address in it is invented or a published test number.
"""

from __future__ import annotations

import json
from importlib.resources import files

__all__ = ["image", "images", "texts", "trace"]


def texts() -> list[str]:
    """Return the texts, Chinese ones first."""
    lines = files(__name__).joinpath("texts.jsonl").read_text("utf-8").splitlines()
    return [str(json.loads(line)["text"]) for line in lines]


def image(name: str) -> bytes:
    """Return one encoded image by its file name, e.g. `en_letter_pii.png`."""
    return files(__name__).joinpath("images", name).read_bytes()


def images() -> list[bytes]:
    """Return the encoded images (PNG and JPEG), in the order of their names."""
    folder = files(__name__).joinpath("images")
    return [file.read_bytes() for file in sorted(folder.iterdir(), key=lambda file: file.name)]


def trace(name: str) -> bytes:
    """Return a gzipped CSV of traffic by its name, e.g. `servegen-mixed`."""
    return files(__name__).joinpath("traces", f"{name}.csv.gz").read_bytes()
