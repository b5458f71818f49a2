"""`fairlane up` and `fairlane demo`: what dies is started again, and nothing is left behind."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest

from fairlane import Client, Settings, TaskType, watchdog
from fairlane.model import TERMINAL, TaskState
from fairlane.verbs import InspectWorkers
from support.eventually import eventually, eventually_passes
from support.processes import COMMAND, Program, mentioning
from support.service import bearer
from support.store import mac

RESIZE = """
import fairlane


@fairlane.handler("resize")
def resize(task):
    return {}
"""
DEMO = ("beat", "dispatcher", "worker-ocr", "worker-text")
CHILDREN = ("api", *DEMO)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        store_url=f"embedded://{tmp_path}/store",
        data_dir=tmp_path,
        pause_percent=100,
        resume_percent=100,
    )


@pytest.fixture
def up(settings: Settings, tmp_path: Path) -> Iterator[Program]:
    """Give a running `fairlane up`, ready."""
    command = [*COMMAND, "up", "--concurrency=1"]
    with Program(command, tmp_path / "up.log", settings.environ(), watched=False) as up:
        eventually(lambda: "ready:" in up.output(), 60.0)
        yield up


def test_what_up_says_is_all_that_one_needs_to_know(up: Program, tmp_path: Path) -> None:
    first, *lines = up.output().splitlines()
    assert first == "fairlane: starting: the store first"
    assert lines[0] == f"fairlane: store unix://{tmp_path}/store/valkey.sock?db=0"
    url, _, token = lines[1].removeprefix("fairlane: HTTP ").partition("/?token=")
    assert httpx.get(f"{url}/readyz").status_code == 401
    assert httpx.get(f"{url}/readyz", headers=bearer(token)).status_code == 200
    assert sorted(lines[2].removeprefix("fairlane: starting ").split(", ")) == [*CHILDREN]
    assert lines[3:] == ["fairlane: ready: every lane has workers; Ctrl-C stops all"]

    with Client(Settings(store_url=f"embedded://{tmp_path}/store")) as client:
        (worker,) = (w for w in psutil.Process(up.pid).children(recursive=True) if is_text(w))
        worker.send_signal(signal.SIGKILL)
        eventually(
            lambda: "worker-text ended by SIGKILL; starting it again in 0.5 s" in up.output()
        )
        task_id = client.enqueue(mac(1), "text", {"text": "mail ann@example.com"}).task_id
        eventually(lambda: client.task(task_id).state in TERMINAL, 30.0)
        assert client.task(task_id).state is TaskState.DONE

    up.send(signal.SIGINT)
    assert up.wait(20.0) == 0
    assert up.output().splitlines()[-1] == "fairlane: stopping: running tasks may end"
    assert not mentioning(str(tmp_path))


def test_each_part_that_is_killed_is_started_again_and_no_task_is_lost(
    up: Program, tmp_path: Path
) -> None:
    with Client(Settings(store_url=f"embedded://{tmp_path}/store")) as client:
        for name in CHILDREN:
            (part,) = (p for p in psutil.Process(up.pid).children(recursive=True) if is_(name, p))
            rest = part.children(recursive=True)
            part.kill()
            said = f"{name} ended by SIGKILL; starting it again in 0.5 s"
            eventually(lambda: said in up.output(), 30.0)  # noqa: B023 - it is called here
            eventually(lambda: not any(map(lives, rest)), 30.0)  # noqa: B023
            task_id = client.enqueue(mac(1), "text", {"text": "mail ann@example.com"}).task_id
            eventually(lambda: client.task(task_id).state is TaskState.DONE, 60.0)  # noqa: B023
    again = up.output().count("starting it again")
    assert again == len(CHILDREN), "each was started once, and nothing else ended"


def test_a_part_that_dies_time_and_again_is_told_loudly(up: Program) -> None:
    for _ in range(3):
        (beat,) = eventually(
            lambda: [p for p in psutil.Process(up.pid).children(recursive=True) if is_("beat", p)],
            30.0,
        )
        beat.kill()
        eventually(lambda: not lives(beat), 30.0)  # noqa: B023 - it is called here
    eventually(lambda: "that was the 3. time in a row" in up.output(), 30.0)
    waits = re.findall(r"beat ended by SIGKILL; starting it again in ([\d.]+) s", up.output())
    assert waits == ["0.5", "1", "2"]


def test_a_second_up_in_a_folder_says_so_and_changes_nothing(
    up: Program, settings: Settings, tmp_path: Path
) -> None:
    before = mentioning(str(tmp_path)).keys()
    command = [*COMMAND, "up"]
    with Program(command, tmp_path / "2.log", settings.environ(), watched=False) as second:
        assert second.wait(30.0) == 1
        assert f"runs in this folder already (process {up.pid}, {tmp_path})" in second.output()
    assert mentioning(str(tmp_path)).keys() == before


def test_ready_means_workers_of_its_own_not_rows_of_killed_ones(
    up: Program, settings: Settings, tmp_path: Path
) -> None:
    with Client(Settings(store_url=f"unix://{tmp_path}/store/valkey.sock")) as client:
        before = {row.worker_id for row in client.run(InspectWorkers())}
    psutil.Process(up.pid).kill()
    eventually(lambda: not mentioning(str(tmp_path)), 30.0)
    command = [*COMMAND, "up", "--concurrency=1"]
    with Program(command, tmp_path / "2.log", settings.environ(), watched=False) as second:
        eventually(lambda: "ready:" in second.output(), 60.0)
        with Client(Settings(store_url=f"unix://{tmp_path}/store/valkey.sock")) as client:
            rows = client.run(InspectWorkers())
        own = {lane for row in rows if row.worker_id not in before for lane in row.lanes}
        assert own == {"text", "ocr"}


def test_a_killed_store_runs_again_with_its_data(up: Program, tmp_path: Path) -> None:
    store = int((tmp_path / "store" / "valkey.pid").read_text())
    with Client(Settings(store_url=f"unix://{tmp_path}/store/valkey.sock")) as client:
        client.ping()
        psutil.Process(store).kill()
        eventually(lambda: "the store ended; it runs again, with its data" in up.output())
        assert client.settings.lanes == ("ocr", "text")
        eventually_passes(client.ping)
        task_id = client.enqueue(mac(1), "text", {"text": "mail ann@example.com"}).task_id
        # Celery's workers end when their broker does, and are started again with a pause.
        eventually(lambda: client.task(task_id).state in TERMINAL, 60.0)
        assert client.task(task_id).state is TaskState.DONE


def test_up_serves_the_types_of_the_store_and_says_which_it_has_no_handler_for(
    settings: Settings, tmp_path: Path
) -> None:
    types = (TaskType("text", "letters", "my.letters"), TaskType("resize", "images", "my.images"))
    (tmp_path / "resize.py").write_text(RESIZE)
    with Client(replace(settings, task_types=types)) as client:
        client.ping()
        command = [*COMMAND, "up", "--concurrency=1"]
        with Program(command, tmp_path / "up.log", settings.environ(), watched=False) as up:
            eventually(lambda: "ready" in up.output(), 90.0)
            _, _, _, starting, lacking, ready = up.output().splitlines()
            assert starting == "fairlane: starting api, worker-letters, dispatcher, beat"
            assert lacking.startswith("fairlane: lane images has no worker here: no handler for r")
            assert "entry point `fairlane.handlers`" in lacking
            assert ready == "fairlane: ready but for images; Ctrl-C stops all"

            resize, text = (
                client.enqueue(mac(1), kind.name, {"text": "hi"}).task_id for kind in types[::-1]
            )
            eventually(lambda: client.task(text).state is TaskState.DONE, 30.0)
            # What it says to run, with one's own module.
            _, _, said = lacking.rpartition("`fairlane ")
            words = said.strip("`").replace("MODULE", "resize").split()
            with Program([*COMMAND, *words], tmp_path / "own.log", settings.environ()):
                eventually(lambda: client.task(resize).state is TaskState.DONE, 30.0)
            assert (client.task(resize).attempt, client.task(resize).failures) == (1, 0)


def test_a_killed_up_takes_everything_along(up: Program, tmp_path: Path) -> None:
    assert len(mentioning(str(tmp_path))) > len(CHILDREN)
    up.kill()
    eventually_passes(gone(tmp_path), watchdog.GRACE_S + 5.0, 0.2)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    folders = tmp_path / "folders"
    folders.mkdir()
    environ = {"TMPDIR": str(folders)}
    with Program([*COMMAND, "demo"], tmp_path / "demo.log", environ, watched=False) as demo:
        eventually(lambda: len(mentioning(f"{folders}/fairlane-demo-")) > len(DEMO), 30.0)
        demo.send(how)
        assert demo.wait(30.0) == 130
        assert demo.output().splitlines()[-1] == "stopped; nothing was left behind"
    assert not mentioning(str(folders))
    assert not list(folders.iterdir())


def is_(name: str, process: psutil.Process) -> bool:
    """Whether this is the main process of a part: its parent is its watchdog."""
    marks = {"beat": "beat", "api": "api"}
    mark = marks.get(name, f"--hostname={name}@%h")
    try:
        parent = process.parent()
        words = parent.cmdline() if parent is not None else []
        return mark in process.cmdline() and watchdog.__file__ in words
    except psutil.Error:
        return False


def lives(process: psutil.Process) -> bool:
    """Whether a process runs; one that ended may stand in the list until somebody asks for it."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def is_text(process: psutil.Process) -> bool:
    """Whether this is the main process of the worker for texts: its parent is its watchdog."""
    parent = process.parent()
    assert parent is not None
    return (
        "--hostname=worker-text@%h" in process.cmdline() and watchdog.__file__ in parent.cmdline()
    )


def gone(folder: Path) -> Callable[[], None]:
    """Return an assertion that no living process mentions a folder."""

    def nobody() -> None:
        left = mentioning(str(folder))
        assert not left, left

    return nobody
