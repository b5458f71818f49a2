"""Celery's broker, derived from a URL of ours: what kombu calls the same server.

The rule: a broker is the server that a store of this URL would be, by the same means (TLS with
certificates that are checked, sentinels, timeouts); a URL that is kombu's alone stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from fairlane.client.keepalive import KEEPALIVE
from fairlane.client.sentinel import SCHEMES, SENTINEL_S, SentinelUrl
from fairlane.errors import InvalidSettings

_PLAIN: Final = {"valkey": "redis", "valkeys": "rediss"}


@dataclass(frozen=True)
class Broker:
    """A broker as Celery takes it: `broker_url`, `broker_transport_options`, `broker_use_ssl`."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    use_ssl: Mapping[str, Any] | None = None


def broker_of(url: str, timeout_s: float) -> Broker:
    """Return the broker that a URL names, which gives up on a server after `timeout_s`.

    Raises InvalidSettings for a URL that names no server.
    """
    scheme, _, rest = url.partition("://")
    scheme = _PLAIN.get(scheme, scheme)
    if scheme == "sentinel":
        raise InvalidSettings(
            "broker_url: sentinel:// does not name its service; write "
            "redis+sentinel://host:26379,host:26379/service/0"
        )
    options = _redis_options(timeout_s)
    if scheme in SCHEMES:
        return _sentinel(SentinelUrl.of(url), options)
    if scheme == "redis+socket":
        return Broker(url, options)
    if scheme == "unix":
        return Broker(_socket(url), options)
    if scheme in ("redis", "rediss"):
        server = _server(f"{scheme}://{rest}")
        parts = urlsplit(url)
        plain = f"{scheme}://{parts.netloc}/{server.get('db', 0)}"
        return Broker(plain, options, _tls(server) if scheme == "rediss" else None)
    return Broker(url, _amqp_options(timeout_s) if scheme.startswith(("amqp", "pyamqp")) else {})


def _redis_options(timeout_s: float) -> dict[str, Any]:
    return {
        # A worker keeps what it has not acked in its memory, and not in the broker too. That list
        # is two transactions a task, for a message that comes back minutes after its lease was
        # lost and is refused then.
        "ack_emulation": False,
        # A publish to a hung broker would block for ever without a timeout.
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        # A worker waits for messages without one: it asks after this time whether anybody is there,
        # and connects anew after twice that.
        "health_check_interval": max(1, round(timeout_s)),
        **KEEPALIVE,
    }


def _amqp_options(timeout_s: float) -> dict[str, Any]:
    # Not what it reads: a worker's connection may be silent for long, and has heartbeats for that.
    return {"write_timeout": timeout_s}


def _sentinel(url: SentinelUrl, options: dict[str, Any]) -> Broker:
    server = _server(url.store_url)
    login = urlsplit(url.store_url).netloc.rpartition("@")
    # Each with all of it: whichever is asked first is where kombu looks for the rest.
    nodes = ";".join(
        f"sentinel://{login[0]}{login[1]}{f'[{host}]' if ':' in host else host}:{port}/{url.db}"
        for host, port in url.nodes
    )
    tls = _tls(server) if url.store_url.startswith("rediss") else None
    timeout_s = min(options["socket_timeout"], SENTINEL_S)
    sentinel = {
        **url.sentinel_login,
        **({"ssl": True, **tls} if tls else {}),
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
    }
    return Broker(nodes, {**options, "master_name": url.service, "sentinel_kwargs": sentinel}, tls)


def _socket(url: str) -> str:
    server = _server(url)
    login = urlsplit(url).netloc.rpartition("@")
    path = quote(server.get("path", ""))
    return f"redis+socket://{login[0]}{login[1]}{path}?virtual_host={server.get('db', 0)}"


def _server(url: str) -> dict[str, Any]:
    read: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
    return read


def _tls(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return the driver's options of TLS; without a word, kombu would check no certificate."""
    given = {name: value for name, value in server.items() if name.startswith("ssl_")}
    return {"ssl_cert_reqs": "required", **given}
