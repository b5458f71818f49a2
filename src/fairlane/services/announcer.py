"""The announcer: tells the store that a process runs, and what it was started with.

The rule: a new process that disagrees with one that runs does not start; one that runs goes on, and
`fairlane doctor` tells of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from fairlane.client import Client
from fairlane.verbs import Announce, Withdraw


class Announcer:
    """Announces a process when it starts (`enter`), at every step, and takes it out at the end."""

    def __init__(
        self, client: Client, process_id: str, role: str, agreed: Mapping[str, str]
    ) -> None:
        self.every_s = client.settings.heartbeat_every_ms / 1000
        self._client = client
        self._process_id = process_id
        self._agreed = agreed
        self._report = {"role": role, "version": _version()}

    def enter(self) -> None:
        """Announce the process for the first time. Raises ProcessesDisagree, StoreError."""
        self._announce(is_new=True)

    def step(self) -> None:
        """Announce the process again."""
        self._announce(is_new=False)

    def leave(self) -> None:
        """Take the process out."""
        self._client.run(Withdraw(self._process_id))

    def _announce(self, *, is_new: bool) -> None:
        if not self._client.digest:
            self._client.ping()
        # Asked anew each time: a migration gives it other settings.
        report = {**self._report, "digest": self._client.digest}
        self._client.run(Announce(self._process_id, is_new, self._agreed, report))


def _version() -> str:
    try:
        return version("fairlane")
    except PackageNotFoundError:
        return "unknown"
