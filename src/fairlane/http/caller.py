"""Who calls, and what he may do.

The rule: a route asks here, by `caller(request)` and by the role that it needs, and never looks at
a header itself. Who a request comes from is decided by the `Identify` that `create_app` was given;
without one, whoever calls from this machine is its operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

from starlette.requests import HTTPConnection

from fairlane.http.problem import Problem
from fairlane.mac import canonical

Role: TypeAlias = Literal["device", "producer", "viewer", "operator"]
#: What sees everything, and what may change anything.
READERS: Final[tuple[Role, ...]] = ("viewer", "operator")
OPERATORS: Final[tuple[Role, ...]] = ("operator",)
SENDERS: Final[tuple[Role, ...]] = ("device", "producer", "operator")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a role, the device if it is one, the site if it is held to one."""

    role: Role
    mac: str = ""
    site: str = ""
    name: str = ""

    @property
    def scope(self) -> str:
        """Whose idempotency keys these are: two callers' equal keys are two."""
        return self.mac or self.name or self.role

    def needs(self, roles: tuple[Role, ...]) -> Caller:
        """Return this caller. Raises a 403 unless its role is one of these."""
        if self.role not in roles:
            raise Problem(403, "FORBIDDEN", f"a {self.role} may not do this: {_any_of(roles)} may")
        return self

    def owns(self, mac: str) -> None:
        """Raise a 403 if the caller is another device than `mac`."""
        if self.role == "device" and canonical(self.mac) != canonical(mac):
            raise Problem(403, "FORBIDDEN", "a device may send and see its own tasks only")


_FOUND: Final = "fairlane.caller"
Identify: TypeAlias = Callable[[HTTPConnection], Caller]


def loopback_operator(connection: HTTPConnection) -> Caller:
    """Return an operator for a caller on this machine. Raises a 401 for any other."""
    client = connection.client
    if client is None or _is_loopback(client.host):
        return Caller("operator", name="loopback")
    raise Problem(
        401,
        "UNAUTHORIZED",
        "without a key only callers on this machine are let in; set one to use tokens",
        headers={"WWW-Authenticate": "Bearer"},
    )


def caller(connection: HTTPConnection) -> Caller:
    """Return who calls; it is found out once a request. Raises a 401 for nobody that is known."""
    known: Caller | None = connection.scope.get(_FOUND)
    if known is None:
        known = connection.scope[_FOUND] = connection.app.state.identify(connection)
    return known


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _any_of(roles: tuple[Role, ...]) -> str:
    return " or ".join(roles)
