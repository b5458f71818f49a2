"""`fairlane worker`, `beat`, `dispatcher`: one process of the system, in the foreground.

The rule: a worker and a Beat are Celery's own, started with the options that fairlane needs; who
knows Celery may as well start `celery -A fairlane.celery worker` himself.
"""

from __future__ import annotations

import importlib
import logging
import signal
import sys
import threading
from pathlib import Path

import rich_click as click

from fairlane.ids import new_worker_id
from fairlane.settings import Settings


def worker_arguments(
    queues: str,
    *,
    concurrency: int,
    name: str,
    pool: str = "prefork",
    log_level: str = "WARNING",
    max_memory_kib: int | None = None,
) -> list[str]:
    """Return the arguments of a Celery worker.

    Gossip and mingle are off: workers learn of each other through the store.
    """
    return [
        "worker", f"--queues={queues}", f"--concurrency={concurrency}", f"--pool={pool}",
        f"--hostname={name}@%h", f"--loglevel={log_level}", "--without-gossip", "--without-mingle",
        *([f"--max-memory-per-child={max_memory_kib}"] if max_memory_kib else []),
    ]  # fmt: skip


def task_queues(settings: Settings) -> str:
    """Return the queues of every task type, for a worker that serves all lanes."""
    return ",".join(dict.fromkeys(kind.queue for kind in settings.task_types))


@click.command(short_help="Run a worker (Celery, prefork).")
@click.option("--queues", help="Queues to serve; all task types' queues by default.")
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Tasks at once.",
)
@click.option("--name", default="worker", show_default=True, help="What the worker is called.")
@click.option("--pool", default="prefork", show_default=True, help="Celery's pool.")
@click.option(
    "--max-memory-per-child",
    "max_memory_mib",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="A child over this is replaced after its task.",
)
@click.option(
    "--handlers",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import a module with handlers of yours first (may be repeated).",
)
@click.option("--loglevel", default="INFO", show_default=True)
def worker(
    *,
    queues: str | None,
    concurrency: int,
    name: str,
    pool: str,
    max_memory_mib: int | None,
    modules: tuple[str, ...],
    loglevel: str,
) -> None:
    """Run a worker. It registers itself, reports its load and offers its slots.

    One that serves `sensitive.dispatch` also dispatches, if no other one leads.
    """
    from fairlane.celery import make_app
    from fairlane.celery.beat import DISPATCH_QUEUE

    _import(modules)
    app = make_app()
    known = [*task_queues(app.fairlane.client.settings).split(","), DISPATCH_QUEUE]
    served = queues or task_queues(app.fairlane.client.settings)
    unknown = [queue for queue in served.split(",") if queue not in known]
    if unknown:
        raise click.BadParameter(
            f"no task goes through {', '.join(unknown)}; known are {', '.join(known)}",
            param_hint="--queues",
        )
    app.worker_main(
        worker_arguments(
            served,
            concurrency=concurrency,
            name=name,
            pool=pool,
            log_level=loglevel,
            max_memory_kib=max_memory_mib and max_memory_mib * 1024,
        )
    )


def _import(modules: tuple[str, ...]) -> None:
    """Import modules of the user's, from where he stands."""
    sys.path.insert(0, str(Path.cwd()))
    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise click.BadParameter(str(error), param_hint="--handlers") from error


@click.command(short_help="Run Beat: the safety net by the clock.")
@click.option("--loglevel", default="INFO", show_default=True)
def beat(*, loglevel: str) -> None:
    """Run Beat: dispatch, sweep, purge and watermark by the clock. Several do no harm."""
    from fairlane.celery import make_app

    make_app().start(["beat", f"--loglevel={loglevel}", "--pidfile="])


@click.command(short_help="Run a dispatcher of its own.")
def dispatcher() -> None:
    """Hand out tasks as workers have room for them; stand by while another dispatcher leads."""
    from fairlane import logs
    from fairlane.celery import make_app
    from fairlane.celery.announce import announcer
    from fairlane.celery.publish import publisher
    from fairlane.services.dispatcher import Dispatcher, LedDispatcher
    from fairlane.services.janitor import Janitor
    from fairlane.services.service import run_forever

    logs.configure(Settings.from_env(), "dispatcher", logging.getLogger().level)
    app = make_app()
    if app.fairlane.client.settings.flow == "turns":
        raise click.UsageError(
            "the store's flow is `turns`: Beat dispatches; run a worker on sensitive.dispatch"
        )
    client, holder, stopped = app.fairlane.client, new_worker_id(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    announced = announcer(app, "dispatcher", holder)
    announced.enter()
    threading.Thread(target=run_forever, args=(announced, stopped), daemon=True).start()
    service = Dispatcher(client, publisher(app), holder)
    led = LedDispatcher(client, service, Janitor(client), holder)
    run_forever(led, stopped)
    led.leave()
    announced.leave()
