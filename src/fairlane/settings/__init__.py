"""Settings, and how they are read: `settings` the value, `rules` its limits, `text` its texts.

`told` is how they are told to people.
"""

from fairlane.settings.settings import (
    PREFIX,
    SEED,
    Settings,
    other_variables,
    shared_fields,
    variable_of,
)
from fairlane.settings.told import Told, shown, told

__all__ = [
    "PREFIX",
    "SEED",
    "Settings",
    "Told",
    "other_variables",
    "shared_fields",
    "shown",
    "told",
    "variable_of",
]
