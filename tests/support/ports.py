"""Ports of this host that nobody listens on."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Return TCP ports of the loopback that are free now."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
