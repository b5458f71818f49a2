"""The demo's traffic: what each device sends, when, and what became of it.

The rule: every device speaks through the public client, as a device's gateway would; what is told
in the end is read from the tasks' records, not remembered.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fairlane import samples
from fairlane.cli.stack import Stack
from fairlane.errors import FairlaneError, Refused, StoreUnavailable
from fairlane.files import FileStore
from fairlane.model import TERMINAL, TaskRecord
from fairlane.verbs import InspectTask, InspectTotals

DEVICES: Final = 40
FLOODER: Final = "02:00:00:00:f1:0d"
WARMER: Final = "02:00:00:00:3a:23"
#: Light devices come in groups, as people do when a shift begins: a group's images arrive together.
_GROUP: Final = 8
_GROUP_EVERY_S: Final = 8.0
_LIGHT_TEXTS: Final = 5
_FLOOD_TEXTS: Final = 400
_FLOOD_IMAGES: Final = 160
#: Each about half a second of OCR, and a letter of three seconds.
_QUICK: Final = ("en_two_lines_phone.jpg", "en_one_word_1bit.png", "blank_black.jpg")
_LETTER: Final = "en_letter_pii.png"
_FLOOD_LETTERS: Final = 4
_READY_S: Final = 60.0
#: A machine that is slower than this says how many tasks have not ended; they are not lost.
_LONGEST_S: Final = 300.0
_SAY_EVERY_S: Final = 10.0
_SEED: Final = 20261130


@dataclass
class Sending:
    """One task of the plan: at `at_s` after the start, `mac` sends `data`."""

    at_s: float
    mac: str
    task_type: str
    data: dict[str, Any]


@dataclass
class DeviceOutcome:
    """What a device sent and what became of it."""

    mac: str
    accepted: int = 0
    refused: int = 0
    waits_ms: list[int] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)


@dataclass
class Outcome:
    """What all devices sent, how long it took, and what the store's own counts miss."""

    devices: dict[str, DeviceOutcome]
    seconds: float
    lost: int


