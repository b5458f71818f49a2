"""`install(app)`: tasks of an application of yours go through fairlane, each in its device's turn.

The rule: a Celery task stays what it is. Its id, its result in the result backend, its retries, its
callbacks and chains are Celery's; only when it runs is decided by fairlane. A task without a device
goes straight to its queue, as ever.

A task with a device (`apply_async(…, device=mac)` or `headers={"device": mac}`) is stored as a
fairlane task of its queue's lane. What it starts while it runs, and what follows it in a chain, is
its device's as well.
"""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from celery import Celery
from celery.app.trace import build_tracer
from kombu import Exchange, Queue
from kombu.serialization import dumps, loads, prepare_accept_content

from fairlane import handlers
from fairlane.celery import ends, inspect
from fairlane.celery.app import Fairlane
from fairlane.celery.beat import DISPATCH_QUEUE, schedule
from fairlane.celery.patience import PatientAMQP
from fairlane.celery.tasks import register
from fairlane.celery.worker import WorkerStep
from fairlane.client import Client
from fairlane.errors import Fail, InvalidSettings, Refused
from fairlane.handlers import Handler
from fairlane.ids import new_nonce
from fairlane.model import Task
from fairlane.settings import Settings, variable_of
from fairlane.tasktype import TaskType
from fairlane.verbs.accept import MAX_MS

#: The Celery task that stores a task at its `eta`.
SUBMIT: Final = "fairlane.submit"
#: The brokers that can be the store as well, by their URLs' schemes.
_STORES: Final = ("redis", "rediss", "valkey", "valkeys")
_INTAKE: Final = "fairlane.celery.intake:Intake"
#: A limit of a queue's own: a task's `time_limit` is for a message, and this one is fairlane's.
_SOFT_MS, _HARD_MS = 3_600_000, 3_660_000
#: The task that runs now in this process: its Celery id and its device.
_running: Final[ContextVar[tuple[str, str]]] = ContextVar("running", default=("", ""))


def install(app: Celery, settings: Settings | None = None, *, queues: Iterable[str] = ()) -> Celery:
    """Let the tasks of an application go through fairlane when they name a device; return it.

    Each of `queues`, by default every queue that the application names, becomes a task type with
    a lane of its own; FAIRLANE_TASK_TYPES, or the task types of `settings`, say otherwise. Nothing
    is asked of the store before the first task. A store that neither FAIRLANE_STORE_URL nor
    `settings` names is the broker's server. The application's workers consume
    `sensitive.dispatch` too: one of them dispatches. Twice is once. Raises InvalidSettings.
    """
    if hasattr(app, "fairlane"):
        return app
    named = list(queues)
    base = settings or _from_env(app)
    has_types = settings is not None or bool(variable_of("task_types"))
    if named or not has_types:
        kinds = tuple(_type_of(name) for name in named or _queues(app))
        base = replace(base, task_types=kinds)
    client = Client(base)
    app.fairlane = Fairlane(client, is_citizen=True)
    app.amqp_cls = FairAMQP
    app.__dict__.pop("amqp", None)
    register(app, client)
    for kind in base.task_types:
        handlers.handler(kind.name)(_runner(app))
    _register_submit(app)
    app.steps["worker"].add(WorkerStep)
    inspect.install()
    ends.install()
    if app.configured:
        _configure(app)
    else:
        app.on_after_configure.connect(lambda sender, **_: _configure(sender), weak=False)
    return app


def _from_env(app: Celery) -> Settings:
    """Return the environment's settings, with a store that all of the application's share.

    The default, a store in the folder that a process was started in, would be another one for who
    sends and for who works.
    """
    found = Settings.from_env()
    if variable_of("store_url"):
        return found
    broker = str(app.conf.broker_write_url or "")
    if broker.partition("://")[0] not in _STORES:
        raise InvalidSettings(
            "store_url: the application's broker is no single Redis or Valkey, so name the store: "
            "set FAIRLANE_STORE_URL, or give `install` its settings"
        )
    return replace(found, store_url=broker)


def _queues(app: Celery) -> list[str]:
    """Return the queues that an application names, its default one first."""
    conf = app.conf
    given = conf.task_queues or ()
    names = [queue if isinstance(queue, str) else queue.name for queue in given]
    routes = conf.task_routes if isinstance(conf.task_routes, Mapping) else {}
    names += [to["queue"] for to in routes.values() if isinstance(to, Mapping) and "queue" in to]
    default = [] if given else [conf.task_default_queue]
    return [name for name in dict.fromkeys([*default, *names]) if name != DISPATCH_QUEUE]


def _type_of(queue: str) -> TaskType:
    name = re.sub(r"[^a-z0-9_-]", "-", queue.lower())[:32]
    return TaskType(name, name, queue, soft_limit_ms=_SOFT_MS, hard_limit_ms=_HARD_MS)


def _configure(app: Celery) -> None:
    """Set what a worker of ours needs, and leave the rest to the application."""
    conf, settings = app.conf, app.fairlane.client.settings
    queues = list(conf.task_queues or [_direct(conf.task_default_queue)])
    known = {queue if isinstance(queue, str) else queue.name for queue in queues}
    wanted = [*(kind.queue for kind in settings.task_types), DISPATCH_QUEUE]
    conf.task_queues = queues + [_direct(name) for name in wanted if name not in known]
    conf.worker_prefetch_multiplier = 1
    conf.worker_consumer = _INTAKE
    conf.beat_schedule = {**schedule(settings), **(conf.beat_schedule or {})}


def _direct(name: str) -> Queue:
    return Queue(name, Exchange(name), routing_key=name)


