"""A workload from a file: `tenant,arrival_s,service_s,kind`, a task a line.

The rule: a file is taken whole or not at all; what is wrong is told by file, line and column,
with what would be right.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final

from fairlane.errors import InvalidMac
from fairlane.mac import canonical
from fairlane.sim.workload import Arrival, InvalidWorkload, Workload

COLUMNS: Final = ("tenant", "arrival_s", "service_s", "kind")
_EXAMPLE: Final = "gateway-7,12.5,0.4,ocr"
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MOST_KINDS: Final = 100
_LONGEST_S: Final = 7 * 24 * 3_600
_LATEST_S: Final = 10 * 365 * 24 * 3_600
_GZIP: Final = b"\x1f\x8b"
_SHOWN: Final = 40
#: The lane `main` is the document's, and must be the only one.
_RENAMED: Final = {"main": "main-lane"}


def load(path: Path, *, slots: int, speed: float = 1.0, load: float | None = None) -> Workload:
    """Return the workload in a CSV file, plain or gzipped.

    `slots` for each task type; `speed` divides all times; `load` moves the arrivals together or
    apart until the busiest type needs that share of its slots. The heavy devices are the fewest
    that bring half of the work. Raises InvalidWorkload.
    """
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidWorkload(f"{path}: cannot be read ({error})") from error
    return scaled(path.name, read(io.BytesIO(content), str(path)), slots, speed, load)


def scaled(
    name: str, arrivals: Sequence[Arrival], slots: int, speed: float, load: float | None
) -> Workload:
    """Return the workload of some arrivals, at another speed and load."""
    if not 0 < speed < math.inf:
        raise InvalidWorkload(f"speed: {speed}; give a number above 0, as 1 or 600")
    faster = [
        a._replace(at_ms=int(a.at_ms / speed), service_ms=max(1, round(a.service_ms / speed)))
        for a in arrivals
    ]
    if load is not None:
        if not 0 < load <= 100:
            raise InvalidWorkload(f"load: {load}; give a number above 0, 1 being all slots busy")
        now = _busiest(faster, slots)
        faster = [a._replace(at_ms=int(a.at_ms * now / load)) for a in faster]
    kinds = dict.fromkeys(sorted({a.kind for a in faster}), slots)
    return Workload(name, faster, kinds, _heavy_and_light(faster))


def read(file: IO[bytes], name: str) -> list[Arrival]:
    """Return the arrivals of a CSV file in order of time; `name` is what errors call it."""
    lines = io.TextIOWrapper(file, "utf-8-sig", newline="")
    rows = csv.reader(lines, strict=True)
    try:
        places = _places(next(rows, []), name)
        arrivals = [_arrival(row, rows.line_num, places, name) for row in rows if row]
    except UnicodeDecodeError as error:
        raise InvalidWorkload(f"{name}: it is no UTF-8 text ({error.reason}); save it as UTF-8, "
                              "or gzip it") from error  # fmt: skip
    except csv.Error as error:
        raise InvalidWorkload(f"{name}:{rows.line_num}: {error}; write as in {_EXAMPLE}") from error
    if not arrivals:
        raise InvalidWorkload(f"{name}: it has no task; write a line for each, as {_EXAMPLE}")
    kinds = {arrival.kind for arrival in arrivals}
    if len(kinds) > _MOST_KINDS:
        raise InvalidWorkload(f"{name}: {len(kinds)} kinds; {_MOST_KINDS} at most can be lanes")
    first_ms = min(arrival.at_ms for arrival in arrivals)
    moved = (arrival._replace(at_ms=arrival.at_ms - first_ms) for arrival in arrivals)
    return sorted(moved, key=lambda arrival: arrival.at_ms)


def _places(header: Sequence[str], name: str) -> tuple[int, ...]:
    titles = [title.strip().lower() for title in header]
    if sorted(titles) != sorted(COLUMNS):
        raise InvalidWorkload(
            f"{name}:1: the columns are {', '.join(titles)[:200] or 'missing'}; "
            f"the first line must be {','.join(COLUMNS)}"
        )
    return tuple(titles.index(column) for column in COLUMNS)


def _arrival(row: Sequence[str], line: int, places: Sequence[int], name: str) -> Arrival:
    if len(row) != len(COLUMNS):
        raise InvalidWorkload(
            f"{name}:{line}: {len(row)} columns, expected {len(COLUMNS)}: {','.join(COLUMNS)}"
        )

    def cell(column: str) -> str:
        return row[places[COLUMNS.index(column)]].strip()

    def wrong(column: str, right: str) -> InvalidWorkload:
        told = ascii(cell(column)[:_SHOWN])
        return InvalidWorkload(f"{name}:{line}: column {column}: {told}; write {right}")

    arrival_s, service_s = _seconds(cell("arrival_s")), _seconds(cell("service_s"))
    if not cell("tenant"):
        raise wrong("tenant", "whose task it is: a MAC address or any name")
    if not 0 <= arrival_s <= _LATEST_S:
        raise wrong("arrival_s", "seconds from any begin, 0 or more, as 12.5")
    if not 0 < service_s <= _LONGEST_S:
        raise wrong("service_s", f"seconds that it runs, above 0 and at most {_LONGEST_S}, as 0.4")
    kind = cell("kind")
    if _KIND.fullmatch(kind) is None:
        raise wrong("kind", "a task type in small letters, digits, `_` or `-`, as ocr or text")
    return Arrival(
        round(arrival_s * 1000),
        address_of(cell("tenant")),
        _RENAMED.get(kind, kind),
        max(1, round(service_s * 1000)),
    )


def _seconds(text: str) -> float:
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


@cache
def address_of(tenant: str) -> str:
    """Return a tenant's MAC address: its own, or one made from its name, always the same."""
    try:
        return canonical(tenant)
    except InvalidMac:
        digest = hashlib.sha256(tenant.encode()).digest()
        # Eight bytes, so that two names do not meet; 02 is a locally administered address.
        return ":".join(f"{part:02x}" for part in (2, *digest[:7]))


def _busiest(arrivals: Sequence[Arrival], slots: int) -> float:
    """Return the largest share of its slots that a task type needs."""
    span_ms = max(1, arrivals[-1].at_ms)
    work: dict[str, int] = defaultdict(int)
    for arrival in arrivals:
        work[arrival.kind] += arrival.service_ms
    return max(work.values()) / span_ms / slots


def _heavy_and_light(arrivals: Sequence[Arrival]) -> dict[str, str]:
    work: dict[str, int] = defaultdict(int)
    for arrival in arrivals:
        work[arrival.mac] += arrival.service_ms
    groups, before, half = {}, 0, sum(work.values()) / 2
    for mac, total in sorted(work.items(), key=lambda pair: (-pair[1], pair[0])):
        groups[mac] = "heavy" if before < half else "light"
        before += total
    return groups
