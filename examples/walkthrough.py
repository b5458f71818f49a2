"""The demonstration of the requirement document (its section 五), step by step, in both presets.

    python examples/walkthrough.py [--preset seed|default] [--lang en|zh]

It needs `pip install 'fairlane[embedded]'` and nothing else. The store is a real server in a
temporary folder; only its clock is virtual, so that half an hour of waiting is shown in an instant.
What is printed is what the store answered.
"""

from __future__ import annotations

import argparse
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import redis

from fairlane import Client, Receipt, Refusal, Settings, TaskState, verbs
from fairlane.model import Leased, Outcome, Turn

MACS = {"A": "02:00:00:00:00:0a", "B": "02:00:00:00:00:0b", "C": "02:00:00:00:00:0c"}
NAMES = {mac: name for name, mac in MACS.items()}
START_MS = 1_796_000_000_000
HELD_ZH = {"": "", "nothing queued": "无任务", "backoff": "退避中", "turn": "处理中"}


class Walkthrough:
    """One walk through a preset; a step prints what it does and what comes of it."""

    preset: ClassVar[str]
    title: ClassVar[tuple[str, str]]

    def __init__(self, folder: str, lang: str) -> None:
        self.lang = lang
        self.now_ms = START_MS
        self.steps = 0
        self.defers: list[tuple[object, ...]] = []
        settings = Settings(preset=self.preset, store_url=f"embedded://{folder}")
        self.client = Client(settings, clock=lambda: self.now_ms)
        with redis.Redis.from_url(self.client.store_url) as store:
            store.set(self.client.keys.clock, "virtual")  # without it a store takes only its own

    def enqueue(self) -> None:
        self.step("Three devices enqueue their tasks", "三个设备入队任务")
        for name, task_type, count in (("A", "text", 3), ("B", "ocr", 1), ("C", "text", 5)):
            for seq in range(count):
                receipt = self.client.enqueue(MACS[name], task_type, {"seq": seq})
            self.say(
                f"{name} ({MACS[name]}): {count} × {task_type}, {receipt.pending} pending",
                f"{name}（{MACS[name]}）：{count} 个 {task_type} 任务，积压 {receipt.pending}",
            )

    def score(self) -> None:
        self.step(
            "Scores: S(d, t) = min(W, 600) × 1.0, exact whenever it is read",
            "调度分数：S(d, t) = min(W, 600) × 1.0，任何时刻读取都准确",
        )
        self.show_devices()
        self.wait(15.2)
        self.show_devices()

    def show_schedule(self) -> None:
        self.step("The final schedule", "最终调度集状态")
        self.show_devices()

    # How the steps tell of themselves.

    def step(self, en: str, zh: str) -> None:
        self.steps += 1
        print()
        self.say(f"[{self.steps}] {en}", f"[{self.steps}] {zh}", indent=0)

    def say(self, en: str, zh: str, *, indent: int = 4) -> None:
        print(" " * indent + (zh if self.lang == "zh" else en))

    def wait(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)
        at = (self.now_ms - START_MS) / 1000
        self.say(f"… {seconds:g} s pass, t = {at:g} s", f"…… 过了 {seconds:g} 秒，t = {at:g} 秒")

    def table(self, en: str, zh: str, rows: Iterable[Sequence[object]]) -> None:
        head = (zh if self.lang == "zh" else en).split("|")
        cells = [head, *([str(cell) for cell in row] for row in rows)]
        widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = (
                cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
            )
            print("      " + "  ".join(padded).rstrip())

    def show_devices(self) -> None:
        rows = []
        for name, mac in MACS.items():
            device = self.client.device(mac)
            lane = max(device.lanes, key=lambda lane: (lane.rank, lane.pending))
            held = HELD_ZH[lane.held_by] if self.lang == "zh" else lane.held_by
            place = lane.rank + 1 if lane.rank >= 0 else held
            times = (f"{device.waited_ms / 1000:.1f}", f"{device.score:.1f}")
            rows.append((name, device.pending, *times, lane.lane, place))
        self.table(
            "device|pending|W (s)|S(d, t)|lane|place", "设备|积压|W (秒)|S(d, t)|通道|位次", rows
        )

    def show_defers(self) -> None:
        self.table("defer|backoff|state", "次数|退避|状态", self.defers)
        (letter,) = self.client.run(verbs.DeadLetters())
        self.say(
            f"the dead letter keeps cause and payload: {letter.cause}, {letter.payload.decode()}",
            f"死信保留原因和完整数据：{letter.cause}，{letter.payload.decode()}",
        )

    def flood(self, count: int) -> None:
        """Let C enqueue many tasks, and say what became of them."""
        verdicts = self.client.enqueue_many((MACS["C"], "text", {"seq": n}) for n in range(count))
        accepted = sum(isinstance(verdict, Receipt) for verdict in verdicts)
        self.say(
            f"C enqueues {count} tasks: {accepted} accepted, {count - accepted} refused",
            f"C 入队 {count} 个任务：接受 {accepted} 个，拒绝 {count - accepted} 个",
        )

    def offer(self, name: str) -> None:
        """Let a device enqueue one more task, and say what became of it."""
        verdict = self.client.run(verbs.Enqueue(MACS[name], "text", {"seq": 0}))
        if isinstance(verdict, Refusal):
            self.say(
                f"{name} enqueues a task: refused ({verdict.reason}), "
                f"try again in {verdict.retry_after_ms / 1000:g} s",
                f"{name} 入队一个任务：被拒绝（{verdict.reason}），"
                f"{verdict.retry_after_ms / 1000:g} 秒后重试",
            )
        else:
            self.say(f"{name} enqueues a task: accepted", f"{name} 入队一个任务：已接受")

    def show_overload(self) -> None:
        level = self.client.run(verbs.Overload())
        self.say(
            f"(G > 5000) ∨ (|O| > 0) = {level.overloaded}: "
            f"G = {level.global_pending}, |O| = {level.overloaded_devices}",
            f"过载判定 (G > 5000) ∨ (|O| > 0) = {level.overloaded}："
            f"G = {level.global_pending}，|O| = {level.overloaded_devices}",
        )

    # What a worker does with a task.

    def work(self, leased: Leased) -> str:
        """Start and finish a task; return its device's name and its number."""
        started = self.client.run(verbs.Start(leased.task_id, leased.attempt, "worker", "run-1"))
        self.client.run(verbs.Finish(leased.task_id, leased.attempt, {"ok": True}))
        return f"{NAMES[leased.mac]}#{started.task.data['seq']}"

    def put_off(self, leased: Leased, scope: Any) -> Outcome:
        """Defer a task."""
        outcome = self.client.run(verbs.Defer(leased.task_id, leased.attempt, "no GPU", scope))
        wait = f"{(outcome.due_ms - self.now_ms) / 1000:g} s" if outcome.due_ms else "-"
        self.defers.append((outcome.defers, wait, outcome.state))
        return outcome


