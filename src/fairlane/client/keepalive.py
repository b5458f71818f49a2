"""TCP's own question whether the other end still lives.

The rule: a connection that carries nothing for a while is asked: a router forgets it, a host goes
away, and nobody is told.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

#: After half a minute of silence, three times, 10 s apart: a host that is gone is noticed in 60 s.
KEEPALIVE: Final[Mapping[str, Any]] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): value
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    },
}
