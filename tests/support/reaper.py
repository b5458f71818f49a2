"""Kills at random among the processes of a system, and starts again what died.

The rule: a victim is drawn by a seed, and what dies is started again at once, as a supervisor does;
kills do not wait for each other, so that one hits what has not recovered from the last.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from typing import Final

import psutil

from support.processes import Program
from support.stage import Stage
from support.system import TEXT


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
        self.revive()

    def strike(self) -> bool:
        """Kill one process; False when none of the drawn part lives now."""
        part = self._random.choices(("child", "worker", "dispatcher"), (90, 6, 4))[0]
        kind = "dispatcher" if part == "dispatcher" else "worker"
        living = [
            program
            for name, program in self._programs.items()
            if name.startswith(kind) and program.is_running()
        ]
        # A part that is only starting is no target: nothing would be hit but a start.
        victims = [program.pid for program in living] if self._is_working() else []
        if part == "child":
            victims = [pid for program in living for pid in _children(program)]
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

    def _is_working(self) -> bool:
        return self._stage.system.lane().slots > 0

    def _start(self, name: str) -> Program:
        if name.startswith("dispatcher"):
            return self._stage.start_dispatcher(name)
        return self._stage.system.start_worker(name, TEXT, slots=self._slots)


def _children(program: Program) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(program.pid).children()]
    except psutil.NoSuchProcess:
        return []
