"""Delete each write of the Lua files in turn, and name those that no test misses.

    python tools/mutants.py                 every file
    python tools/mutants.py --verb claim    one file; a shared one is named so too: --verb _turn
    python tools/mutants.py --list          what there is to delete, without a test
    python tools/mutants.py --report FILE   keep the verdicts; next time, try first what caught each

The rule: the checkout is never edited. Each mutant stands in a copy of `src` that the tests import;
a verb's is tried by that verb's own tests, one of a shared file by those of the verbs that call it.
First all tests run once, on Lua that logs its writes: only those that reach a write can miss it.
What caught the most goes first. In the end, each test that caught a mutant must pass without one.
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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from lua_writes import Mutant, mutants, traced, writers  # noqa: E402 - the path comes first

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
    "corrupt_counts": ("_dead", "_device", "_turn", "claim", "sweep", "purge", "reconcile"),
    "dead_letters": ("_dead", "redrive", "drop"),
    "doom_files": ("enqueue", "enqueue_many", "drop", "keep_file", "forget_files"),
    "epoch": ("_epoch", "join", "check_epoch", "acknowledge"),
    "fair_order": ("_order", "_tags", "_cost", "claim", "configure"),
    "full_store": ("_admission", "measure", "enqueue", "enqueue_many"),
    "idempotency": ("_receipts", "enqueue", "enqueue_many", "sweep"),
    "quarantine": ("_dead", "_task", "_turn", "claim", "pop", "start", "sweep", "purge"),
    "inspect_times": ("_times", "_turn", *_ENDS),
    "limits": ("_limits", "_order", "_turn", "configure", "claim", *_ENDS),
    "limits_across_lanes": ("_limits", "_order", "_turn", "configure", "claim", "pop", *_ENDS),
    "repair": ("_mend", "_sums", "_audit", "mend_devices", "mend_sums", "mend_tasks", "reconcile"),
    "reported_cases": ("redrive", "enqueue", "enqueue_many"),
    "site_tags": ("_order", "_tags", "_cost", "_sites", "configure"),
    "tags": ("_order", "_tags", "_turn", "_device", "_sites", "configure", "migrate", "finish"),
    "told": (
        "_dead",
        "_task",
        "_turn",
        "claim",
        "claim_device",
        "release",
        "redrive",
        "drop",
        *_ENDS,
    ),
    "room": ("_turn", "quarantine", "redrive", *_ENDS),
    "start": ("enqueue",),
    "spoiled_counts": ("_task", "_device", "_tags", "_turn"),
    "sites": ("_sites", "_order", "_tags", "_cost", "_device", "configure", "redrive", "migrate"),
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
    found, seen = [], Counter[tuple[str, str]]()
    for name in only or sorted(known):
        for mutant in mutants(name, read(name), wrote):
            seen[name, mutant.write] += 1
            # Lines change; which of the same writes it is does so less.
            nth = f" #{of}" if (of := seen[name, mutant.write]) > 1 else ""
            found.append(replace(mutant, write=mutant.write + nth))
    return found


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

    def __init__(self, folder: Path, tests: Sequence[Path]) -> None:
        self.src = folder / "src"
        shutil.copytree(ROOT / "src", self.src, ignore=shutil.ignore_patterns("__pycache__"))
        self._log = (folder / "pytest.log").open("w+", encoding="utf-8")
        self._tester = subprocess.Popen(
            [sys.executable, str(TESTER), str(LONGEST_S), *map(_name, tests)],
            cwd=ROOT,
            env={**other_variables(), "PYTHONPATH": str(self.src)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def close(self) -> None:
        """End the process that runs the tests."""
        self._tester.communicate(timeout=LONGEST_S)
        self._log.close()

    def tried(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        """Run tests, by name, on a mutant until one fails; return which."""
        with self._changed({mutant.file: mutant.text}):
            return self.run(tests)

    def run(self, tests: Sequence[str]) -> str | None:
        """Run tests on the copy, as it is, until one fails; return which."""
        failed = self._answer({"tests": [*tests]})
        return f"no end in {LONGEST_S} s" if failed == "" else failed

    def reach(self, tests: Sequence[Path], files: Iterable[str]) -> dict[str, Any]:
        """Run all tests of some files; return what each took in s, and which writes it reached."""
        wrote = writers(definitions())
        into = self.src.with_name("reach.json")
        with self._changed({file: traced(file, read(file), wrote) for file in files}):
            asked = {"files": [_name(test) for test in tests], "reach": str(into)}
            self._answer(asked)
        told: dict[str, Any] = json.loads(into.read_text(encoding="utf-8"))
        for test in told["failed"]:
            sys.stderr.write(f"fails without a mutant, and is not used: {test}\n")
        return dict(told["reached"])

    @contextmanager
    def _changed(self, texts: Mapping[str, str]) -> Iterator[None]:
        folder = self.src / "fairlane" / "lua"
        before = {file: (folder / f"{file}.lua").read_text(encoding="utf-8") for file in texts}
        try:
            for file, text in texts.items():
                (folder / f"{file}.lua").write_text(text, encoding="utf-8")
            yield
        finally:
            for file, text in before.items():
                (folder / f"{file}.lua").write_text(text, encoding="utf-8")

    def _answer(self, asked: Mapping[str, Any]) -> str | None:
        assert self._tester.stdin is not None
        assert self._tester.stdout is not None
        self._tester.stdin.write(json.dumps(asked) + "\n")
        self._tester.stdin.flush()
        if not (answer := self._tester.stdout.readline()):
            self._log.seek(0)
            raise RuntimeError(f"pytest could not run:\n{self._log.read()}")
        failed: str | None = json.loads(answer)
        return failed


def _name(test: Path) -> str:
    return test.relative_to(ROOT).as_posix()


class Killers:
    """Which tests reach a write, those first that are most likely to miss it."""

    def __init__(
        self, reached: Mapping[str, tuple[float, list[str]]], report: Sequence[Mapping[str, Any]]
    ) -> None:
        self._of = {(row["file"], row["write"]): row["by"] for row in report}
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds = {test: seconds for test, (seconds, _) in reached.items()}
        self._reach: dict[str, list[str]] = defaultdict(list)
        for test, (_, marks) in reached.items():
            for mark in marks:
                self._reach[mark].append(test)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests to try on a mutant, in order."""
        counts = self._counts[mutant.file]
        before = self._of.get((f"{mutant.file}.lua", mutant.write))
        files = [_name(path) for path in tests_of(mutant.file)]
        tests = [
            test
            for test in self._reach[f"{mutant.file}.{mutant.call}"]
            if test.split("::", 1)[0] in files
        ]
        return sorted(tests, key=lambda test: (test != before, -counts[test], self._seconds[test]))

    def caught(self, mutant: Mutant, by: str) -> None:
        """Note which test caught a mutant."""
        self._counts[mutant.file][by] += 1


