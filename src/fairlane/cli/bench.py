"""`fairlane bench`: what the store's verbs cost beside the bare server, in one run.

The rule: nothing is told but ratios of pairs measured in turn, and the medians behind them; a
machine that is busy slows both sides of a pair. The bare call is the driver's own EVALSHA of a
script that does nothing, carrying the same bytes. The store keeps nothing on the disk here: the
bare call has nothing to keep, and what durability costs is the disk's affair.
"""

from __future__ import annotations

import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import redis
import rich_click as click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fairlane.client import Client
from fairlane.client.wire import Wire
from fairlane.embedded import Embedded
from fairlane.settings import Settings
from fairlane.verbs import Claim, Enqueue, EnqueueMany, Finish, Start

_BARE: Final = "#!lua\nreturn 1"
_TEXT: Final = {"text": "call me on 138-1234-5678 or write to somebody@example.com", "page": 1}
_MANY: Final = 100
_GROWTH: Final = (10, 1_000, 100_000)
_NO_LIMIT: Final = 10**9


@dataclass(frozen=True)
class Row:
    """A measurement: calls a second, and the median of its ratios to what it is compared with."""

    what: str
    per_s: float
    beside: str
    beside_per_s: float
    ratio: float


@click.command(short_help="Measure the store's verbs beside the bare server.")
@click.option("--rounds", default=7, show_default=True, help="Pairs; the median is told.")
@click.option("--calls", default=1_000, show_default=True, help="Calls a side and pair.")
@click.option(
    "--devices",
    multiple=True,
    type=int,
    default=_GROWTH,
    show_default=True,
    help="How many devices have tasks; the first is what the others are beside.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def bench(*, rounds: int, calls: int, devices: tuple[int, ...], as_json: bool) -> None:
    """Measure enqueue, enqueue_many and claim-start-finish on an embedded store of its own.

    A minute or so. The store's cost per task must not grow with the number of devices: the last
    rows compare it at several sizes.
    """
    logging.disable(logging.WARNING)
    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder,
        Embedded(Path(folder), extra={"appendonly": "no"}) as store,
        Client(_settings(store.url, "bench")) as client,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        steps = progress.add_task("measuring", total=4 + len(devices))
        rows = []
        for row in chain(
            _enqueue(client, rounds, calls), _growth(client, rounds, calls, devices, progress)
        ):
            rows.append(row)
            progress.advance(steps)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    table = Table("what", "per s", "beside", "per s", "ratio")
    for row in rows:
        table.add_row(row.what, f"{row.per_s:,.0f}", row.beside, f"{row.beside_per_s:,.0f}",
                      f"{row.ratio:.2f}")  # fmt: skip
    Console(markup=False).print(table)


def _settings(store_url: str, namespace: str) -> Settings:
    return Settings(
        store_url=store_url,
        namespace=namespace,
        max_total_pending=_NO_LIMIT,
        max_per_mac_pending=_NO_LIMIT,
    )


def _enqueue(client: Client, rounds: int, calls: int) -> Iterator[Row]:
    driver = redis.Redis.from_url(client.store_url)
    wire = Wire(client.store_url)
    bare = driver.script_load(_BARE)
    macs = [_mac(number) for number in range(1, _MANY + 1)]
    one = _arguments(client, Enqueue(macs[0], "text", _TEXT))
    hundred = _arguments(client, EnqueueMany([Enqueue(mac, "text", _TEXT) for mac in macs]))
    counter = iter(range(10**9))

    def enqueue() -> None:
        client.enqueue(macs[next(counter) % _MANY], "text", _TEXT)

    def one_device() -> None:
        mac = macs[next(counter) % _MANY]
        client.enqueue_many([(mac, "text", _TEXT)] * _MANY)

    def many_devices() -> None:
        client.enqueue_many([(mac, "text", _TEXT) for mac in macs])

    def bare_one() -> None:
        driver.evalsha(bare, 1, *one)

    def bare_wire() -> None:
        wire.send(("EVALSHA", bare, 1, *one))

    def bare_hundred() -> None:
        driver.evalsha(bare, 1, *hundred)

    few = max(1, calls // 20)
    empty = driver.flushdb
    yield _pair("enqueue", enqueue, "bare EVALSHA (driver)", bare_one, rounds, calls, 1, empty)
    yield _pair("enqueue", enqueue, "bare EVALSHA (our wire)", bare_wire, rounds, calls, 1, empty)
    for what, call in (("one device", one_device), ("100 devices", many_devices)):
        yield _pair(f"enqueue_many of 100, {what}: tasks", call, "bare EVALSHA of 100: tasks",
                    bare_hundred, rounds, few, _MANY, empty)  # fmt: skip
    wire.close()
    driver.close()


def _growth(
    client: Client, rounds: int, calls: int, devices: tuple[int, ...], progress: Progress
) -> Iterator[Row]:
    sized = {}
    for count in devices:
        sized[count] = Client(_settings(client.store_url, f"bench{count}"))
        filling = progress.add_task(f"filling {count:,} devices", total=count)
        _fill(sized[count], count, rounds * calls, partial(progress.advance, filling))
        progress.remove_task(filling)
    first = sized[devices[0]]
    for count, of_this_size in sized.items():
        yield _pair(
            f"claim + start + finish, {count:,} devices",
            partial(_cycle, of_this_size),
            f"{devices[0]:,} devices",
            partial(_cycle, first),
            rounds,
            calls // 2,
        )
    for of_this_size in sized.values():
        of_this_size.close()


def _fill(client: Client, devices: int, tasks: int, advance: Callable[[float], None]) -> None:
    # Every size is measured once, and the first one beside each.
    each = max(1, -(-3 * tasks // devices))
    for first in range(1, devices + 1, max(1, 1_000 // each)):
        last = min(devices, first + max(1, 1_000 // each) - 1)
        batch = [(_mac(n), "text", _TEXT) for n in range(first, last + 1) for _ in range(each)]
        for at in range(0, len(batch), 1_000):
            client.enqueue_many(batch[at : at + 1_000])
        advance(last - first + 1)


def _cycle(client: Client) -> None:
    task = client.run(Claim("text", 1, "bench")).leased[0]
    client.run(Start(task.task_id, task.attempt, "bench", "run"))
    client.run(Finish(task.task_id, task.attempt))


def _pair(
    what: str,
    call: Callable[[], None],
    beside: str,
    other: Callable[[], None],
    rounds: int,
    calls: int,
    units: int = 1,
    empty: Callable[[], object] = lambda: None,
) -> Row:
    """Time the two in turn; each pair gives a ratio, and the median of these is told.

    `empty` clears the store before a pair, so that it holds what a system holds by default (5,000
    tasks at most), not all that was ever measured.
    """
    pairs = []
    for _ in range(rounds):
        empty()
        call()
        other()
        pairs.append((_rate(call, calls, units), _rate(other, calls, units)))
    return Row(
        what,
        statistics.median(mine for mine, _ in pairs),
        beside,
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(mine / theirs for mine, theirs in pairs),
    )


def _rate(call: Callable[[], None], calls: int, units: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return calls * units / (time.perf_counter() - started)


def _arguments(client: Client, verb: Any) -> list[Any]:
    return [client.keys.config, 0, *verb.args(client.settings)]


def _mac(number: int) -> str:
    return ":".join(f"{part:02x}" for part in (2, 0, *number.to_bytes(4)))
