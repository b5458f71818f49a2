"""`fairlane bench`: what the store's verbs cost beside the bare server, in one run.

The rule: nothing is told but ratios of pairs measured in turn, and the medians behind them; a
machine that is busy slows both sides of a pair. A bare call is an EVALSHA of a script that does
nothing, with the eight arguments of each task: through the driver as `pip install redis` gives it,
and with its C parts; and, with the arguments as they are sent, through fairlane's own connection.
An RPUSH of the same payloads is a queue without any promise. The store
keeps nothing on the disk here: the bare call has nothing to keep, and what durability costs is the
disk's affair.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import redis
import rich_click as click
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table

from fairlane.cli.table import show
from fairlane.client import Client
from fairlane.client.wire import Wire
from fairlane.embedded import Embedded
from fairlane.model import Leased
from fairlane.scripts import PREFIX
from fairlane.settings import Settings
from fairlane.verbs import Claim, Enqueue, EnqueueMany, Finish, Purge, Start, Sweep

_BARE: Final = "#!lua\nreturn 1"
_TEXT: Final = {"text": "call me on 138-1234-5678 or write to somebody@example.com", "page": 1}
_MANY: Final = 100
_SWEPT: Final = Sweep().limit
_PURGED: Final = Purge().limit
_GROWTH: Final = (10, 1_000, 100_000)
_NO_LIMIT: Final = 10**9
#: No call should keep the others waiting so long.
_SLOW_US: Final = 10_000
#: What a server keeps of them.
_MOST_SLOW: Final = 128
_FUNCTION: Final = re.compile(rf"{PREFIX}[0-9a-f]+_(\w+)")
#: What is leased is lost by then, however often it was before; what is stored has not expired.
_LATER_MS: Final = 10**8
_TTL_MS: Final = 10**11


@dataclass(frozen=True)
class Rate:
    """Calls (or tasks) a second, and the server's own µs for each."""

    per_s: float
    server_us: float

    @classmethod
    def of(cls, rates: list[Rate]) -> Self:
        """Return the medians."""
        return cls(
            statistics.median(rate.per_s for rate in rates),
            statistics.median(rate.server_us for rate in rates),
        )


@dataclass(frozen=True)
class Row:
    """A measurement, what it is compared with, and the median of the ratios of the pairs."""

    what: str
    per_s: float
    server_us: float
    beside: str
    beside_per_s: float
    beside_server_us: float
    ratio: float

    @classmethod
    def of(cls, what: str, mine: list[Rate], beside: str, theirs: list[Rate]) -> Self:
        """Compare rates that were measured in turn."""
        one, other = Rate.of(mine), Rate.of(theirs)
        pairs = zip(mine, theirs, strict=True)
        ratio = statistics.median(left.per_s / right.per_s for left, right in pairs)
        return cls(
            what, one.per_s, one.server_us, beside, other.per_s, other.server_us, ratio
        )  # fmt: skip


@click.command(short_help="Measure the store's verbs beside the bare server.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=7,
    show_default=True,
    help="Pairs; the median is told.",
)
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Calls a side and pair.",
)
@click.option(
    "--devices",
    multiple=True,
    type=click.IntRange(1, 10_000_000),
    default=_GROWTH,
    show_default=True,
    help="How many devices have tasks; the first is what the others are beside. A million takes "
    "minutes to fill, and 2 GB of memory.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def bench(*, rounds: int, calls: int, devices: tuple[int, ...], as_json: bool) -> None:
    """Measure the verbs of a task's life on an embedded store of its own.

    A minute or so. First enqueue and enqueue_many beside bare calls; then claim, start, finish,
    sweep and purge at several numbers of devices, with which their cost must not grow. `server µs`
    is the server's own time for a call (or a task), as its INFO commandstats tells.
    """
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder,
        Embedded(Path(folder), extra={"appendonly": "no"}) as store,
        redis.Redis.from_url(store.url) as server,
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
    ):
        rows = [
            *_enqueue(store.url, server, rounds, calls, progress),
            *_growth(store.url, server, rounds, calls, devices, progress),
        ]
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    table = Table("what", *("per s", "server µs"), "beside", *("per s", "server µs"), "ratio")
    for row in rows:
        table.add_row(
            *(row.what, f"{row.per_s:,.0f}", f"{row.server_us:.1f}"),
            *(row.beside, f"{row.beside_per_s:,.0f}", f"{row.beside_server_us:.1f}"),
            f"{row.ratio:.2f}",
        )
    show(table)


def _settings(store_url: str, namespace: str) -> Settings:
    return Settings(
        store_url=store_url,
        namespace=namespace,
        max_total_pending=_NO_LIMIT,
        max_per_mac_pending=_NO_LIMIT,
        max_per_site_pending=_NO_LIMIT,
        task_ttl_ms=_TTL_MS,
    )


