"""The store that a command looks at.

The rule: who only looks, or sends, makes no store. Where there is none, the next step is told.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from fairlane.client import Client
from fairlane.client.store import embedded_folder
from fairlane.errors import StoreUnavailable
from fairlane.settings import Settings

#: Settings of the application that Celery was given (`celery -A … fairlane`), if any.
GIVEN: Final[ContextVar[Settings | None]] = ContextVar("given", default=None)


def settings_here() -> Settings:
    """Return the settings of this environment, or of the application given. Raises InvalidInput."""
    return GIVEN.get() or Settings.from_env()


def opened(settings: Settings | None = None) -> Client:
    """Return a client of the store that is there, by these settings or those of this environment.

    Raises StoreUnavailable when there is none.
    """
    settings = settings or settings_here()
    folder = embedded_folder(settings)
    if folder is not None and not (folder / "lock").exists():
        raise StoreUnavailable(
            f"store: there is none in {folder}; go to the folder in which `fairlane up` runs, name "
            "its store by FAIRLANE_STORE_URL, or start one here with `fairlane up`"
        )
    return Client(settings)
