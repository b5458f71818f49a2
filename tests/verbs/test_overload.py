"""Tell whether the system is overloaded, by the document's formula (section 4.4)."""

from __future__ import annotations

import pytest

from fairlane import formulas, verbs
from fairlane.model import Overload
from support.store import Store
from verbs.conftest import Open


def test_returns_the_verdict_and_what_was_compared(store: Store) -> None:
    assert store.run(verbs.Overload()) == Overload(False, 0, 0)
    store.enqueue(1, 3)
    assert store.run(verbs.Overload()) == Overload(False, 3, 0)


@pytest.mark.parametrize("loads", [{1: 9}, {1: 10}, {1: 5, 2: 5}, {1: 5, 2: 6}, {1: 6, 2: 6, 3: 1}])
def test_equals_the_formula_at_its_limits(open_store: Open, loads: dict[int, int]) -> None:
    store = open_store(admission="system", max_total_pending=10, max_per_mac_pending=5)
    for device, count in loads.items():
        for _ in range(count):
            if store.run(verbs.Overload()).overloaded:
                break
            store.enqueue(device)
    seen = store.run(verbs.Overload())
    pending = dict(store.client.devices())
    assert seen.global_pending == sum(pending.values())
    assert seen.overloaded_devices == sum(count > 5 for count in pending.values())
    assert seen.overloaded == formulas.overloaded(
        seen.global_pending, seen.overloaded_devices, max_total_pending=10
    )


def test_it_ends_with_what_caused_it(open_store: Open) -> None:
    store = open_store(admission="system", max_per_mac_pending=5)
    store.enqueue(1, 6)
    assert store.run(verbs.Overload()) == Overload(True, 6, 1)
    store.claim()
    assert store.run(verbs.Overload()) == Overload(False, 5, 0)


def test_twice_reads_again(store: Store) -> None:
    with store.unchanged():
        assert store.run(verbs.Overload()) == store.run(verbs.Overload())
