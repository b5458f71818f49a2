"""Delete each write of the Lua files in turn, and name those that no test misses.

    python tools/mutants.py                 every file
    python tools/mutants.py --verb claim    one file; a shared one is named so too: --verb _turn
    python tools/mutants.py --list          what there is to delete, without a test

The rule: the checkout is never edited. Each mutant stands in a copy of `src` that the tests import;
a verb's is tried by that verb's own tests, one of a shared file by those of the verbs that call it.
`mutants.toml` lists the writes that no test can miss, each with its reason. Exits with 1 when a
write is that no test misses, or when a reason stands for nothing any more.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from lua_writes import Mutant, mutants, writers  # noqa: E402 - the path comes first

from fairlane.scripts import PRELUDE, SHARED, definitions, read, verbs  # noqa: E402
from fairlane.settings import other_variables  # noqa: E402

TESTS: Final = ROOT / "tests" / "verbs"
EXEMPT: Final = Path(__file__).with_suffix(".toml")
TESTER: Final = Path(__file__).with_name("tester.py")
#: A mutant that loops is ended after this long.
LONGEST_S: Final = 180
#: What ends a lease is charged, counted, and makes room.
_ENDS: Final = ("finish", "fail", "defer", "cancel", "sweep")
#: The tests of a subject; its verbs and shared files are what they are about.
TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "admission": ("_admission", "enqueue", "enqueue_many", "_device", "measure"),
    "aging_order": ("_order", "claim"),
    "cost": ("_cost", "_tags", "_turn", "heartbeat", "claim", "enqueue", "enqueue_many", *_ENDS),
    "corrupt": ("_dead", "_task", "_turn", "claim", "pop", "start", "sweep", "purge"),
    "dead_letters": ("_dead", "redrive", "drop"),
    "epoch": ("_epoch", "join", "check_epoch", "acknowledge"),
    "fair_order": ("_order", "_tags", "claim", "configure"),
    "full_store": ("_admission", "measure", "enqueue", "enqueue_many"),
    "idempotency": ("_receipts", "enqueue", "enqueue_many", "sweep"),
    "quarantine": ("_dead", "_task", "_turn", "claim", "pop", "start", "sweep", "purge"),
    "inspect_times": ("_times", *_ENDS),
    "limits": ("_limits", "_order", "_turn", "configure", "claim", *_ENDS),
    "sites": ("_sites", "_order", "_tags", "_device", "configure", "redrive", "migrate"),
}
#: What each shared file is tried by first, the quickest and most telling one at the head.
FIRST: Final = ("claim", "cancel", "finish", "sweep", "defer", "fail", "purge", "pop", "enqueue")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `killed` by a test, `exempt` for a reason, or it `survived`."""

    mutant: Mutant
    outcome: str
    by: str

    def row(self) -> dict[str, Any]:
        """Return it as one row of the report."""
        mutant = self.mutant
        where = {"file": f"{mutant.file}.lua", "line": mutant.line, "write": mutant.write}
        return where | {"outcome": self.outcome, "by": self.by}


def every_mutant(only: Sequence[str]) -> list[Mutant]:
    """Return the mutants of all files, or of some."""
    known = {*verbs(), *SHARED}
    if unknown := set(only) - known:
        raise SystemExit(f"--verb: no {', '.join(sorted(unknown))}; there is {sorted(known)}")
    wrote = writers(definitions())
    return [
        mutant for name in (only or sorted(known)) for mutant in mutants(name, read(name), wrote)
    ]


def tests_of(file: str) -> list[Path]:
    """Return the test files that a file is tried by, in the order in which they are run."""
    topics = [topic for topic, files in TOPICS.items() if file in files]
    if file in (PRELUDE, *SHARED):
        named = set(re.findall(r"^local (?:function )?(\w+)", read(file), re.MULTILINE))
        users = [verb for verb in verbs() if named & _words_of(verb)]
        names = sorted(users, key=lambda verb: (*FIRST, verb).index(verb))
        names = [*topics, *names, "any_order"]
    else:
        names = [file, *topics]
    return [path for name in names if (path := TESTS / f"test_{name}.py").exists()]


def _words_of(verb: str) -> set[str]:
    """Return the names that a verb's file uses, and those that these use."""
    words = set(re.findall(r"\w+", read(verb)))
    for name, block in reversed(definitions().items()):
        if name in words:
            words.update(re.findall(r"\w+", block))
    return words


