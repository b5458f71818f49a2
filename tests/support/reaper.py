"""Kills at random among the processes of a system, and starts again what died.

The rule: a victim is drawn by a seed, and what dies is started again at once, as a supervisor does;
kills do not wait for each other, so that one hits what has not recovered from the last.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from typing import Final

import psutil

from fairlane.verbs import InspectProcesses
from support.processes import Program
from support.stage import Stage
from support.system import TEXT

#: What has been there as long takes part in the work.
_SETTLED_S: Final = 2.0


class Reaper:
    """Keeps workers and dispatchers running, and kills them or their children.

    `kills` counts the victims by their part. Most are children of a pool: a main process or a
    dispatcher takes seconds of a machine to come back.
    """

    def __init__(
        self, stage: Stage, seed: int, *, workers: int = 3, dispatchers: int = 2, slots: int = 4
    ) -> None:
        self.kills: Final[Counter[str]] = Counter()
        self._stage = stage
        self._random = random.Random(seed)
        self._slots = slots
        self._programs: dict[str, Program] = {}
        self._names = [f"worker-{at}" for at in range(workers)]
        self._names += [f"dispatcher-{at}" for at in range(dispatchers)]
        self._seen_s: dict[int, float] = {}
        self.revive()

    def strike(self) -> bool:
        """Kill one process; False when none of the drawn part is at work now."""
        part = self._random.choices(("child", "worker", "dispatcher"), (88, 7, 5))[0]
        kind = "dispatcher" if part == "dispatcher" else "worker"
        settled = self._settled()
        victims = []
        for name, program in self._programs.items():
            if name.startswith(kind) and program.pid in settled and program.is_running():
                found = _children(program) if part == "child" else [program.pid]
                victims += [pid for pid in found if program.owns(pid)]
        if not victims:
            return False
        with suppress(ProcessLookupError):
            os.kill(self._random.choice(victims), signal.SIGKILL)
            self.kills[part] += 1
            return True
        return False

    def revive(self) -> None:
        """Start what is not running."""
        for name in self._names:
            program = self._programs.get(name)
            if program is not None and program.is_running():
                continue
            if program is not None:
                # A supervisor ends what is left of the session: a pool's orphans.
                program.end()
                self._stage.system.programs.remove(program)
            self._programs[name] = self._start(name)

    def pause_s(self, most_s: float) -> float:
        """Return a random time up to `most_s`."""
        return self._random.uniform(0.0, most_s)

    def _settled(self) -> set[int]:
        """Return the processes that have announced themselves some time ago.

        One that is only starting is no target: nothing would be hit but a start.
        """
        now_s = time.monotonic()
        for process in self._stage.system.client.run(InspectProcesses()).living:
            pid = process.process_id.split(":")[1]
            self._seen_s.setdefault(int(pid), now_s)
        return {pid for pid, since_s in self._seen_s.items() if now_s - since_s > _SETTLED_S}

    def _start(self, name: str) -> Program:
        if name.startswith("dispatcher"):
            return self._stage.start_dispatcher(name)
        return self._stage.system.start_worker(name, TEXT, slots=self._slots)


def _children(program: Program) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(program.pid).children()]
    except psutil.NoSuchProcess:
        return []