class Replay:
    """Sends the plan, follows it to its end and reads what became of it."""

    def __init__(self, stack: Stack, files: FileStore, *, flood: bool) -> None:
        self._stack = stack
        self._client = stack.client
        self._files = files
        self._flood = flood
        self._console = Console(stderr=True)
        self._said_at = 0.0

    def run(self) -> Outcome:
        """Run it all. Raises StoreUnavailable when the workers do not come up."""
        self._await_workers()
        quick = [self._files.put(samples.image(name)) for name in _QUICK]
        self._warm_up(quick[0])
        plan = sorted(self._plan(quick), key=lambda sending: sending.at_s)
        outcomes = {mac: DeviceOutcome(mac) for mac in dict.fromkeys(s.mac for s in plan)}
        started = time.monotonic()
        ids = self._send(plan, outcomes)
        records = self._follow(ids)
        for record in records:
            _note(outcomes[record.mac], record)
        lost = self._client.run(InspectTotals()).lost()
        return Outcome(outcomes, time.monotonic() - started, lost)

    def _await_workers(self) -> None:
        ends_at = time.monotonic() + _READY_S
        self._say("starting store, workers and Beat")
        with self._console.status("starting store, workers and Beat"):
            while not self._stack.is_ready():
                self._stack.watch()
                if time.monotonic() > ends_at:
                    message = (
                        f"demo: a lane has no worker after {_READY_S:.0f} s; try `fairlane up`"
                    )
                    raise StoreUnavailable(message)
                time.sleep(0.1)

    def _warm_up(self, image: str) -> None:
        """Let every worker process build its OCR model, which would be the first device's wait."""
        self._say("loading the OCR model in every worker process")
        with self._console.status("loading the OCR model in every worker process"):
            ids = [
                self._client.enqueue(WARMER, kind, data).task_id
                for _ in range(4)
                for kind, data in (("ocr", {"file": image}), ("text", {"text": "warm"}))
            ]
            self._follow(ids)

    def _plan(self, quick: list[str]) -> Iterator[Sending]:
        chance, texts = random.Random(_SEED), samples.texts()  # noqa: S311 - a plan, no secret
        for number in range(1, DEVICES):
            mac = f"02:00:00:00:00:{number:02x}"
            group_s = 2.0 + number // _GROUP * _GROUP_EVERY_S
            image = {"file": quick[number % len(quick)]}
            yield Sending(group_s + chance.uniform(0, 0.3), mac, "ocr", image)
            for _ in range(_LIGHT_TEXTS):
                text = {"text": chance.choice(texts)}
                yield Sending(group_s + chance.uniform(0, 5.0), mac, "text", text)
        if self._flood:
            images = [quick[number % len(quick)] for number in range(_FLOOD_IMAGES)]
            # Last in its queue, so that a light device's image meets quick ones in the slots.
            images += [self._files.put(samples.image(_LETTER))] * _FLOOD_LETTERS
            for image_name in images:
                yield Sending(0.0, FLOODER, "ocr", {"file": image_name})
            for number in range(_FLOOD_TEXTS):
                yield Sending(0.1, FLOODER, "text", {"text": texts[number % len(texts)]})

    def _send(self, plan: list[Sending], outcomes: dict[str, DeviceOutcome]) -> list[str]:
        """Send every task at its time; a refused one is sent again a little later."""
        ids: list[str] = []
        waiting = list(plan)
        started = time.monotonic()
        with self._progress() as progress:
            bar = progress.add_task("devices send", total=len(plan))
            while waiting:
                now_s = time.monotonic() - started
                due = [sending for sending in waiting if sending.at_s <= now_s]
                waiting = [sending for sending in waiting if sending.at_s > now_s]
                full: set[str] = set()
                for sending in due:
                    receipt = None if sending.mac in full else self._try(sending)
                    if receipt is None:
                        outcomes[sending.mac].refused += sending.mac not in full
                        full.add(sending.mac)
                        sending.at_s = now_s + 0.5
                        waiting.append(sending)
                        continue
                    ids.append(receipt)
                    outcomes[sending.mac].accepted += 1
                    progress.advance(bar)
                self._stack.watch()
                self._count("sent", len(ids), len(plan))
                if now_s > _LONGEST_S:
                    self._give_up(f"{len(waiting)} of {len(plan)} tasks could not be sent")
                    break
                time.sleep(0.02)
        return ids

    def _try(self, sending: Sending) -> str | None:
        try:
            return self._client.enqueue(sending.mac, sending.task_type, sending.data).task_id
        except Refused:
            return None

    def _follow(self, ids: list[str]) -> list[TaskRecord]:
        """Wait until every task has ended, and return their records."""
        ended: dict[str, TaskRecord] = {}
        ends_at = time.monotonic() + _LONGEST_S
        with self._progress() as progress:
            bar = progress.add_task("workers check", total=len(ids))
            while len(ended) < len(ids) and time.monotonic() < ends_at:
                open_ids = [task_id for task_id in ids if task_id not in ended][:200]
                for record in self._client.run_many([InspectTask(task_id) for task_id in open_ids]):
                    if not isinstance(record, FairlaneError) and record.state in TERMINAL:
                        ended[record.task_id] = record
                progress.update(bar, completed=len(ended))
                self._stack.watch()
                self._count("checked", len(ended), len(ids))
                time.sleep(0.1)
        if len(ended) < len(ids):
            self._give_up(f"{len(ids) - len(ended)} of {len(ids)} tasks have not ended")
        return list(ended.values())

    def _say(self, text: str) -> None:
        """Say what is done now where no terminal shows it."""
        if not self._console.is_terminal:
            click.echo(f"demo: {text}", err=True)

    def _count(self, done: str, count: int, of: int) -> None:
        """Say every so often how far it is, where no terminal shows a bar."""
        if time.monotonic() - self._said_at > _SAY_EVERY_S:
            self._said_at = time.monotonic()
            self._say(f"{count} of {of} {done}")

    def _give_up(self, text: str) -> None:
        click.echo(
            f"demo: {text} after {_LONGEST_S:.0f} s, and it stops waiting: this machine is too "
            "busy, or a worker hangs; --no-flood is a third of the work",
            err=True,
        )

    def _progress(self) -> Progress:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        return Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True,
                        disable=not sys.stderr.isatty())  # fmt: skip


def _note(outcome: DeviceOutcome, record: TaskRecord) -> None:
    outcome.states[record.state] += 1
    if record.started_at_ms:
        outcome.waits_ms.append(record.started_at_ms - record.created_at_ms)
    if record.result:
        for kind, count in json.loads(record.result).get("counts", {}).items():
            outcome.findings[kind] += count