class Copy:
    """A copy of `src`, in which one file at a time lacks a write, and who runs its tests."""

    def __init__(self, folder: Path) -> None:
        self.src = folder / "src"
        shutil.copytree(ROOT / "src", self.src, ignore=shutil.ignore_patterns("__pycache__"))
        self._tester = subprocess.Popen(
            [sys.executable, str(TESTER), str(LONGEST_S)],
            cwd=ROOT,
            env={**other_variables(), "PYTHONPATH": str(self.src)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process that runs the tests."""
        self._tester.communicate(timeout=LONGEST_S)

    def tried(self, mutant: Mutant) -> tuple[bool, str]:
        """Run the tests on a mutant; return whether one failed, and which."""
        path = self.src / "fairlane" / "lua" / f"{mutant.file}.lua"
        before = path.read_text(encoding="utf-8")
        path.write_text(mutant.text, encoding="utf-8")
        try:
            return self.run(tests_of(mutant.file))
        finally:
            path.write_text(before, encoding="utf-8")

    def run(self, tests: Iterable[Path]) -> tuple[bool, str]:
        """Run tests on the copy until one fails; return whether one did, and its name."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-k", "valkey9", "--tb=no"]
        # It was imported before the fork.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        assert self._tester.stdin is not None
        assert self._tester.stdout is not None
        self._tester.stdin.write(json.dumps([*options, *map(str, tests)]) + "\n")
        self._tester.stdin.flush()
        code, output = json.loads(self._tester.stdout.readline())
        if code is None:
            return True, f"no end in {LONGEST_S} s"
        if code not in (0, 1):
            raise RuntimeError(f"pytest could not run:\n{output}")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        return code == 1, failed[1].removeprefix("tests/verbs/") if failed else ""


def exemptions() -> dict[tuple[str, str], str]:
    """Return the reasons for writes that no test can miss, by file and write."""
    rows = tomllib.loads(EXEMPT.read_text(encoding="utf-8"))["exempt"]
    return {(row["file"], write): row["reason"] for row in rows for write in row["writes"]}


def judge(found: Sequence[Mutant], workers: int, console: Console) -> list[Verdict]:
    """Try every mutant, some at a time."""
    reasons = exemptions()
    spare = [m for m in found if (m.file, m.write) in reasons]
    verdicts = [Verdict(m, "exempt", reasons[m.file, m.write]) for m in spare]
    todo = [m for m in found if (m.file, m.write) not in reasons]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-mutants-") as folder,
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
        ThreadPoolExecutor(workers) as pool,
    ):
        made = [Copy(Path(folder, str(at))) for at in range(workers)]
        copies: SimpleQueue[Copy] = SimpleQueue()
        bar = progress.add_task("whole", total=len(todo))
        _check_whole(made[0], sorted({test for m in todo for test in tests_of(m.file)}))
        for copy in made:
            copies.put(copy)

        def tried(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                killed, by = copy.tried(mutant)
            finally:
                copies.put(copy)
            verdict = Verdict(mutant, "killed" if killed else "survived", by)
            if not killed:
                progress.console.print(f"survived  {mutant}", markup=False, highlight=False)
            progress.update(bar, advance=1, description=mutant.file)
            return verdict

        verdicts += pool.map(tried, todo)
        for copy in made:
            copy.close()
    return verdicts


def _check_whole(copy: Copy, tests: Sequence[Path]) -> None:
    """Assert that the tests pass on a whole copy, and use it: else a failure says nothing."""
    failed, by = copy.run(tests)
    if failed:
        raise SystemExit(f"the tests fail without a mutant: {by}")
    prelude = read("_prelude")
    failed, _ = copy.tried(Mutant("_prelude", 1, "everything", f"no Lua at all\n{prelude}"))
    if not failed:
        raise SystemExit("the tests do not use the copy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--verb", action="append", default=[], help="only this file of Lua")
    parser.add_argument("--list", action="store_true", help="name the writes and run nothing")
    parser.add_argument("--json", action="store_true", help="every verdict, as JSON")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="at a time")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    found, started = every_mutant(given.verb), time.monotonic()
    if given.list:
        reasons = exemptions()
        verdicts = [Verdict(m, "listed", reasons.get((m.file, m.write), "")) for m in found]
    else:
        verdicts = judge(found, given.workers, console)
    survived = [verdict for verdict in verdicts if verdict.outcome == "survived"]
    known = {(mutant.file, mutant.write) for mutant in found}
    idle = [f"{file}.lua: {write}" for file, write in exemptions() if (file, write) not in known]
    if given.json:
        sys.stdout.write(json.dumps([verdict.row() for verdict in verdicts], indent=1) + "\n")
    else:
        for verdict in verdicts if given.list else survived:
            sys.stdout.write(f"{verdict.mutant}\n")
    if not given.verb:
        for write in idle:
            console.print(f"{EXEMPT.name}: no such write any more: {write}", markup=False)
    console.print(
        f"{len(verdicts)} writes, {len(survived)} that no test misses, "
        f"{sum(verdict.outcome == 'exempt' for verdict in verdicts)} exempt; "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if survived or (idle and not given.verb) else 0


if __name__ == "__main__":
    raise SystemExit(main())
