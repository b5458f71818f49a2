"""The Celery tasks, by the names that the requirement document fixes (section 六).

The rule: a task here is a few lines over a service or a verb. The document's flow is two chained
tasks: dispatch claims a device and hands its turn to process, which submits a batch and, while
another device starves, starts the next dispatch.
"""

from __future__ import annotations

from typing import Any

from celery import Celery

from fairlane.celery.attempt import AttemptTask, run_attempt
from fairlane.celery.beat import (
    DISPATCH,
    DISPATCH_QUEUE,
    PROCESS,
    PURGE,
    SWEEP,
    WATERMARK,
    execute_name,
)
from fairlane.celery.publish import publisher
from fairlane.client import Client
from fairlane.faults import fault
from fairlane.model import Turn
from fairlane.services.dispatcher import Dispatcher
from fairlane.services.filekeeper import delete_files
from fairlane.services.janitor import publish as publish_level
from fairlane.services.janitor import purge, sweep
from fairlane.services.load import LoadMeter, Valve
from fairlane.services.turn import take_turn
from fairlane.tasktype import TaskType
from fairlane.verbs import ClaimDevice


def register(app: Celery, client: Client) -> None:
    """Register every task on an application.

    On this one only (`shared=False`): another application of the process may have another store.
    """
    _register_flow(app, client)
    for kind in client.settings.task_types:
        _register_execution(app, client, kind)

    @app.task(name=PURGE, shared=False)
    def purge_expired_mac_tasks() -> int:
        """End the tasks that are past their TTL; return how many. Delete unneeded files."""
        ended = purge(client)
        delete_files(client)
        return ended

    @app.task(name=SWEEP, shared=False)
    def sweep_mac_tasks() -> int:
        """Take back lost leases, ended backoffs, dead turns and silent workers; return how many."""
        return sweep(client)

    @app.task(name=WATERMARK, shared=False)
    def publish_watermark() -> int:
        """Publish the system's level, and record it once a minute; return the pending tasks."""
        return publish_level(client).total_pending


def _register_flow(app: Celery, client: Client) -> None:
    settings = client.settings
    publish = publisher(app)
    dispatcher = Dispatcher(client, publish, holder="beat")
    meter = LoadMeter(others_only=settings.backpressure_cpu == "others")
    valve = Valve(settings.pause_percent, settings.resume_percent)

    @app.task(name=DISPATCH, shared=False)
    def dispatch_next_mac_sensitive_tasks(exclude_mac: str = "") -> int:
        """Hand out what can go; return how many tasks or turns that were."""
        if settings.flow == "claim":
            return dispatcher.dispatch()
        turns = 0
        for lane in settings.lanes:
            turn = client.run(ClaimDevice(lane, exclude_mac))
            if turn is not None:
                fault("dispatcher.after_claim")
                _chain(app, PROCESS, _turn_args(turn))
                turns += 1
        return turns

    @app.task(name=PROCESS, shared=False)
    def process_mac_sensitive_tasks(mac: str, token: str, lane: str = "main") -> int:
        """Submit a batch of the device whose turn it is; return what it has left."""
        released = take_turn(
            client,
            mac,
            token,
            lane=lane,
            holder=app.fairlane.worker_id,
            submit=lambda task: publish([task]),
            pressure=lambda: valve.reason(meter.sample()),
        )
        if released is None:
            return 0
        if released.other_starved:
            _chain(app, DISPATCH, (mac,))
        return released.remaining


def _register_execution(app: Celery, client: Client, kind: TaskType) -> None:
    @app.task(
        name=execute_name(kind.name),
        base=AttemptTask,
        shared=False,
        soft_time_limit=kind.soft_limit_ms / 1000,
        time_limit=kind.hard_limit_ms / 1000,
    )
    def execute_sensitive_job(task_id: str, attempt: int) -> str:
        """Run one attempt of a task; return the state in which it left the task."""
        return run_attempt(client, app.fairlane.worker_id, task_id, attempt)


def _turn_args(turn: Turn) -> tuple[Any, ...]:
    return (turn.mac, turn.token, turn.lane)


def _chain(app: Celery, name: str, args: tuple[Any, ...]) -> None:
    app.send_task(name, args=args, queue=DISPATCH_QUEUE, ignore_result=True)