def exemptions() -> dict[tuple[str, str], str]:
    """Return the reasons for writes that no test can miss, by file and write."""
    rows = tomllib.loads(EXEMPT.read_text(encoding="utf-8"))["exempt"]
    return {(row["file"], write): row["reason"] for row in rows for write in row["writes"]}


def judge(
    found: Sequence[Mutant], workers: int, console: Console, report: Sequence[Mapping[str, Any]]
) -> list[Verdict]:
    """Try every mutant, some at a time; `report` says what caught them before."""
    reasons = exemptions()
    spare = [m for m in found if (m.file, m.write) in reasons]
    verdicts = [Verdict(m, "exempt", reasons[m.file, m.write]) for m in spare]
    todo = [m for m in found if (m.file, m.write) not in reasons]
    files = sorted({m.file for m in todo})
    tests = sorted({test for file in files for test in tests_of(file)})
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-mutants-") as folder,
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
        ThreadPoolExecutor(workers) as pool,
    ):
        made = [Copy(Path(folder, str(at)), tests) for at in range(workers)]
        bar = progress.add_task("what each test reaches", total=len(todo))
        parts = [tests[at::workers] for at in range(workers)]
        reached: dict[str, Any] = {}
        for part in pool.map(lambda copy, tests: copy.reach(tests, files), made, parts):
            reached |= part
        killers = Killers(reached, report)
        copies: SimpleQueue[Copy] = SimpleQueue()
        for copy in made:
            copies.put(copy)

        def tried(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                by = copy.tried(mutant, killers.tests(mutant))
            finally:
                copies.put(copy)
            if by is None:
                progress.console.print(f"survived  {mutant}", markup=False, highlight=False)
            else:
                killers.caught(mutant, by)
            progress.update(bar, advance=1, description=mutant.file)
            return Verdict(mutant, "survived" if by is None else "killed", by or "")

        verdicts += pool.map(tried, todo)
        caught = sorted({verdict.by for verdict in verdicts if "::" in verdict.by})
        if (by := made[0].run(caught)) is not None:
            raise SystemExit(f"a test that caught a mutant fails without one: {by}")
        for copy in made:
            copy.close()
    return verdicts


def _rows(report: Path | None) -> list[dict[str, Any]]:
    if report is None or not report.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--verb", action="append", default=[], help="only this file of Lua")
    parser.add_argument("--list", action="store_true", help="name the writes and run nothing")
    parser.add_argument("--json", action="store_true", help="every verdict, as JSON")
    parser.add_argument("--report", type=Path, help="where the verdicts are kept between runs")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="at a time")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    found, started = every_mutant(given.verb), time.monotonic()
    if given.list:
        reasons = exemptions()
        verdicts = [Verdict(m, "listed", reasons.get((m.file, m.write), "")) for m in found]
    else:
        before = _rows(given.report)
        verdicts = judge(found, given.workers, console, before)
        if given.report is not None:
            rows = [verdict.row() for verdict in verdicts]
            files = {row["file"] for row in rows}
            rows += [row for row in before if row["file"] not in files]
            given.report.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
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
    of = Counter(verdict.outcome for verdict in verdicts)
    console.print(
        f"{len(verdicts)} mutants: {of['killed']} caught, {len(survived)} survived, "
        f"{of['exempt']} exempt; {(time.monotonic() - started) / 60:.1f} minutes"
    )
    return 1 if survived or (idle and not given.verb) else 0


if __name__ == "__main__":
    raise SystemExit(main())