class FairAMQP(PatientAMQP):
    """What an application makes its messages by: those with a device go to the store instead."""

    def _create_task_sender(self) -> Any:
        """Return what sends a message."""
        send, app = super()._create_task_sender(), self.app

        def send_task_message(producer: Any, name: str, message: Any, **options: Any) -> Any:
            headers = dict(options.get("headers") or {})
            inherited = _running.get()[1]
            mac = options.pop("device", headers.get("device", inherited))
            kind = _kind(app, options)
            # What one does not say himself, he need not have a lane for.
            if not mac or (kind is None and mac == inherited):
                return send(producer, name, message, **options)
            if kind is None:
                queue = _queue_name(app, options)
                raise InvalidSettings(
                    f"task_types: none goes through the queue {queue!r} of {name}; name it in "
                    "`install(app, queues=[…])` or FAIRLANE_TASK_TYPES, then `fairlane migrate`"
                )
            packed = _packed(app, name, message, options)
            if message.headers.get("eta"):
                return app.tasks[SUBMIT].apply_async(
                    (mac, kind.name, packed), eta=_time(message.headers["eta"]), device="",
                    queue=DISPATCH_QUEUE,
                )  # fmt: skip
            return _store(app, mac, kind.name, packed)

        return send_task_message


def _kind(app: Celery, options: Mapping[str, Any]) -> TaskType | None:
    queue = _queue_name(app, options)
    kinds = app.fairlane.client.settings.task_types
    return next((kind for kind in kinds if kind.queue == queue), None)


def _queue_name(app: Celery, options: Mapping[str, Any]) -> str:
    queue = options.get("queue") or options.get("routing_key") or app.conf.task_default_queue
    return str(getattr(queue, "name", queue))


def _packed(app: Celery, name: str, message: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as the data of a task."""
    serializer = options.get("serializer") or app.conf.task_serializer
    content_type, encoding, body = dumps(message.body, serializer)
    is_bytes = isinstance(body, bytes)
    headers = {key: value for key, value in message.headers.items() if value not in (None, {})}
    headers.pop("eta", None)
    headers |= {key: value for key, value in (options.get("headers") or {}).items()
                if key != "device"}  # fmt: skip
    return {
        "task": name,
        "headers": headers,
        "reply_to": message.properties.get("reply_to", ""),
        "content_type": content_type,
        "content_encoding": encoding,
        "body": base64.b64encode(body).decode() if is_bytes else body,
        "is_base64": is_bytes,
    }


def _store(app: Celery, mac: str, task_type: str, packed: Mapping[str, Any]) -> None:
    """Store a task. Raises Refused when its device, or the system, is full."""
    headers = packed["headers"]
    task_id, retries = headers["id"], headers.get("retries", 0)
    if retries:
        # Celery tries again under the same id; each of fairlane's tasks has one of its own.
        task_id = f"{task_id}:r{retries}"
    elif task_id == _running.get()[0]:
        task_id = f"{task_id}:{new_nonce()[:8]}"
    ttl_ms = None
    if expires := headers.get("expires"):
        left_s = (_time(expires) - app.now()).total_seconds()
        ttl_ms = max(1, min(MAX_MS, int(left_s * 1000)))
    app.fairlane.client.enqueue(mac, task_type, packed, task_id=task_id, ttl_ms=ttl_ms)


def _time(text: str | datetime) -> datetime:
    return text if isinstance(text, datetime) else datetime.fromisoformat(text)


def _register_submit(app: Celery) -> None:
    @app.task(name=SUBMIT, bind=True, shared=False, max_retries=None, ignore_result=True)
    def submit(self: Any, mac: str, task_type: str, packed: dict[str, Any]) -> None:
        """Store a task whose time has come; a refused one is tried again when it is told to."""
        try:
            _store(app, mac, task_type, packed)
        except Refused as refused:
            wait_s = refused.refusal.retry_after_ms / 1000
            raise self.retry(countdown=max(1.0, wait_s), device="") from refused


def _runner(app: Celery) -> Handler:
    """Return what runs a Celery task that was stored, as a worker does, within an attempt."""

    def run_celery_task(task: Task) -> dict[str, Any]:
        """Run it; what comes of it stands in the result backend.

        Raises Fail when it failed: whether it is tried again is Celery's to say.
        """
        data = task.data
        celery_task = app.tasks.get(data["task"])
        if celery_task is None:
            raise Fail(f"no task {data['task']} is registered in this worker; import its module")
        headers = data["headers"]
        body = base64.b64decode(data["body"]) if data["is_base64"] else data["body"]
        accepted = prepare_accept_content(app.conf.accept_content)
        arguments, named, follows = loads(
            body, data["content_type"], data["content_encoding"], accept=accepted
        )
        request = {
            **headers,
            **follows,
            "args": arguments,
            "kwargs": named,
            "is_eager": False,
            "hostname": socket.gethostname(),
            "headers": {"device": task.mac},
            "delivery_info": {"exchange": "", "routing_key": "", "redelivered": task.attempt > 1},
            "reply_to": data["reply_to"],
            "correlation_id": headers["id"],
        }
        trace = build_tracer(celery_task.name, celery_task, app=app)
        token = _running.set((headers["id"], task.mac))
        try:
            _, info, _, said = trace(headers["id"], arguments, named, request)
        finally:
            _running.reset(token)
        if info is not None and info.state == "FAILURE":
            raise Fail(f"{type(info.retval).__name__}: {info.retval}")
        return {"celery": "SUCCESS" if info is None else info.state, "said": str(said)[:200]}

    return run_celery_task
