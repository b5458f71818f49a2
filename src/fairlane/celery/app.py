"""The Celery application, made from settings.

The rule: names are those of the requirement document; nothing but JSON travels; no message is worth
more than the record in the store. Every option here has a reason in the facts it answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from celery import Celery
from kombu import Exchange, Queue

from fairlane import detect
from fairlane.celery.beat import DISPATCH_QUEUE, execute_name, schedule
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


def make_app(settings: Settings | None = None) -> Celery:
    """Return a Celery application with every task, route and schedule, joined to the store.

    Settings come from the environment unless given. Raises StoreError when the store cannot be
    reached, ConfigMismatch when it was set up otherwise.
    """
    client = Client(settings or Settings.from_env())
    client.ping()
    agreed = client.settings
    app = Celery("fairlane", broker=client.broker_url, set_as_current=False)
    app.fairlane = Fairlane(client)
    app.conf.update(_configuration(agreed))
    register(app, client)
    app.steps["worker"].add(WorkerStep)
    detect.configure(FileStore(agreed.files_dir), agreed.keywords_files)
    return app


def _configuration(settings: Settings) -> dict[str, Any]:
    queues = dict.fromkeys([DISPATCH_QUEUE, *(kind.queue for kind in settings.task_types)])
    timeout_s = settings.socket_timeout_ms / 1000
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
        "broker_transport_options": {
            # Redis only: a worker keeps what it has not acked in its memory, and not in the broker
            # too. That list is two transactions a task, for a message that comes back minutes after
            # its lease was lost and is refused then.
            "ack_emulation": False,
            # A publish to a hung broker would block for ever without a timeout.
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
        },
        "broker_connection_retry_on_startup": True,
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.1},
        "beat_schedule": schedule(settings),
        # The default scheduler keeps a pickle on the disk; every entry here is due soon anyway.
        "beat_scheduler": "celery.beat:Scheduler",
        "enable_utc": True,
        "timezone": "UTC",
        "worker_proc_alive_timeout": 60.0,
    }
