"""Secrets in texts, hidden: passwords in URLs, and what stands behind a name that tells of one.

The rule: a name is read as a driver reads it, percent signs undone, so that `pass%77ord=` is a
password too; what is hidden loses its value and keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_plus, urlsplit

MASK: Final = "***"
#: The last words of names whose values are secrets.
_SECRET_NAME: Final = re.compile(
    r"(?:(?:\A|[\W_])pass|pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?"
    r"|(?:api|access|account|private|secret|shared|encryption|sas)[-_. ]?key(?:[-_. ]?id)?)\Z",
    re.IGNORECASE,
)
#: A name and what it is set to; a long word is tried once, from its beginning.
_NAMED: Final = re.compile(r"(?<![\w%+.-])([\w%+.-]++=)([^&\s'\"]+)")
_USER_INFO: Final = re.compile(r"(://[^/\s:@'\"]*:)[^/\s@'\"]+(?=@)")


def is_secret(name: str) -> bool:
    """Whether a parameter of this name, as it stands in a URL's query, is a secret."""
    return _SECRET_NAME.search(unquote_plus(name)) is not None


def without_secrets(text: str) -> str:
    """Return a text with `***` for passwords in URLs and for the values of secret parameters."""
    return _NAMED.sub(_kept, _USER_INFO.sub(rf"\1{MASK}", text))


def secrets_of(url: str) -> Iterator[str]:
    """Give the secrets that stand in a URL, as they stand there and as a driver reads them."""
    if "://" not in url:
        return
    try:
        parts = urlsplit(url)
    except ValueError:
        # It leads nowhere; who uses it says so.
        return
    found = [parts.password or ""]
    for parameter in parts.query.split("&"):
        name, _, value = parameter.partition("=")
        if is_secret(name):
            found.append(value)
    for secret in found:
        yield secret
        yield unquote_plus(secret)


def _kept(found: re.Match[str]) -> str:
    return found[1] + MASK if is_secret(found[1][:-1]) else found[0]
