"""Record a stored file, so that tasks may name it."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import FileNotKnown, InvalidData
from fairlane.verbs.files import Kept
from support.store import LANE, Store, mac

NAME, OTHER = "a" * 64, "b" * 64


def test_a_task_can_name_it_from_then_on(store: Store) -> None:
    task = verbs.Enqueue(mac(1), LANE, {"file": NAME}, file=NAME)
    store.refuses(FileNotKnown, task)
    assert store.run(verbs.KeepFile(NAME)) is Kept.NEW
    store.run(task)
    assert store.redis.zrange(store.keys.name("FILE") + NAME, 0, -1) == [task.task_id]


def test_it_stays_for_its_ttl(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    store.clock.advance(store.settings.file_ttl_ms - 1)
    assert store.run(verbs.DoomFiles()) == ()
    store.clock.advance(1)
    assert store.run(verbs.DoomFiles()) == (NAME,)


def test_while_it_is_being_deleted_it_says_so(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    store.clock.advance(store.settings.file_ttl_ms)
    store.run(verbs.DoomFiles())
    with store.unchanged():
        assert store.run(verbs.KeepFile(NAME)) is Kept.DOOMED
    assert store.run(verbs.KeepFile(OTHER)) is Kept.NEW
    store.run(verbs.ForgetFiles([NAME]))
    assert store.run(verbs.KeepFile(NAME)) is Kept.NEW


def test_what_is_no_name(store: Store) -> None:
    for name in ("", "A" * 64, "a" * 63, "a" * 65, "../" + "a" * 61, "a" * 63 + "\n", None, 7):
        store.refuses(InvalidData, verbs.KeepFile(name))  # type: ignore[arg-type]


def test_twice_answers_known_and_keeps_it_longer(store: Store) -> None:
    store.run(verbs.KeepFile(NAME))
    store.clock.advance(store.settings.file_ttl_ms - 1)
    assert store.run(verbs.KeepFile(NAME)) is Kept.KNOWN
    store.clock.advance(1)
    assert store.run(verbs.DoomFiles()) == ()
