"""The traces that come along: real traffic, at a speed and load that a few slots can take.

The rule: data of others, carried unchanged; `samples/traces/README.md` names the sources.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlane import samples
from fairlane.sim.csvfile import read, scaled
from fairlane.sim.workload import Workload


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace: what it is, and how it is replayed unless asked otherwise."""

    about: str
    about_zh: str
    slots: int
    speed: float
    load: float


TRACES: Final[Mapping[str, Trace]] = {
    "servegen-mixed": Trace(
        "an hour of 37 clients of a model service: 14,463 images, 26,248 texts",
        "37 个客户端一小时的模型服务请求：14,463 个图像任务，26,248 个文本任务",
        slots=4, speed=1, load=0.95,
    ),
    "nasa-ipsc-1993": Trace(
        "three months of 69 users of a parallel computer, its peak minute 88 times the mean",
        "69 位用户三个月的并行计算机作业，峰值分钟为均值的 88 倍",
        slots=4, speed=600, load=0.95,
    ),
}  # fmt: skip


def trace(name: str, *, slots: int | None, speed: float | None, load: float | None) -> Workload:
    """Return a trace as a workload, scaled as it usually is where None is given."""
    usual = TRACES[name]
    content = gzip.decompress(samples.trace(name))
    return scaled(
        name,
        read(io.BytesIO(content), name),
        usual.slots if slots is None else slots,
        usual.speed if speed is None else speed,
        usual.load if load is None else load,
    )
