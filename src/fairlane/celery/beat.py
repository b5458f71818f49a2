"""What runs by the clock (section 三): the safety net under whatever is event-driven.

The rule: every entry expires before it would run twice in a row, so a worker that was away does not
find a heap of them, and two Beats do no harm.
"""

from __future__ import annotations

from typing import Any, Final

from fairlane.settings import Settings

DISPATCH_QUEUE: Final = "sensitive.dispatch"
DISPATCH: Final = "dispatch_next_mac_sensitive_tasks"
PROCESS: Final = "process_mac_sensitive_tasks"
PURGE: Final = "purge_expired_mac_tasks"
WATERMARK: Final = "publish_watermark"
SWEEP: Final = "sweep_mac_tasks"


def execute_name(task_type: str) -> str:
    """Return the Celery task that runs a task type, e.g. `execute_ocr_sensitive_job`."""
    return f"execute_{task_type}_sensitive_job"


def schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return Beat's entries."""
    every_ms = {
        DISPATCH: settings.dispatch_every_ms,
        WATERMARK: settings.watermark_every_ms,
        PURGE: settings.purge_every_ms,
        SWEEP: settings.sweep_every_ms,
    }
    return {
        name: {
            "task": name,
            "schedule": period_ms / 1000,
            "options": {"queue": DISPATCH_QUEUE, "expires": period_ms / 1000},
        }
        for name, period_ms in every_ms.items()
    }