class Seed(Walkthrough):
    """The document to the letter: aging, newest first, two-step turns, everybody refused."""

    preset = "seed"
    title = (
        "preset seed: the document's formulas, limits and flow",
        "seed 预设：需求文档的公式、阈值和流程",
    )

    def run(self) -> None:
        with self.client:
            self.enqueue()
            self.score()
            self.take_a_turn()
            self.starve()
            self.defer_and_serve_the_others()
            self.defer_until_dead()
            self.overload()
            self.show_schedule()

    def claim(self, exclude: str = "") -> Turn | None:
        return self.client.run(verbs.ClaimDevice("main", exclude))

    def pop(self, turn: Turn) -> tuple[Leased, ...]:
        return self.client.run(verbs.Pop(turn.mac, "main", turn.token)).leased

    def batch(self, turn: Turn) -> int:
        return self.client.run(verbs.Renew(turn.mac, "main", turn.token)).batch

    def release(self, turn: Turn) -> int:
        return self.client.run(verbs.Release(turn.mac, "main", turn.token)).remaining

    def take_a_turn(self) -> None:
        self.step("The scheduler claims the next device", "模拟调度：选取下一个设备")
        turn = self.claim()
        assert turn is not None
        name = NAMES[turn.mac]
        self.say(
            f"{name} is next (all three tie; it came first); lock token {turn.token}, "
            f"batch {self.batch(turn)}",
            f"选中设备 {name}（三者同分，先到先得）；令牌 {turn.token}，批大小 {self.batch(turn)}",
        )
        self.step(
            f"Pop two tasks of {name}: the newest first", f"从 {name} 出队 2 个任务：后进先出"
        )
        for _ in range(2):
            (leased,) = self.pop(turn)
            done = self.work(leased)
            self.say(f"popped, started, done: {done}", f"出队、开始、完成：{done}")
        self.step(f"Release {name}", f"释放 {name} 的运行锁")
        left = self.release(turn)
        self.say(
            f"{left} task left; {name} goes on waiting", f"剩余 {left} 个任务，{name} 继续等待"
        )

    def starve(self) -> None:
        self.step("Starvation: 30 s later every batch is 1", "饥饿检测：30 秒后批大小变为 1")
        self.wait(30)
        turn = self.claim()
        assert turn is not None
        self.turn_of_b = turn
        self.say(
            f"{NAMES[turn.mac]} is next; A and C have waited 30 s or more, "
            f"so its batch is {self.batch(turn)}",
            f"选中设备 {NAMES[turn.mac]}；A 和 C 已等待超过 30 秒，批大小为 {self.batch(turn)}",
        )

    def defer_and_serve_the_others(self) -> None:
        self.step(
            "No GPU for B's task: it is deferred and B backs off; A and C are served",
            "B 的任务没有可用 GPU：延后并退避；继续处理 A 和 C",
        )
        (leased,) = self.pop(self.turn_of_b)
        self.deferred = self.put_off(leased, "device")
        self.release(self.turn_of_b)
        served: Counter[str] = Counter()
        turns = 0
        while turn := self.claim():
            turns += 1
            for _ in range(self.batch(turn)):
                served.update(self.work(leased)[0] for leased in self.pop(turn))
            self.release(turn)
        told = ", ".join(f"{name}: {count}" for name, count in sorted(served.items()))
        self.say(f"tasks done in {turns} turns: {told}", f"{turns} 次调度完成的任务：{told}")
        self.show_devices()

    def defer_until_dead(self) -> None:
        self.step(
            "Backoff(n) = min(30 × 2^(n-1), 600); the sixth defer is the end",
            "Backoff(n) = min(30 × 2^(n-1), 600)；第 6 次进入死信",
        )
        while self.deferred.due_ms:
            self.now_ms = self.deferred.due_ms
            turn = self.claim()
            assert turn is not None
            (leased,) = self.pop(turn)
            self.deferred = self.put_off(leased, "device")
            self.release(turn)
        self.show_defers()

    def overload(self) -> None:
        self.step("Overload: everybody is refused", "过载检测：全部拒绝")
        self.offer("A")
        self.wait(20)
        self.flood(250)
        self.show_overload()
        self.offer("A")
        self.say("one of C's tasks is done", "完成 C 的一个任务")
        turn = self.claim(MACS["A"])
        assert turn is not None
        (leased,) = self.pop(turn)
        self.work(leased)
        self.release(turn)
        self.show_overload()
        self.offer("B")


