"""What became of every task, and the verdict on it: nothing lost, nothing ended twice.

The rule: counted from the event stream, the records and counters of the store and the effects that
handlers noted, never from inside a process. A stream that was trimmed proves nothing and fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final, Self

import redis

from fairlane.errors import NotFound
from fairlane.model import TERMINAL, Event, TaskRecord
from fairlane.verbs import InspectTask, InspectTotals
from support.eventually import eventually
from support.system import System

#: A stream of this length holds all events of every fault here.
UNTRIMMED: Final = 2_000_000
_PAGE: Final = 10_000
_FINAL: Final = frozenset(str(state) for state in TERMINAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Accepted tasks and their ends; `lost`, `double_finals` and `double_runs` must be 0.

    `duplicate_starts` are starts after a task's first: attempts that a fault made necessary, of
    which delivery at least once may have any number. `double_runs` are attempts that ran twice.
    `recovery_s` is how long the slowest task that a fault hit waited for its next start.
    """

    accepted: int
    done: int
    failed: int
    expired: int
    cancelled: int
    dead: int
    lost: int
    double_finals: int
    duplicate_starts: int
    double_runs: int
    recovery_s: float | None = None

    def __add__(self, other: Tally) -> Tally:
        """Return the sum; the recovery is the slower one."""
        ours, theirs = asdict(self), asdict(other)
        slowest = [t for t in (ours.pop("recovery_s"), theirs.pop("recovery_s")) if t is not None]
        counts = {name: count + theirs[name] for name, count in ours.items()}
        return Tally(**counts, recovery_s=max(slowest, default=None))

    def problems(self) -> list[str]:
        """Return what breaks the promise."""
        broken = ("lost", "double_finals", "double_runs")
        found = [f"{name} = {getattr(self, name)}" for name in broken if getattr(self, name)]
        ended = self.done + self.failed + self.expired + self.cancelled + self.dead
        if ended != self.accepted:
            found.append(f"{self.accepted} accepted, but {ended} ended")
        return found


class History:
    """The whole event stream of a system, read once."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events: Final = tuple(events)

    @classmethod
    def of(cls, system: System) -> Self:
        """Read the stream; fail if a part of it is gone."""
        stream = system.client.keys.events
        seen: list[Event] = []
        while page := system.client.events(seen[-1].event_id if seen else "-", limit=_PAGE):
            seen += page
        if seen:
            told = system.redis.xinfo_stream(stream)
            trimmed = told["entries-added"] - told["length"]
            assert not trimmed, f"{trimmed} events are trimmed: raise events_maxlen"
        return cls(seen)

    def tasks(self, *kinds: str) -> list[str]:
        """Return the tasks (attempts of a start or claim) of some kinds of event, in order."""
        return [task for event in self.events if event.event in kinds for task in event.tasks]

    def starts(self, task_id: str) -> list[int]:
        """Return when a task was started, oldest first, in ms of the store's clock."""
        return [
            event.at_ms
            for event in self.events
            if event.event == "started" and event.tasks[0].rpartition(".")[0] == task_id
        ]

    def restarted_s(self, ids: Iterable[str], since_ms: int) -> float:
        """Return how long after a moment the last of some tasks was started again."""
        next_ms = []
        for task_id in ids:
            later = [at_ms for at_ms in self.starts(task_id) if at_ms > since_ms]
            assert later, f"task {task_id} was never started again"
            next_ms.append(later[0])
        return (max(next_ms) - since_ms) / 1000

    def finals(self) -> Counter[str]:
        """Return how often each task ended; a redrive opens it again."""
        ends: Counter[str] = Counter()
        for event in self.events:
            if event.event in _FINAL:
                ends.update(event.tasks)
            elif event.event == "redriven":
                ends.subtract(event.tasks)
        return ends


def now_ms(system: System) -> int:
    """Return the store's time; one that is being replaced is asked until another one answers."""

    def told() -> tuple[int, int]:
        try:
            seconds, micros = system.redis.time()
        except redis.ConnectionError as error:
            raise AssertionError(f"the store: {error}") from error
        return int(seconds), int(micros)

    seconds, micros = eventually(told, 30.0)
    return seconds * 1000 + micros // 1000


def tally(
    system: System, *, recovery_s: float | None = None, receipts: Iterable[str] = ()
) -> Tally:
    """Count what became of every task that the store ever accepted.

    `receipts` are the tasks that some producer was told of: one that the store never heard of is
    lost too.
    """
    history = History.of(system)
    accepted = history.tasks("accepted")
    totals = system.client.run(InspectTotals()).counts
    # The stream and the counters are written by the same functions: they must tell the same.
    assert len(accepted) == len(set(accepted)) == totals.get("accepted", 0)
    finals, records = history.finals(), _records(system, accepted)
    last = {task: event.event for event in history.events if event.event in _FINAL
            for task in event.tasks}  # fmt: skip
    lost = len(set(receipts) - set(accepted))
    for task_id, record in records.items():
        told = last[task_id] if finals[task_id] > 0 else ""
        # The record must say what the stream says: this end, or none yet.
        if record is None or told != (str(record.state) if record.state in TERMINAL else ""):
            lost += 1
    counts = Counter(last[task_id] for task_id, ends in finals.items() if ends > 0)
    starts = Counter(name.rpartition(".")[0] for name in history.tasks("started"))
    return Tally(
        accepted=len(accepted),
        **{state: counts[state] for state in ("done", "failed", "expired", "cancelled", "dead")},
        lost=lost,
        double_finals=sum(ends > 1 for ends in finals.values()),
        duplicate_starts=sum(count - 1 for count in starts.values()),
        double_runs=_double_runs(system, history),
        recovery_s=recovery_s,
    )


def at_rest(system: System, timeout_s: float = 60.0) -> None:
    """Wait until every accepted task has ended and the store is at rest, and prove it healthy."""

    def all_ended() -> None:
        totals = system.client.run(InspectTotals())
        left = totals.pending + totals.leased
        assert not left, f"{totals.pending} pending, {totals.leased} leased"

    system.explained(all_ended, timeout_s)
    system.at_rest()


def _records(system: System, ids: list[str]) -> dict[str, TaskRecord | None]:
    found = system.client.run_many([InspectTask(task_id) for task_id in ids])
    for record in found:
        assert isinstance(record, TaskRecord | NotFound), record
    known = (record if isinstance(record, TaskRecord) else None for record in found)
    return dict(zip(ids, known, strict=True))


def _double_runs(system: System, history: History) -> int:
    """Count attempts that were started, or whose handler ran, more than once, or ran unstarted."""
    starts = Counter(history.tasks("started"))
    noted = Counter(system.notes.read_text().split() if system.notes.exists() else ())
    unstarted = sum(attempt not in starts for attempt in noted)
    return unstarted + sum(count > 1 for runs in (starts, noted) for count in runs.values())
