"""The OCR model: built in the process that runs, once, on one thread.

The rule: a child never uses its parent's engine, since the runtime's threads and locks do not
survive a fork; it builds its own at its first image. One image at a time goes through it: the
process is the unit of concurrency, and a lane's slots are counted in processes.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fairlane.detect.finding import Box
from fairlane.errors import Defer

if TYPE_CHECKING:
    from PIL.Image import Image

_PARAMS: Final = {
    "Global.log_level": "critical",
    "Det.limit_type": "max",
    "Det.limit_side_len": 960,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A recognised line: its text, four corners in pixels, and the model's confidence (0 to 1)."""

    text: str
    box: Box
    score: float


class _Engine:
    """One process's model."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self._model: Any = None

    def recognise(self, image: Image) -> list[Line]:
        with self.lock:
            if self._model is None:
                self._model = _build()
            found = self._model(image, use_det=True, use_cls=True, use_rec=True)
        if found.boxes is None or found.txts is None:
            return []
        return [
            Line(text, tuple((round(float(x)), round(float(y))) for x, y in box), float(score))
            for text, box, score in zip(found.txts, found.boxes, found.scores, strict=True)
        ]


_engine = _Engine()


def recognise(image: Image) -> list[Line]:
    """Return the lines of text in an image, from the top; the model sees it at 960 pixels at most.

    Raises Defer if the model cannot be loaded: the file may be on its way, or memory be short.
    """
    global _engine
    if _engine.pid != os.getpid():
        _engine = _Engine()
    return _engine.recognise(image)


def _build() -> Any:
    """Build the model and run it once, so that a model that is missing or broken shows here."""
    # The runtime's builds send usage data to their maker: never from a tool that reads what others
    # must not. It is read at the first import.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # noqa: TID251 - written, not read
    try:
        import cv2
        import numpy as np
        from rapidocr import RapidOCR

        cv2.setNumThreads(1)
        model = RapidOCR(params=dict(_PARAMS))
        blank = np.full((48, 320, 3), 255, np.uint8)
        model(blank, use_det=False, use_cls=True, use_rec=True)
        model(blank, use_det=True, use_cls=True, use_rec=True)
    except Exception as error:  # whatever the model's stack raises means the same: not now
        raise Defer(f"the OCR model cannot be loaded: {error!r:.300}") from error
    return model
