"""Random faults under load, for as long as one likes: what is lost, and what grows.

The rule: nothing is remembered but counters and the event stream, so that the load may go on for
days; the stream's own memory is no growth.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import psutil

from fairlane.verbs import InspectTotals
from support.producer import Producer
from support.reaper import Reaper
from support.stage import Stage
from support.system import TEXT
from support.tally import History, at_rest

#: Records of ended tasks go soon, or the memory would grow with the load.
RESULT_TTL_MS: Final = 5_000
SETTINGS: Final[Mapping[str, Any]] = {
    "max_attempts": 1_000_000,
    "retry_backoff_base_ms": 50,
    "defer_backoff_base_ms": 200,
    "defer_backoff_max_ms": 200,
    "result_ttl_ms": RESULT_TTL_MS,
}
#: The watermark and the like come and go too.
_MOST_KEYS_MORE: Final = 2
_MOST_BYTES_MORE: Final = 2 * 1024 * 1024
_REST_S: Final = 300.0


@dataclass(frozen=True)
class Level:
    """What a system at rest keeps: keys but for rows of processes, bytes without the stream."""

    keys: int
    bytes: int


@dataclass
class Outcome:
    """What an endurance run came to; `problems` is empty when all promises held."""

    minutes: float
    faults: dict[str, int]
    accepted: int
    ended: int
    lost: int
    double_finals: int
    before: Level
    after: Level
    problems: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


class Endurance:
    """Loads a stage, injects faults at random, and judges when it is over."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._random = random.Random(seed)
        self._faults: Counter[str] = Counter()
        self._reaper = Reaper(stage, seed, workers=2)
        self._deeds: Final[Mapping[str, Callable[[], None]]] = {
            "SIGSTOP of a worker": self._freeze,
            "FUNCTION FLUSH": lambda: stage.system.redis.execute_command("FUNCTION", "FLUSH"),
            "messages deleted": lambda: stage.system.broker.delete(TEXT),
            "connections cut": lambda: stage.system.redis.execute_command(
                "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"
            ),
        }

    def run(self, minutes: float, progress: Callable[[float, str], None]) -> Outcome:
        """Run for so many minutes; `progress(seconds, words)` is told how it goes."""
        system = self._stage.system
        system.ended(self._stage.send(50), 120.0)
        before = self._level()
        began_s = time.monotonic()
        with Producer(self._stage, every_s=0.01) as producer:
            while (passed_s := time.monotonic() - began_s) < minutes * 60:
                time.sleep(self._random.uniform(0.0, 1.5))
                self._inject()
                told = sum(self._faults.values()) + self._reaper.kills.total()
                progress(passed_s, f"{len(producer.receipts):,} accepted, {told:,} faults")
        self._reaper.revive()
        progress(minutes * 60, "the backlog drains")
        at_rest(system, _REST_S)
        return self._judge(minutes, before, set(producer.receipts))

    def _inject(self) -> None:
        self._reaper.revive()
        if self._random.random() < 0.7:
            self._reaper.strike()
            return
        words = self._random.choice(list(self._deeds))
        self._deeds[words]()
        self._faults[words] += 1

    def _freeze(self) -> None:
        """Stop a worker for up to three leases."""
        workers = [program for program in self._stage.system.programs if program.is_running()]
        victim = psutil.Process(self._random.choice(workers).pid)
        try:
            victim.send_signal(signal.SIGSTOP)
            time.sleep(self._random.uniform(0.0, 6.0))
        finally:
            victim.send_signal(signal.SIGCONT)

    def _judge(self, minutes: float, before: Level, receipts: set[str]) -> Outcome:
        history, after = History.of(self._stage.system), self._level()
        totals = self._stage.system.client.run(InspectTotals())
        finals, accepted = history.finals(), set(history.tasks("accepted"))
        lost = len(receipts - accepted) + sum(finals[task_id] < 1 for task_id in accepted)
        doubles = sum(ends > 1 for ends in finals.values())
        problems = []
        if lost or totals.lost():
            problems.append(f"{lost} lost by the stream, {totals.lost()} by the counters")
        if doubles:
            problems.append(f"{doubles} ended twice")
        if after.keys > before.keys + _MOST_KEYS_MORE:
            problems.append(f"{after.keys - before.keys} keys more than before")
        if after.bytes > before.bytes + _MOST_BYTES_MORE:
            problems.append(f"{(after.bytes - before.bytes) / 2**20:.1f} MB more than before")
        kills = {f"kill -9 of a {part}": n for part, n in self._reaper.kills.items()}
        return Outcome(
            minutes, {**kills, **self._faults}, len(accepted), finals.total(), lost, doubles,
            before, after, problems,
        )  # fmt: skip

    def _level(self) -> Level:
        """Wait until ended tasks are gone, and count what is left."""
        redis = self._stage.system.redis
        task = self._stage.system.client.keys.task("*")
        self._stage.system.explained(lambda: not redis.keys(task), 120.0)
        used = int(redis.info("memory")["used_memory"])
        stream = redis.memory_usage(self._stage.system.client.keys.events, samples=0) or 0
        names = self._stage.system.client.keys
        # Rows of processes come and go with these.
        rows = (names.name("WORKER"), names.name("PROCESS"))
        kept = [key for key in redis.keys("*") if not key.startswith(rows)]
        return Level(len(kept), used - int(stream))
