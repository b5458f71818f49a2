"""The service on a socket: uvicorn, one process.

The rule: it listens on this machine only, unless it is told otherwise, and has a key for tokens.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import secrets
import socket
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI

from fairlane.errors import InvalidSettings
from fairlane.http.connections import IDLE_S, Connection, Connections
from fairlane.http.door import is_loopback, start_claims
from fairlane.keyring import SECRET_BYTES, Keyring
from fairlane.settings import Settings
from fairlane.tokens import sign

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8000
#: Connections that are open at once: for more, those make room that have not sent a head.
MOST_CONNECTIONS: Final = 4_096
#: Files that the process has open beside its connections.
_OTHER_FILES: Final = 256
#: What still runs when the service is told to stop has this long.
STOP_S: Final = 5


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises OSError, as for a port that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2_048)
    except BaseException:
        listener.close()
        raise
    return listener


def check_address(app: FastAPI, listener: socket.socket) -> None:
    """Raise InvalidSettings for a socket that others reach, without a key for tokens."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return
    host = listener.getsockname()[0]
    if app.state.door.start_token and not is_loopback(host):
        raise InvalidSettings(
            f"host: {host} can be reached from other machines, and there is no key for tokens; "
            "make one by `fairlane token key`, or listen on 127.0.0.1"
        )


def start_url(app: FastAPI, listener: socket.socket) -> str:
    """Return the URL of what listens, with the operator's token when there is no key."""
    token = app.state.door.start_token
    return url_of(listener) + (f"/?token={token}" if token else "")


def with_key(settings: Settings) -> tuple[Settings, str]:
    """Return settings with a key for tokens, and an operator's token if there was no key."""
    if Keyring(settings):
        return settings, ""
    settings = replace(settings, token_secret=secrets.token_urlsafe(SECRET_BYTES))
    key = Keyring(settings).signer
    assert key is not None
    return settings, sign(start_claims(), key, settings.token_audience)


def url_of(listener: socket.socket) -> str:
    """Return the URL of what listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: FastAPI, listener: socket.socket, *, log_level: str = "warning") -> None:
    """Serve until SIGINT or SIGTERM. Raises InvalidSettings for an address as above."""
    check_address(app, listener)
    run(app, listener, log_level=log_level)


def run(app: Any, listener: socket.socket, *, log_level: str = "warning") -> None:
    """Serve any ASGI application in the same way."""
    connections = Connections(_most_connections())
    config = uvicorn.Config(
        app,
        # It is called, and never looked into.
        http=cast("type[asyncio.Protocol]", partial(Connection, connections=connections)),
        ws="none",
        log_level=log_level.lower(),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_S,
        # Once a second, which is how often uvicorn asks.
        callback_notify=connections.cut,
        timeout_notify=0,
        timeout_graceful_shutdown=STOP_S,
        # Who calls is who connects: a header that says otherwise could say anything.
        proxy_headers=False,
    )
    # What was made so far stays: who looks for garbage need not look through it, time and again,
    # while callers wait.
    gc.collect()
    gc.freeze()
    uvicorn.Server(config).run(sockets=[listener])


def _most_connections() -> int:
    """Return how many connections there can be, once as many files as that may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    elif soft == resource.RLIM_INFINITY:
        soft = wanted
    return max(1, min(MOST_CONNECTIONS, soft - _OTHER_FILES))
