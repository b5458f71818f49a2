"""Fault points: nothing happens without a ticket, and one ticket is one fault."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import faults
from fairlane.faults import POINTS

SOURCE = Path(faults.__file__).parent
PASS = "from fairlane.faults import arm, fault; arm({folder!r}); fault({point!r}); print('lives')"
POINT = "worker.before_start"


def passes(folder: str, point: str = POINT) -> tuple[int, str]:
    """Let a process pass a point; return how it ended and what it said."""
    program = PASS.format(folder=folder, point=point)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.returncode, done.stdout.strip()


def test_every_point_stands_in_the_code_and_every_one_there_is_named() -> None:
    passed = {
        point
        for path in SOURCE.rglob("*.py")
        for point in re.findall(r'\bfault\("([a-z_.]+)"\)', path.read_text(encoding="utf-8"))
    }
    assert passed == set(POINTS)


def test_a_process_that_is_not_armed_passes_every_point(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("kill")
    assert passes("") == (0, "lives")
    assert (tmp_path / POINT).exists()


def test_one_ticket_kills_one_process(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("kill")
    assert passes(str(tmp_path)) == (-signal.SIGKILL, "")
    assert passes(str(tmp_path)) == (0, "lives")


@pytest.mark.parametrize("said", ["", "kil", "terminate"])
def test_what_is_no_ticket_does_nothing(tmp_path: Path, said: str) -> None:
    (tmp_path / POINT).write_text(said)
    assert passes(str(tmp_path)) == (0, "lives")


def test_a_ticket_for_another_point_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "worker.after_start").write_text("kill")
    assert passes(str(tmp_path)) == (0, "lives")
