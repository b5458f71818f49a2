"""A task's data and result, as bytes on their way to the store and back.

The rule: what comes back is equal to what went in. The store's scripts never look inside, so only
plain JSON values pass: text keys, no NaN, no lone surrogates, at most 32 levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from fairlane.errors import InvalidData, PayloadTooLarge

MAX_DEPTH: Final = 32
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def encode(what: str, value: Mapping[str, Any], max_bytes: int) -> bytes:
    """Return a JSON object as UTF-8. `what` names it in errors (`data`, `result`).

    Raises InvalidData when it is no object of plain JSON values, PayloadTooLarge over `max_bytes`.
    """
    if type(value) is not dict:
        if not isinstance(value, Mapping):
            raise InvalidData(f"{what}: expected a JSON object, got {type(value).__name__}")
        value = dict(value)
    # A flat object of plain values, the usual one, is checked without a call.
    for key, item in value.items():
        if type(key) is not str or type(item) not in _PLAIN:
            _check(what, value, 1)
            break
    try:
        encoded = _encode(value)
    except UnicodeEncodeError:
        raise InvalidData(f"{what}: text with a lone surrogate cannot be stored as UTF-8") from None
    except ValueError:
        raise InvalidData(f"{what}: a whole number has too many digits to be stored") from None
    if len(encoded) > max_bytes:
        raise PayloadTooLarge(
            f"{what}: {len(encoded)} bytes, the limit is {max_bytes}; "
            "send large things by reference"
        )
    return encoded


def decode(encoded: bytes) -> dict[str, Any]:
    """Return the object that `encode` was given; empty bytes are an empty object."""
    return _decode(encoded) if encoded else {}


def _check(path: str, value: Any, depth: int) -> None:
    """Raise InvalidData for what JSON would refuse, or change on the way."""
    if depth > MAX_DEPTH:
        raise InvalidData(f"{path}: more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidData(f"{path}: key {key!r} is {type(key).__name__}, expected text")
            if type(item) not in _PLAIN:
                _check(f"{path}.{key}", item, depth + 1)
    elif type(value) in (list, tuple):
        for at, item in enumerate(value):
            if type(item) not in _PLAIN:
                _check(f"{path}[{at}]", item, depth + 1)
    else:
        _check_number(path, value)


def _check_number(path: str, value: Any) -> None:
    if type(value) is not float:
        raise InvalidData(f"{path}: {type(value).__name__} is no JSON value")
    if not isfinite(value):
        raise InvalidData(
            f"{path}: NaN and infinity are no JSON numbers; send null or leave the key out"
        )
