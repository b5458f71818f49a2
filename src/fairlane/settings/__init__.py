"""Settings, and how they are read: `settings` the value, `rules` its limits, `text` its texts."""

from fairlane.settings.settings import (
    PREFIX,
    SEED,
    Settings,
    other_variables,
    shared_fields,
    variable_of,
)

__all__ = ["PREFIX", "SEED", "Settings", "other_variables", "shared_fields", "variable_of"]
