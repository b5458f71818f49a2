"""A setting as text: what the environment and the store hold, and back.

The rule: `parse(hint, text_of(value)) == value` for every setting.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

from fairlane.site import SiteRule
from fairlane.tasktype import TaskType

_TASK_TYPES_EXAMPLE: Final = '[{"name": "resize", "lane": "images", "queue": "my.images"}]'


def parse(hint: Any, text: str) -> Any:
    """Return the value of a setting whose type is `hint`. Raises ValueError or InvalidInput."""
    if hint is int:
        if re.fullmatch(r"-?\d{1,15}", text, re.ASCII) is None:
            message = f"{text!r} is no whole number"
            raise ValueError(message)
        return int(text)
    if hint is float:
        return float(text)
    if hint is Path:
        return Path(text)
    if hint == tuple[Path, ...]:
        return tuple(Path(part) for part in text.split(os.pathsep) if part)
    if hint == tuple[SiteRule, ...]:
        return tuple(SiteRule.of(rule) for rule in text.split(",") if rule)
    if hint == tuple[TaskType, ...]:
        return tuple(TaskType.of(item) for item in _json_list(text))
    return text


def _json_list(text: str) -> list[Any]:
    try:
        items = json.loads(text)
    except json.JSONDecodeError:
        items = None
    if not isinstance(items, list):
        message = f"{text!r:.60} is no JSON list; write one, as {_TASK_TYPES_EXAMPLE}"
        raise ValueError(message)
    return items


def text_of(value: Any) -> str:
    """Return a setting's value as one line of text."""
    if isinstance(value, tuple) and all(isinstance(part, Path) for part in value):
        return os.pathsep.join(map(str, value))
    if isinstance(value, tuple) and all(isinstance(part, SiteRule) for part in value):
        return ",".join(map(str, value))
    if isinstance(value, tuple):
        return json.dumps([kind.as_dict() for kind in value], sort_keys=True)
    return str(value)
