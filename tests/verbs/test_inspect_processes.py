"""Read the announced processes: role, release, settings; and which dispatcher leads."""

from __future__ import annotations

from fairlane import verbs
from fairlane.process import Process, Processes
from support.store import Store


def test_nobody_has_come(store: Store) -> None:
    assert store.run(verbs.InspectProcesses()) == Processes("", ())


def test_who_has_come_and_who_leads(store: Store) -> None:
    report = {"role": "beat", "version": "1.0", "digest": "d", "more": "x"}
    store.run(verbs.Announce("host:1:a", agreed={"broker": "b"}, report=report))
    store.run(verbs.Lead("host:2:b"))
    store.clock.advance(500)
    assert store.run(verbs.InspectProcesses()) == Processes(
        "host:2:b",
        (Process("host:1:a", "beat", "1.0", "d", 500, {"broker": "b", "more": "x"}),),
    )


def test_who_is_silent_for_its_ttl_is_not_shown(store: Store) -> None:
    store.run(verbs.Announce("host:1:a"))
    store.clock.advance(store.settings.lease_ms)
    assert store.run(verbs.InspectProcesses()).living == ()
