"""`fairlane up`: the whole system on this machine, until Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import rich_click as click

from fairlane.errors import StoreError
from fairlane.settings import Settings

_READY_S = 30.0


@click.command(short_help="Run the whole system here: store, workers, HTTP.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(min=1), help="Tasks at once; one a CPU by default."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Of the HTTP service: 8000 by default, or a free one if that is taken.",
)
@click.option("--loglevel", default="WARNING", show_default=True, help="Of workers and Beat.")
def up(*, concurrency: int | None, port: int | None, loglevel: str) -> None:
    """Run the whole system here, until Ctrl-C: store, dispatcher, workers, Beat and HTTP.

    The store is the one that FAIRLANE_STORE_URL names; by default an embedded Valkey that keeps its
    data in .fairlane/store. Its task types decide which workers there are. What dies is started
    again, after half a second and then later and later, without end. One runs in a folder.
    """
    from fairlane.cli.stack import Stack, on_stop, queues_of

    stopped = threading.Event()
    on_stop(lambda *_: stopped.set())

    def say(text: str) -> None:
        click.echo(f"fairlane: {text}", err=True)

    settings = Settings.from_env()
    say("starting: the store first")
    with (
        _only(settings.data_dir),
        _listener(port, say) as listener,
        _key(settings, listener) as (settings, token),
        Stack(
            settings,
            concurrency=concurrency or os.cpu_count() or 1,
            say=say,
            log_level=loglevel,
            api=listener,
        ) as stack,
    ):
        say(f"store {stack.client.store_url}")
        if listener is not None:
            from fairlane.http.serve import url_of

            say(f"HTTP {url_of(listener)}{token and f'/?token={token}'}")
        say(f"starting {', '.join(child.name for child in stack.children)}")
        lacking: dict[str, list[str]] = {}
        for kind in stack.lacking:
            lacking.setdefault(kind.lane, []).append(kind.name)
        for lane, names in lacking.items():
            say(
                f"lane {lane} has no worker here: no handler for {', '.join(names)}; install a "
                "package that brings one (entry point `fairlane.handlers`), or run `fairlane "
                f"worker --handlers MODULE --queues {queues_of(lane, stack.client.settings)}`"
            )
        without = f" but for {', '.join(lacking)}" if lacking else ""
        late_at, ready = time.monotonic() + _READY_S, False
        while not stopped.wait(0.5):
            stack.watch()
            if not ready and stack.is_ready():
                ready = True
                say(f"ready{without or ': every lane has workers'}; Ctrl-C stops all")
            elif not ready and time.monotonic() > late_at:
                late_at = float("inf")
                with suppress(StoreError):
                    idle = ", ".join(stack.idle_lanes())
                    say(f"no slots yet in {idle}; `fairlane workers` says why")
        say("stopping: running tasks may end")


@contextmanager
def _only(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: two stacks of one folder would start everything twice.

    The lock ends with this process, however that ends. Exits when it is held.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            click.echo(
                f"error: `fairlane up` runs in this folder already (process {lock.read().strip()}, "
                f"{folder.absolute()}); stop it there, or add a worker with `fairlane worker`",
                err=True,
            )
            raise SystemExit(1) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextmanager
def _key(settings: Settings, listener: socket.socket | None) -> Iterator[tuple[Settings, str]]:
    """Give the settings with a key for tokens, and an operator's token if there was no key.

    The service might make its own, but another one each time that it is started again.
    """
    if listener is None:
        yield settings, ""
        return
    from fairlane.http.serve import with_key

    yield with_key(settings)


@contextmanager
def _listener(port: int | None, say: Callable[[str], None]) -> Iterator[socket.socket | None]:
    """Give a socket for the HTTP service, which outlives it: who calls meanwhile waits.

    None without the packages of the service. Raises ClickException for a named port that is taken.
    """
    try:
        from fairlane.http.serve import DEFAULT_HOST, DEFAULT_PORT, listen
    except ModuleNotFoundError as error:
        say(f"no HTTP service: {error.name} is not installed; pip install 'fairlane[http]'")
        yield None
        return
    try:
        listener = listen(DEFAULT_HOST, DEFAULT_PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise click.ClickException(
                f"cannot listen on port {port}: {error.strerror}; name another with --port"
            ) from error
        listener = listen(DEFAULT_HOST, 0)
        say(f"port {DEFAULT_PORT} is taken; HTTP has another one")
    with listener:
        yield listener
