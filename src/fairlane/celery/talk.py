"""How the logs of a worker and of Beat look, started by whatever command.

The rule: text is Celery's own, with secrets masked; JSON takes the place of it. Celery asks before
it sets its loggers up, in the main process and again in each child.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from celery import signals

from fairlane.logs import Masked, configure, masking
from fairlane.settings import Settings

_UID: Final = "fairlane.celery.talk"


class Talk:
    """Answers Celery's questions about logs for one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._role = "beat"

    def connect(self) -> None:
        """Answer from now on, in place of who answered before."""
        asked = {signals.celeryd_init: self.begin_worker, signals.after_setup_logger: self.mask}
        if self._settings.log_format == "json":
            asked[signals.setup_logging] = self.set_up
        for signal in (signals.celeryd_init, signals.after_setup_logger, signals.setup_logging):
            signal.disconnect(dispatch_uid=_UID)
            if signal in asked:
                signal.connect(asked[signal], weak=False, dispatch_uid=_UID)

    def begin_worker(self, **_: Any) -> None:
        """Note that this process is a worker."""
        self._role = "worker"

    def set_up(
        self, loglevel: int | str = logging.INFO, logfile: str | None = None, **_: Any
    ) -> None:
        """Write JSON, to Celery's `--logfile` if there is one."""
        stream = None
        if logfile:
            stream = Path(logfile).open("a", encoding="utf-8")  # noqa: SIM115 - as long as we live
        configure(self._settings, self._role, loglevel or logging.INFO, stream)

    def mask(self, logger: logging.Logger, **_: Any) -> None:
        """Hide what is secret in Celery's own lines."""
        hide = masking(self._settings)
        for handler in logger.handlers:
            if handler.formatter is not None and not isinstance(handler.formatter, Masked):
                handler.setFormatter(Masked(handler.formatter, hide))
