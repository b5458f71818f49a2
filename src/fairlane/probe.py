"""One look at a store: what its server says of itself, and what our verbs read in it.

The rule: no judgement and no I/O here. A probe is a conversation as every call is, so both clients
carry the same one; what cannot be read is left out, with the error that says why, and never raised.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlane.conversation import Session, Talk, info_of
from fairlane.errors import FairlaneError, StoreError
from fairlane.model import Epoch, Lane, Worker
from fairlane.process import Processes
from fairlane.settings import Settings
from fairlane.verbs import InspectEpoch, InspectLanes, InspectProcesses, InspectWorkers
from fairlane.verbs.verb import pairs, text

#: What INFO does not tell. A user of the store may lack the right to ask for it.
_OPTIONS: Final = ("appendfsync", "save", "stop-writes-on-bgsave-error")


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What one look found; times are milliseconds.

    `unreachable` is why nothing could be read, `refused` why no verb could run; both are None on a
    store that works. `clock_ahead_ms` is this host's clock less the store's.
    """

    settings: Settings
    unreachable: FairlaneError | None = None
    refused: FairlaneError | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    round_trip_ms: float = 0.0
    clock_ahead_ms: float = 0.0
    library: str = ""
    digest: str = ""
    lanes: tuple[Lane, ...] = ()
    workers: tuple[Worker, ...] = ()
    processes: Processes = Processes("", ())
    epoch: Epoch | None = None


def probe(session: Session) -> Talk[Probe]:
    """Look at the store and return what was found; no error is raised."""
    try:
        found = yield from _server()
    except FairlaneError as error:
        return Probe(settings=session.settings, unreachable=error)
    try:
        lanes = yield from session.call(InspectLanes())
        workers = yield from session.call(InspectWorkers())
        epoch = yield from session.call(InspectEpoch())
        processes = yield from session.call(InspectProcesses())
    except FairlaneError as error:
        return Probe(settings=session.settings, refused=error, **found)
    return Probe(
        settings=session.settings,
        library=session.library,
        digest=session.digest,
        lanes=lanes,
        workers=workers,
        processes=processes,
        epoch=epoch,
        **found,
    )


def _server() -> Talk[dict[str, Any]]:
    # The first call may connect, so it is not the one that is measured. A server that cannot write
    # to its disk refuses PING too, but not these.
    info = yield ("INFO",)
    began = time.perf_counter()
    seconds, micros = yield ("TIME",)
    round_trip_ms = (time.perf_counter() - began) * 1000
    # Nothing is decided by this clock: it is what is looked at.
    here_ms = time.time() * 1000  # noqa: TID251 - the clock that is looked at
    ahead_ms = here_ms - round_trip_ms / 2 - (int(seconds) * 1000 + int(micros) / 1000)
    return {
        "info": info_of(info),
        "options": (yield from _options()),
        "round_trip_ms": round_trip_ms,
        "clock_ahead_ms": ahead_ms,
    }


def _options() -> Talk[Mapping[str, str]]:
    try:
        reply = yield ("CONFIG", "GET", *_OPTIONS)
    except StoreError:
        return {}
    flat = [part for pair in reply.items() for part in pair] if isinstance(reply, dict) else reply
    return {name: text(value) for name, value in pairs(flat)}
