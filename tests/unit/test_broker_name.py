"""Where a broker is, in a word that holds no secret and is the same from every host."""

from __future__ import annotations

import pytest

from fairlane.celery.announce import broker_name

STORE = "redis://fairlane:secret@store.example:6379/0"


@pytest.mark.parametrize(
    ("broker", "store", "name"),
    [
        (STORE, STORE, "the store, database 0"),
        ("redis://:other@store.example/2", STORE, "the store, database 2"),
        ("rediss://store.example/", STORE, "the store, database 0"),
        ("redis://other.example:6380/1", STORE, "redis://other.example:6380/1"),
        ("redis://localhost:6379/1?password=x", "valkey://127.0.0.1", "the store, database 1"),
        ("redis+socket:///run/a.sock?virtual_host=1", "unix:///run/a.sock?db=0",
         "the store, database 1"),
        ("redis+socket://:x@/run/b.sock?virtual_host=/3", "unix:///run/a.sock",
         "unix:/run/b.sock/3"),
        ("amqp://guest:guest@rabbit.example//", STORE, "amqp://rabbit.example:5672/"),
        ("pyamqp://guest@rabbit.example:5673/a", STORE, "amqp://rabbit.example:5673/a"),
    ],
)  # fmt: skip
def test_where_a_broker_is(broker: str, store: str, name: str) -> None:
    assert broker_name(broker, store) == name
