"""What the tests of the service can ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.service import Service


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    """Give the application over an empty store."""
    service = Service(store_url)
    yield service
    service.close()
