"""Why a task waits, and when it will likely start.

The rule: a reason is one word that does not change, and a sentence that names the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fairlane.estimate import Ahead, Served, start_in_ms
from fairlane.ids import checked_task_id
from fairlane.model import TERMINAL, TaskState
from fairlane.settings import Settings
from fairlane.verbs.verb import Arg, Verb, text

#: The reasons, the first that holds being told: why a task has not started.
REASONS: Final = (
    "ended",
    "running",
    "leased",
    "backoff",
    "paused",
    "turn",
    "max_running",
    "rate",
    "no_worker",
    "no_credits",
    "behind",
    "next",
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task has not started, in one word of `REASONS` and in a sentence.

    `place` counts from the end of its device's queue that is served next, `rank` is the device's in
    its site; -1 when it is not there. `ahead` is how many tasks are likely served before it.
    `until_ms` is when the reason ends if that is known, else 0. `start_p50_ms` and `start_p90_ms`
    are how long from `now_ms` till it starts; None when that cannot be told.
    """

    task_id: str
    state: TaskState
    mac: str
    lane: str
    reason: str
    detail: str
    now_ms: int
    until_ms: int
    place: int
    rank: int
    ahead: int
    slots: int
    credits: int
    start_p50_ms: int | None
    start_p90_ms: int | None


@dataclass(frozen=True)
class Explain(Verb[Explanation]):
    """Tell why a task waits, and what is served before it.

    The start is estimated from that, and from what its lane's slots serve. O(place), and 200
    devices at most. Raises TaskNotFound, InvalidTaskId.
    """

    task_id: str
    REPEATABLE: ClassVar[bool] = True

    def args(self, settings: Settings) -> tuple[Arg, ...]:
        """Return the id."""
        return (checked_task_id(self.task_id),)

    def decode(self, reply: Any) -> Explanation:
        """Return the reason and the estimate."""
        found = _Found(self.task_id, reply)
        reason, until_ms, detail = found.reason()
        p50, p90 = found.start(reason, until_ms)
        return Explanation(
            task_id=self.task_id,
            state=found.state,
            mac=found.mac,
            lane=found.lane,
            reason=reason,
            detail=detail,
            now_ms=found.now_ms,
            until_ms=until_ms,
            place=found.place,
            rank=found.rank,
            ahead=round(found.ahead.tasks),
            slots=found.slots,
            credits=found.credits,
            start_p50_ms=p50,
            start_p90_ms=p90,
        )


class _Found:
    """A reply of the script, by names."""

    def __init__(self, task_id: str, reply: Any) -> None:
        now, state, mac, lane, due, place, device, levels, own, ahead, most = reply
        self.task_id = task_id
        self.now_ms, self.due_ms, self.place = int(now), int(due), int(place)
        self.state = TaskState(text(state))
        self.mac, self.lane = text(mac), text(lane)
        self.rank, paused, self.device_leased, self.max_running = map(int, device[:4])
        self.is_paused, self.rate_per_s = paused == 1, float(device[4])
        self.backoff_ms, self.turn_ms, self.token_ms = map(int, device[5:])
        self.slots, self.credits, self.leased = map(int, levels[:3])
        self.served = Served(float(levels[3]), self.leased, float(levels[4]))
        self.own_ms = float(own)
        self.ahead = Ahead(float(ahead[0]), float(ahead[1]), float(most))

    def reason(self) -> tuple[str, int, str]:
        """Return the reason, until when it holds or 0, and the sentence."""
        if self.state in TERMINAL:
            return "ended", 0, f"it is {self.state}"
        if self.state is TaskState.RUNNING:
            return "running", 0, "a worker runs it"
        if self.state is TaskState.LEASED:
            return "leased", 0, "it was handed out, and a worker is about to start it"
        if self.state is TaskState.DELAYED:
            return (
                "backoff",
                self.due_ms,
                "it was put off or is retried, and waits for its due time",
            )
        return self._held() or self._waits()

    def _held(self) -> tuple[str, int, str] | None:
        """Return what holds the task's device, in the order of `held_by`."""
        if self.is_paused:
            again = f"`fairlane configure {self.mac} --resume` lets it go on"
            return "paused", 0, f"its device is paused; {again}"
        if self.backoff_ms:
            return "backoff", self.backoff_ms, "its device backs off as a whole"
        if self.turn_ms:
            return "turn", self.turn_ms, "a two-step turn of its device is open"
        if 0 < self.max_running <= self.device_leased:
            running = f"{self.device_leased} of {self.max_running}"
            return "max_running", 0, f"its device has {running} tasks running that it may have"
        if self.token_ms:
            return "rate", self.token_ms, f"its device may start {self.rate_per_s:g} tasks a second"
        return None

    def _waits(self) -> tuple[str, int, str]:
        behind = round(self.ahead.tasks)
        if self.slots == 0:
            step = "`fairlane doctor` tells why, and what to do"
            return "no_worker", 0, f"no worker offers a slot in lane {self.lane}; {step}"
        if behind == 0 and self.credits == 0:
            full = f"the lane's {self.slots} slots are taken ({self.leased} leased)"
            return "no_credits", 0, f"it is next, but {full}"
        if behind == 0:
            return "next", 0, "it is next, and there is room for it"
        slots = f"{self.slots} slots" if self.slots != 1 else "one slot"
        return "behind", 0, f"behind {behind} tasks in lane {self.lane}, which has {slots}"

    def start(self, reason: str, until_ms: int) -> tuple[int | None, int | None]:
        """Return when it will start, in ms from now."""
        likely = start_in_ms(self.ahead, self.served)
        if likely is None or reason in ("ended", "running", "paused"):
            return None, None
        if reason == "leased":
            return 0, round(self.served.run_ms)
        p50, p90 = likely
        if self.max_running:
            # No more at once than it may have, however many slots are free.
            own = (self.place + self.device_leased - self.max_running + 0.5) * self.own_ms
            p50, p90 = (max(each, own / self.max_running) for each in (p50, p90))
        wait_ms = max(0, until_ms - self.now_ms)
        if self.rate_per_s:
            pace = self.place * 1000 / self.rate_per_s
            p50, p90 = max(p50, wait_ms + pace), max(p90, wait_ms + pace)
        elif reason == "backoff":
            p50, p90 = p50 + wait_ms, p90 + wait_ms
        return round(p50), round(p90)
