"""A worker's slots: a long task holds one of them, and nothing short is taken for lost."""

from __future__ import annotations

import psutil

from fairlane import TaskType, samples
from fairlane.files import FileStore
from fairlane.model import TaskState
from support.store import mac
from support.system import DISPATCH, FAIRLANE, OCR, TEXT, running

TYPES = (TaskType("text", "text", TEXT),)


def test_short_tasks_do_not_wait_behind_a_long_one() -> None:
    """A29: two slots, a task that does not end, and ten short ones of the same lane: all are done.

    None of them may be handed to the child that is busy.
    """
    with running(task_types=TYPES) as system:
        system.worker("worker", TEXT, DISPATCH, slots=2)
        with system.gated([mac(1)]) as (long,):
            short = [system.do(mac(1 + number % 3)) for number in range(10)]
            assert {record.state for record in system.ended(short, 60.0)} == {TaskState.DONE}
            assert system.client.task(long).state is TaskState.RUNNING
        assert system.ended([long])[0].state is TaskState.DONE


def test_a_thousand_short_tasks_beside_a_sweep_every_second_are_none_of_them_lost() -> None:
    """A08."""
    with running(task_types=TYPES, sweep_every_ms=1_000, max_per_mac_pending=1_000) as system:
        system.worker("worker", TEXT, DISPATCH, slots=2)
        sent = [system.do(mac(number % 7)) for number in range(1_000)]
        records = system.ended(sent, 100.0)
        assert {(r.state, r.attempt, r.failures) for r in records} == {(TaskState.DONE, 1, 0)}
        assert not system.events("lease_lost")
        system.at_rest()


def test_the_model_is_loaded_in_the_child_and_once() -> None:
    """A45: OCR under prefork; a model that the main process loaded would not work in a child."""
    with running() as system:
        worker = system.worker("worker", OCR, TEXT, DISPATCH, app=FAIRLANE, slots=1)
        main = psutil.Process(worker.pid)

        def maps(process: psutil.Process) -> bool:
            return any("onnxruntime" in part.path for part in process.memory_maps())

        image = samples.image("en_one_word_1bit.png")
        name = FileStore(system.settings.files_dir).put(image)
        (child,) = main.children()
        first = system.client.enqueue(mac(1), "ocr", {"file": name}).task_id
        assert system.ended([first], 100.0)[0].state is TaskState.DONE
        assert maps(child)
        assert not maps(main)
        loaded = child.memory_info().rss
        rest = [system.client.enqueue(mac(1), "ocr", {"file": name}).task_id for _ in range(3)]
        assert {record.state for record in system.ended(rest, 100.0)} == {TaskState.DONE}
        assert main.children() == [child]
        # A second model would be as large again.
        assert child.memory_info().rss < 1.5 * loaded
        assert not maps(main)
