"""Who calls, and what he may do.

The rule: a route asks here, by `caller(request)` and by the role that it needs, and never looks at
a header itself. Who a request comes from was decided at the door, or by the `Identify` that
`create_app` was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from starlette.requests import HTTPConnection

from fairlane.grant import Role
from fairlane.http.problem import Problem
from fairlane.mac import canonical

#: Where the door leaves who it let in.
CALLER: Final = "fairlane.caller"
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_TOO_LITTLE: Final = {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
#: What sees everything, and what may change anything.
READERS: Final[tuple[Role, ...]] = ("viewer", "operator")
OPERATORS: Final[tuple[Role, ...]] = ("operator",)
SENDERS: Final[tuple[Role, ...]] = ("device", "producer", "operator")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a role, the device if it is one, the site if it is held to one; by which token."""

    role: Role
    mac: str = ""
    site: str = ""
    name: str = ""
    token_id: str = ""
    expires_s: int = 0

    @property
    def scope(self) -> str:
        """Whose idempotency keys these are: two callers' equal keys are two.

        Those of a name outlive its token; without a name each token is a caller of its own.
        """
        if self.role == "device":
            return self.mac
        return f"name:{self.name}" if self.name else f"token:{self.token_id or self.role}"

    def needs(self, roles: tuple[Role, ...]) -> Caller:
        """Return this caller. Raises a 403 unless its role is one of these."""
        if self.role not in roles:
            raise forbidden(f"a {self.role} may not do this: {_any_of(roles)} may")
        return self

    def owns(self, mac: str) -> None:
        """Raise a 403 if the caller is another device than `mac`."""
        if self.role == "device" and canonical(self.mac) != canonical(mac):
            raise forbidden("a device may send and see its own tasks only")


Identify: TypeAlias = Callable[[HTTPConnection], Caller]


def caller(connection: HTTPConnection) -> Caller:
    """Return who calls. Raises a 401 for nobody that is known."""
    known: Caller | None = connection.scope.get(CALLER)
    if known is None:
        raise Problem(401, "UNAUTHORIZED", "nobody said who calls", headers=_CHALLENGE)
    return known


def forbidden(detail: str) -> Problem:
    """Return a 403: the caller is known, and may not do this."""
    return Problem(403, "FORBIDDEN", detail, headers=_TOO_LITTLE)


def _any_of(roles: tuple[Role, ...]) -> str:
    return " or ".join(roles)
