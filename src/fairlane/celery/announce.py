"""What a process with Celery announces, and what it must have in common with those that run.

The rule: whoever would put messages where nobody looks, or looks where nobody puts them, does not
start. What decides that is Celery's broker and how messages are kept there until they are acked;
all else that processes must agree on is in the store, and checked when they join it.
"""

from __future__ import annotations

import atexit
import logging
import threading
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from celery import Celery, signals

from fairlane.errors import ProcessesDisagree, StoreError
from fairlane.ids import new_worker_id
from fairlane.services.announcer import Announcer
from fairlane.services.service import run_forever

log = logging.getLogger("fairlane.celery")

#: Options of the transport that decide who sees a message when, and what kombu has without them.
_VISIBILITY: Final = {
    "visibility_timeout": 3600,
    "ack_emulation": True,
    "global_keyprefix": "",
}
_PORTS: Final = {"redis": 6379, "amqp": 5672}
_REDIS: Final = ("redis", "rediss", "valkey", "valkeys", "unix", "redis+socket")
_HERE: Final = ("localhost", "::1", "[::1]")


def announcer(app: Celery, role: str, process_id: str) -> Announcer:
    """Return the announcer of a process; nothing is sent yet."""
    return Announcer(app.fairlane.client, process_id, role, agreement(app, role))


def started(app: Celery, role: str, process_id: str) -> Announcer:
    """Announce a process that starts within Celery, which knows one way to stop it: to exit."""
    announced = announcer(app, role, process_id)
    try:
        announced.enter()
    except (ProcessesDisagree, StoreError) as error:
        raise SystemExit(f"error: {error}") from error
    return announced


def agreement(app: Celery, role: str) -> dict[str, str]:
    """Return what this process must have in common with the others. It holds no secrets."""
    conf = app.conf
    # A worker looks there, all others only put there.
    url = conf.broker_read_url if role == "worker" else conf.broker_write_url
    options = conf.broker_transport_options or {}
    service = str(options.get("master_name", ""))
    return {"broker": broker_name(url, app.fairlane.client.store_url, service)} | {
        name: str(options.get(name, otherwise)) for name, otherwise in _VISIBILITY.items()
    }


def broker_name(broker_url: str, store_url: str, service: str = "") -> str:
    """Return where a broker is, without user and password; `service` is kombu's for its sentinels.

    The store's own server is called so: two hosts may know it by different names.
    """
    place, database = _place(broker_url, service)
    if place == _place(store_url)[0]:
        return f"the store, database {database}"
    return f"{place}/{database}"


def _place(url: str, service: str = "") -> tuple[str, str]:
    """Return the server and the database (or virtual host) that a URL names."""
    parts = urlsplit(url.split(";")[0])
    if parts.scheme.endswith("sentinel"):
        # Whoever watches over a service, and in what order they are named, is all the same.
        named = [part for part in parts.path.split("/") if part]
        if parts.scheme != "sentinel":
            service, *named = named
        return f"sentinels' service {service}", "".join(named) or "0"
    kind = "redis" if parts.scheme in _REDIS else parts.scheme.replace("pyamqp", "amqp")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if kind == "redis" and not parts.hostname:
        return f"unix:{parts.path}", query.get("virtual_host", query.get("db", "0")).strip("/")
    host = (parts.hostname or "").replace("::1", "127.0.0.1")
    host = "127.0.0.1" if host in _HERE else host
    port = parts.port or _PORTS.get(kind, 0)
    database = query.get("db", parts.path.strip("/"))
    return f"{kind}://{host}:{port}", (database or "0") if kind == "redis" else database


@signals.beat_init.connect(weak=False)  # type: ignore[untyped-decorator]
def _announce_beat(sender: Any, **_: Any) -> None:
    """Announce a Beat of ours, and go on doing so while it runs."""
    if not hasattr(sender.app, "fairlane"):
        return
    announced = started(sender.app, "beat", new_worker_id())
    stopped = threading.Event()
    threading.Thread(target=run_forever, args=(announced, stopped), daemon=True).start()

    def leave() -> None:
        stopped.set()
        try:
            announced.leave()
        except StoreError as error:
            log.warning("beat: %s; what it announced ends by itself", error)

    atexit.register(leave)
