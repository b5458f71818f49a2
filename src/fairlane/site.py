"""Sites: named groups of devices that share a lane fairly among each other.

The rule: a name is what a key may end with, so it is short and plain; whatever no rule names is in
the site `default`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fairlane.errors import InvalidSettings

DEFAULT_SITE: Final = "default"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_PREFIX: Final = re.compile(r"(?:[0-9a-f]{2}:){1,7}(?:[0-9a-f]{2})?|[0-9a-f]{2}")


def is_site(name: object) -> bool:
    """Whether this is a site's name: 1 to 64 of a-z, 0-9, `_.-`, a letter or digit first."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class SiteRule:
    """The devices whose canonical MAC begins with `prefix` are in `site`.

    Raises InvalidSettings for a prefix that is no whole bytes of a MAC, or another name.
    """

    prefix: str
    site: str

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, str) or _PREFIX.fullmatch(self.prefix) is None:
            raise InvalidSettings(
                f"sites: {self.prefix!r} is no MAC prefix; write whole bytes, as in 02:42=lab"
            )
        if not is_site(self.site):
            raise InvalidSettings(
                f"sites: {self.site!r}; use 1 to 64 of a-z, 0-9, `_.-`, a letter or digit first"
            )

    @classmethod
    def of(cls, rule: str) -> SiteRule:
        """Read `prefix=site`. Raises InvalidSettings."""
        prefix, equals, site = rule.strip().partition("=")
        if not equals:
            raise InvalidSettings(f"sites: {rule!r} is no prefix=site, as in 02:42=lab")
        return cls(prefix.lower().replace("-", ":"), site)

    def __str__(self) -> str:
        return f"{self.prefix}={self.site}"
