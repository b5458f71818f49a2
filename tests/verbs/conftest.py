"""A store for each test, on each server; what a test leaves behind must be healthy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.store import Store

Open = Callable[..., Store]


@pytest.fixture
def open_store(store_url: str) -> Iterator[Open]:
    """Give `open_store(**settings)`, for a test that needs settings of its own; once a test."""
    opened: list[Store] = []

    def open_(**settings: Any) -> Store:
        opened.append(Store(store_url, **settings))
        return opened[-1]

    yield open_
    for store in opened:
        try:
            if not store.is_spoilt:
                store.check()
                store.is_well()
        finally:
            store.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    """Give a store with the default settings."""
    return open_store()