def _enqueue(
    url: str, server: redis.Redis, rounds: int, calls: int, progress: Progress
) -> Iterator[Row]:
    """Measure what stores tasks, each beside every kind of bare call."""
    bare = server.script_load(_BARE)
    macs = [_mac(number) for number in range(1, _MANY + 1)]
    counter = iter(range(10**9))
    few = max(1, calls // 20)
    steps = progress.add_task("enqueue", total=3 * rounds)
    with ExitStack() as stack:
        client = Client(_settings(url, "bench"))
        stack.callback(lambda: client.close())  # the last of them
        wire = Wire(url)
        stack.callback(wire.close)
        plain = stack.enter_context(_plain_driver(url))

        def empty() -> None:
            """Begin again with a client that knows of no task: it would tell that they are gone."""
            nonlocal client
            client.close()
            server.flushdb()
            client = Client(_settings(url, "bench"))

        def one() -> None:
            client.enqueue(macs[next(counter) % _MANY], "text", _TEXT)

        def of_one_device() -> None:
            mac = macs[next(counter) % _MANY]
            client.enqueue_many([(mac, "text", _TEXT)] * _MANY)

        def of_many_devices() -> None:
            client.enqueue_many([(mac, "text", _TEXT) for mac in macs])

        def others(tasks: int) -> dict[str, tuple[Callable[[], object], str]]:
            """Return the calls that carry the same, and the commands that they are."""
            items = [Enqueue(mac, "text", _TEXT) for mac in macs[:tasks]]
            verb: Any = items[0] if tasks == 1 else EnqueueMany(items)
            head = (bare, 1, client.keys.config, 0)
            sent: Any = (*head, *verb.args(client.settings))
            each: Any = (*head, *(arg for item in items for arg in item.args(client.settings)))
            payloads = [item.payload for item in items]
            many = f" of {tasks}" if tasks > 1 else ""
            unit = ": tasks" if tasks > 1 else ""
            by_wire = partial(wire.send, ("EVALSHA", *sent))
            return {
                f"bare EVALSHA{many} (plain driver){unit}": (
                    partial(plain.evalsha, *each),
                    "evalsha",
                ),
                f"bare EVALSHA{many} (driver){unit}": (partial(server.evalsha, *each), "evalsha"),
                f"bare EVALSHA{many} (our wire){unit}": (by_wire, "evalsha"),
                f"RPUSH{many} (driver){unit}": (partial(server.rpush, "bare", *payloads), "rpush"),
            }

        for what, call, tasks, times in (
            ("enqueue", one, 1, calls),
            (f"enqueue_many of {_MANY}, one device: tasks", of_one_device, _MANY, few),
            (f"enqueue_many of {_MANY}, {_MANY} devices: tasks", of_many_devices, _MANY, few),
        ):
            mine: list[Rate] = []
            beside: dict[str, list[Rate]] = {}
            for _ in range(rounds):
                # A store holds 5,000 tasks at most by default, not all that was ever measured.
                empty()
                call()
                mine.append(_rate(server, call, "fcall", times, tasks))
                for name, (other, command) in others(tasks).items():
                    other()
                    rate = _rate(server, other, command, times, tasks)
                    beside.setdefault(name, []).append(rate)
                progress.advance(steps)
            for name, theirs in beside.items():
                yield Row.of(what, mine, name, theirs)
    progress.remove_task(steps)


def _plain_driver(url: str) -> redis.Redis:
    """Return the driver without hiredis, as most have it."""
    parts: Any = redis.connection
    encoder = parts.Encoder("utf-8", "strict", decode_responses=False)
    return redis.Redis.from_url(
        url,
        protocol=2,
        parser_class=parts._RESP2Parser,
        command_packer=parts.PythonRespSerializer(6_000, encoder.encode),
    )


def _growth(
    url: str,
    server: redis.Redis,
    rounds: int,
    calls: int,
    devices: tuple[int, ...],
    progress: Progress,
) -> Iterator[Row]:
    """Measure what takes tasks out, at several numbers of devices in turn."""
    with ExitStack() as stack:
        sizes = {}
        for count in devices:
            sizes[count] = stack.enter_context(_Size(url, server, count))
            filling = progress.add_task(f"filling {count:,} devices", total=count)
            sizes[count].fill((rounds + 2) * calls, partial(progress.advance, filling))
            progress.remove_task(filling)
        measuring = progress.add_task("claim to purge", total=rounds * len(sizes))
        for size in sizes.values():
            size.measure(10)  # the scripts are loaded by then
        server.config_set("slowlog-log-slower-than", _SLOW_US)
        server.slowlog_reset()
        measured: dict[int, list[Mapping[str, Rate]]] = {count: [] for count in sizes}
        for _ in range(rounds):
            for count, size in sizes.items():
                measured[count].append(size.measure(calls))
                progress.advance(measuring)
        progress.remove_task(measuring)
        progress.console.print(told_slow(server.slowlog_get(_MOST_SLOW)))
    first = devices[0]
    for what in measured[first][0]:
        beside = [rates[what] for rates in measured[first]]
        for count, rounds_of in measured.items():
            mine = [rates[what] for rates in rounds_of]
            yield Row.of(f"{what}, {count:,} devices", mine, f"{first:,} devices", beside)


def told_slow(calls: list[Any]) -> str:
    """Return how many calls of a SLOWLOG there are, and the longest of each verb or command."""
    told = f"{len(calls)} calls kept the store for over {_SLOW_US // 1000} ms; 0 is the aim"
    longest: dict[str, int] = {}
    for call in calls:
        command, _, rest = call["command"].decode(errors="replace").partition(" ")
        # A function's name is that of its library, and the verb's.
        verb = _FUNCTION.match(rest) if command == "FCALL" else None
        name = verb[1] if verb else command
        longest[name] = max(longest.get(name, 0), call["duration"])
    named = (f"{name} {us / 1000:.1f} ms" for name, us in longest.items())
    return f"{told}: the longest {', '.join(named)}" if calls else told


class _Size:
    """A number of devices with tasks, in a namespace of their own."""

    def __init__(self, url: str, server: redis.Redis, devices: int) -> None:
        self._server = server
        self._devices = devices
        self._settings = _settings(url, f"bench{devices}")
        self._client = Client(self._settings)
        seconds, microseconds = server.time()
        later_ms = seconds * 1000 + microseconds // 1000 + _LATER_MS
        self._later = Client(self._settings, clock=lambda: later_ms)
        server.set(self._client.keys.clock, "bench")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()
        self._later.close()

    def fill(self, tasks: int, advance: Callable[[float], None]) -> None:
        """Give every device the same number of tasks, `tasks` or more in all."""
        each = -(-tasks // self._devices)
        at_once = max(1, 1_000 // each)
        for first in range(1, self._devices + 1, at_once):
            macs = [_mac(n) for n in range(first, min(first + at_once, self._devices + 1))]
            batch = [(mac, "text", _TEXT) for mac in macs for _ in range(each)]
            for at in range(0, len(batch), 1_000):
                self._client.enqueue_many(batch[at : at + 1_000])
            advance(len(macs))

    def measure(self, calls: int) -> dict[str, Rate]:
        """Return the rates of every verb; each finds what the one before it left."""
        run, later = self._client.run, self._later.run
        leased: list[Leased] = []

        def claim(want: int) -> None:
            leased.extend(run(Claim("text", want, "bench")).leased)

        def start() -> None:
            task = next(tasks)
            run(Start(task.task_id, task.attempt, "bench", "run"))

        def finish() -> None:
            task = next(tasks)
            run(Finish(task.task_id, task.attempt))

        rates = {"claim of 1": self._rate(partial(claim, 1), calls)}
        tasks = iter(leased)
        rates["start"] = self._rate(start, calls)
        tasks = iter(leased)
        rates["finish"] = self._rate(finish, calls)
        tens = max(1, calls // 10)
        rates["claim of 10: tasks"] = self._rate(partial(claim, 10), tens, 10)
        sweeps = -(-10 * tens // _SWEPT)
        lost = 10 * tens / sweeps
        rates[f"sweep of {_SWEPT} lost: tasks"] = self._rate(partial(later, Sweep()), sweeps, lost)
        rates["sweep, nothing due"] = self._rate(partial(run, Sweep()), max(1, calls // 10))
        # Devices of their own: an expired task stands at the head of its queue.
        batch = [
            Enqueue(_mac(10**8 + at % 10), "text", _TEXT, ttl_ms=1) for at in range(5 * _PURGED)
        ]
        self._client.enqueue_many(batch)
        rates[f"purge of {_PURGED}: tasks"] = self._rate(partial(later, Purge()), 5, _PURGED)
        return rates

    def _rate(self, call: Callable[[], object], calls: int, tasks: float = 1) -> Rate:
        return _rate(self._server, call, "fcall", calls, tasks)


def _rate(
    server: redis.Redis, call: Callable[[], object], command: str, calls: int, tasks: float
) -> Rate:
    """Time a call of so many tasks, and ask the server for its own part."""
    server.config_resetstat()
    started = time.perf_counter()
    for _ in range(calls):
        call()
    took = time.perf_counter() - started
    stats: Any = server.info("commandstats")
    usec: int = stats.get(f"cmdstat_{command}", {}).get("usec", 0)
    return Rate(calls * tasks / took, usec / calls / tasks)


def _mac(number: int) -> str:
    return ":".join(f"{part:02x}" for part in (2, 0, *number.to_bytes(4)))
