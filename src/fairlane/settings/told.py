"""Settings as they are told to people: each with its value and where that came from.

The rule: no password and no secret leaves this room.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from fairlane.settings.mask import MASK, without_secrets
from fairlane.settings.settings import SEED, Settings, variable_of
from fairlane.tasktype import TaskType

_NOT_IN_IT: Final = object()


@dataclass(frozen=True, slots=True)
class Told:
    """A setting: its value as text, and its `source`.

    That is a variable of the environment, `preset …`, `default`, `the program` that was started
    with it, or `the store`, which decides the `shared` ones.
    """

    setting: str
    value: str
    source: str
    about: str
    shared: bool


def told(
    settings: Settings, *, source_of: Callable[[str], str] = variable_of, only_shared: bool = False
) -> list[Told]:
    """Return every setting, or the shared ones; `source_of` names a setting's variable, or ''."""
    preset = SEED if settings.preset == "seed" else {}
    rows = []
    for item in fields(settings):
        if only_shared and not item.metadata["shared"]:
            continue
        value = getattr(settings, item.name)
        source = source_of(item.name)
        if not source and value == preset.get(item.name, _NOT_IN_IT):
            source = f"preset {settings.preset}"
        about, shared = item.metadata["about"], item.metadata["shared"]
        if not source and value == item.default:
            source = "default"
        source = source or ("the store" if shared else "the program")
        rows.append(Told(item.name, shown(item.name, value), source, about, shared))
    return rows


def shown(name: str, value: object) -> str:
    """Return a setting's value for people: task types by their names, no passwords."""
    if isinstance(value, tuple):
        return ", ".join(part.name if isinstance(part, TaskType) else str(part) for part in value)
    text = str(value)
    if name.endswith("_secret"):
        return MASK if text else ""
    # A driver takes secrets from the query as well; these first, since one may have an `@`.
    text = without_secrets(text)
    return re.sub(r"(?<=://).*(?=@)", MASK, text) if name.endswith("_url") else text