class Default(Walkthrough):
    """What fairlane does if nobody says otherwise: fair turns, leases, waits, quotas."""

    preset = "default"
    title = (
        "preset default: fair queueing, a lane per resource, nothing lost",
        "default 预设：公平排队，每种资源一个通道，任务不丢失",
    )

    def run(self) -> None:
        with self.client:
            self.enqueue()
            self.score()
            self.claim_and_work()
            self.lose_a_lease()
            self.starve()
            self.hold_and_serve_the_others()
            self.defer_until_dead()
            self.overload()
            self.show_schedule()

    def claim(self, lane: str, want: int) -> tuple[Leased, ...]:
        return self.client.run(verbs.Claim(lane, want)).leased

    def claim_and_work(self) -> None:
        self.step(
            "A dispatcher claims four tasks of the text lane, in one step",
            "调度器一步领取 text 通道的 4 个任务",
        )
        leased = self.claim("text", 4)
        told = " ".join(NAMES[task.mac] for task in leased)
        self.say(
            f"leased: {told}: no lock, and the free places are shared among who waits",
            f"领取：{told}：无需加锁，空位由等待的设备平分",
        )
        self.step("The tasks run, the oldest first", "执行任务：先进先出")
        told = " ".join(self.work(task) for task in leased)
        self.say(f"started, done: {told}", f"开始、完成：{told}")

    def lose_a_lease(self) -> None:
        self.step("A lease that nobody starts comes back", "没有开始的租约会归还")
        (task,) = self.claim("text", 1)
        self.wait(30)
        swept = self.client.run(verbs.Sweep())
        state = self.client.task(task.task_id).state
        self.say(
            f"{NAMES[task.mac]}'s task after the sweep: {state}, {len(swept.lost)} lease lost",
            f"{NAMES[task.mac]} 的任务清扫后：{state}，丢失租约 {len(swept.lost)} 个",
        )

    def starve(self) -> None:
        self.step("Starvation: 30 s later every batch is 1", "饥饿检测：30 秒后批大小变为 1")
        self.wait(30)
        leased = self.claim("text", 2)
        told = " ".join(self.work(task) for task in leased)
        self.say(f"two free places: {told}", f"两个空位：{told}")

    def hold_and_serve_the_others(self) -> None:
        self.step(
            "No worker for B's task: it just waits; A and C are served",
            "B 的任务没有可用 worker：原地等待；继续处理 A 和 C",
        )
        served = Counter(self.work(task)[0] for task in self.claim("text", 10))
        told = ", ".join(f"{name}: {count}" for name, count in sorted(served.items()))
        self.say(f"tasks done: {told}", f"完成的任务：{told}")
        self.show_devices()

    def defer_until_dead(self) -> None:
        self.step(
            "A handler defers B's task: only that task waits, B's others go on",
            "处理函数延后 B 的任务：只有该任务等待，B 的其他任务照常",
        )
        (first,) = self.claim("ocr", 1)
        outcome = self.put_off(first, "task")
        self.client.enqueue(MACS["B"], "ocr", {"seq": 1})
        (second,) = self.claim("ocr", 1)
        done = self.work(second)
        self.say(f"done meanwhile: {done}", f"期间完成：{done}")
        while outcome.state is TaskState.DELAYED:
            self.now_ms = outcome.due_ms
            (again,) = self.claim("ocr", 1)
            outcome = self.put_off(again, "task")
        self.show_defers()

    def overload(self) -> None:
        self.step("Overload: the flooder is refused, nobody else", "过载检测：只拒绝发量异常的设备")
        self.flood(250)
        self.show_overload()
        self.offer("A")
        told = " ".join(NAMES[task.mac] for task in self.claim("text", 2))
        self.say(
            f"two free places go to: {told}, although C has 200 waiting",
            f"两个空位分给：{told}，尽管 C 有 200 个任务在等待",
        )


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def main() -> None:
    """Walk through the presets that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", choices=("seed", "default"), help="one preset; both without")
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    args = parser.parse_args()
    print(
        "时钟是虚拟的：等待与退避瞬间完成。其余都是真实存储的回答。"
        if args.lang == "zh"
        else "The clock is virtual: waits and backoffs pass in an instant. "
        "All else is what a real store answers."
    )
    for walkthrough in (Seed, Default):
        if args.preset in (None, walkthrough.preset):
            print("\n" + "=" * 78)
            print(walkthrough.title[args.lang == "zh"])
            with tempfile.TemporaryDirectory() as folder:
                walkthrough(folder, args.lang).run()


if __name__ == "__main__":
    main()
