"""The service on a socket: uvicorn, one process.

The rule: it listens on this machine only, unless it is told otherwise.
"""

from __future__ import annotations

import socket
from typing import Final

import uvicorn
from fastapi import FastAPI

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8000
#: Connections that are open at once; more are answered 503 by the server itself.
MOST_CONNECTIONS: Final = 4_096
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


def url_of(listener: socket.socket) -> str:
    """Return the URL of what listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: FastAPI, listener: socket.socket, *, log_level: str = "warning") -> None:
    """Serve until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        app,
        log_level=log_level.lower(),
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=STOP_S,
        # Who calls is who connects: a header that says otherwise could say anything.
        proxy_headers=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
