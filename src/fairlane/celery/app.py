"""The Celery application, made from settings.

The rule: names are those of the requirement document; nothing but JSON travels; no message is worth
more than the record in the store. Every option here has a reason in the facts it answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from celery import Celery
from kombu import Exchange, Queue

from fairlane import detect, tracing
from fairlane.celery import ends, inspect
from fairlane.celery.beat import DISPATCH_QUEUE, execute_name, schedule
from fairlane.celery.patience import PatientAMQP
from fairlane.celery.talk import Talk
from fairlane.celery.tasks import register
from fairlane.celery.worker import WorkerStep
from fairlane.client import Client
from fairlane.files import FileStore
from fairlane.settings import Settings


@dataclass
class Fairlane:
    """What an application's tasks and workers share: the client, and the worker's own id."""

    client: Client
    worker_id: str = ""
    #: Whether it is somebody's own, whose results stand in a result backend.
    is_citizen: bool = False


def make_app(settings: Settings | None = None) -> Celery:
    """Return a Celery application with every task, route and schedule, joined to the store.

    Settings come from the environment unless given. Raises StoreError when the store cannot be
    reached, ConfigMismatch when it was set up otherwise.
    """
    client = Client(settings or Settings.from_env())
    client.ping()
    agreed = client.settings
    Talk(agreed).connect()
    tracing.configure(agreed, "celery")
    broker = client.broker
    app = Celery("fairlane", broker=broker.url, amqp=PatientAMQP, set_as_current=False)
    app.fairlane = Fairlane(client)
    app.conf.update(
        _configuration(agreed),
        broker_transport_options=dict(broker.options),
        broker_use_ssl=broker.use_ssl and dict(broker.use_ssl),
    )
    register(app, client)
    app.steps["worker"].add(WorkerStep)
    inspect.install()
    ends.install()
    detect.configure(FileStore.of(agreed), agreed.keywords_files)
    return app


def _configuration(settings: Settings) -> dict[str, Any]:
    queues = dict.fromkeys([DISPATCH_QUEUE, *(kind.queue for kind in settings.task_types)])
    return {
        "accept_content": ["json"],
        "task_serializer": "json",
        "result_serializer": "json",
        # Results live in the task's record; a result backend would be a second truth.
        "task_ignore_result": True,
        # The finish is recorded before the ack, so a task that ends is never run for its ack alone.
        "task_acks_late": True,
        "worker_prefetch_multiplier": 1,
        # A lost worker's task is counted and taken back by fairlane, never by the broker.
        "task_reject_on_worker_lost": False,
        # Each with an exchange and key of its own: the default ones would deliver to all of them.
        "task_queues": [Queue(name, Exchange(name), routing_key=name) for name in queues],
        "task_default_queue": DISPATCH_QUEUE,
        "task_routes": {
            execute_name(kind.name): {"queue": kind.queue} for kind in settings.task_types
        },
        # A worker that gave up would be gone; one that has it retry is back as soon as its broker.
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # An answer such as READONLY or OOM is the broker's trouble of the moment, and would end the
        # worker process.
        "broker_channel_error_retry": True,
        # What runs goes on: its lease and its end are the store's, not the broker's.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # One bad message would end the worker process.
        "worker_consumer": "fairlane.celery.intake:Intake",
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.1},
        "beat_schedule": schedule(settings),
        # The default scheduler keeps a pickle on the disk; every entry here is due soon anyway.
        "beat_scheduler": "fairlane.celery.scheduler:BoundedScheduler",
        "enable_utc": True,
        "timezone": "UTC",
        "worker_proc_alive_timeout": 60.0,
    }
