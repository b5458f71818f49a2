"""Run tests over and over, each time in a fork of a process that has collected them all.

    PYTHONPATH=COPY/src python tools/tester.py SECONDS FILE…

The rule: a line of standard input is JSON. `{"tests": […]}` runs these in this order until one
fails; the answer is one line, the test that failed (null when none did, "" when they did not end in
time). `{"files": […], "reach": PATH}` runs all tests of these files, and writes to the path how
long each took and which of the writes that the Lua logs it reached. A fork forgets what this
process has read of Lua: it sees what is on the disk then.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import _pytest.main
import pytest

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from lua_writes import MARK  # noqa: E402 - the path comes first

from support.servers import Server  # noqa: E402

#: To run every test once takes some minutes.
LONGEST_TRACE_S: Final = 3600
_MARK: Final = re.compile(rf"{MARK}(\w+\.\d+)".encode())
OPTIONS: Final = ("-x", "-q", "-p", "no:cacheprovider", "-k", "valkey9", "--tb=no")


class Tester:
    """Answer each line with a run of the tests that were collected once."""

    def __init__(self, asked: TextIO, answers: TextIO, longest_s: float) -> None:
        self.asked, self.answers, self.longest_s = asked, answers, longest_s

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer until there are no more lines, instead of running all that was collected."""
        for line in self.asked:
            told, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                asked = json.loads(line)
                failed = (
                    _reached(session, **asked) if "reach" in asked else _failed(session, **asked)
                )
                os.write(tell, json.dumps(failed).encode())
                os._exit(0)
            os.close(tell)
            answer = _told(pid, told, LONGEST_TRACE_S if '"reach"' in line else self.longest_s)
            self.answers.write(answer + "\n")
            self.answers.flush()
        return True


class Failures:
    """Note the first test that fails."""

    first: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what pytest says of a test."""
        if report.failed and self.first is None:
            self.first = report.nodeid


class Reach:
    """Note how long each test took, and which writes the servers' logs name meanwhile."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, list[str]]] = {}
        self.failed: set[str] = set()
        self._logs: dict[Path, int] = {}
        self._began = 0.0
        start = Server.start

        def noted(name: str, *options: str) -> Server:
            server = start(name, *options)
            self._logs[server.folder / "server.log"] = 0
            return server

        Server.start = noted  # type: ignore[method-assign, assignment]

    def pytest_runtest_logstart(self) -> None:
        """Begin with a test."""
        self._began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what the logs have got since; they are gone when the last test was torn down."""
        if report.failed:
            self.failed.add(report.nodeid)
        marks = set(self.tests.get(report.nodeid, (0, []))[1])
        for log, at in self._logs.items():
            if log.exists():
                with log.open("rb") as file:
                    file.seek(at)
                    marks.update(found.decode() for found in _MARK.findall(file.read()))
                    self._logs[log] = file.tell()
        self.tests[report.nodeid] = (round(time.monotonic() - self._began, 3), sorted(marks))


def _reached(session: pytest.Session, files: Sequence[str], reach: str) -> str | None:
    """Run all tests of some files, and write what they reach; return the first that failed."""
    noted = Reach()
    session.config.pluginmanager.register(noted)
    session.config.option.maxfail = 0
    failed = _failed(session, [
        item.nodeid for item in session.items if item.nodeid.split("::", 1)[0] in files
    ])  # fmt: skip
    passed = {name: noted.tests[name] for name in noted.tests if name not in noted.failed}
    told = {"reached": passed, "failed": sorted(noted.failed)}
    Path(reach).write_text(json.dumps(told), encoding="utf-8")
    return failed


def _failed(session: pytest.Session, tests: Sequence[str]) -> str | None:
    """Run some tests until one fails; return which."""
    _forget()
    items = {item.nodeid: item for item in session.items}
    session.items = [items[name] for name in tests if name in items]
    failures = Failures()
    session.config.pluginmanager.register(failures)
    with contextlib.suppress(session.Failed):
        _pytest.main.pytest_runtestloop(session)
    # The servers of the session end, too.
    session._setupstate.teardown_exact(None)
    return failures.first


def _forget() -> None:
    """Forget what fairlane keeps of its files of Lua."""
    for name, module in list(sys.modules.items()):
        if name.split(".", 1)[0] == "fairlane":
            for value in list(vars(module).values()):
                clear: Any = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()


def _told(pid: int, told: int, longest_s: float) -> str:
    """Return what a fork answers; '""' when it was ended for taking too long."""
    until = time.monotonic() + longest_s
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            break
        time.sleep(0.02)
    with open(told, encoding="utf-8") as pipe:
        return pipe.read() or '""'


def main(longest_s: str, *files: str) -> int:
    """Collect the tests of the files, and answer."""
    # pytest takes both streams for the tests.
    asked = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    tester = Tester(asked, answers, float(longest_s))
    return int(pytest.main([*OPTIONS, *files], plugins=[tester]))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
