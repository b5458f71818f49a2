"""The documentation says what the code says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import rich_click as click

from fairlane.cli import cli
from fairlane.model import DeviceLane
from fairlane.scripts import read
from fairlane.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
each_page = pytest.mark.parametrize("page", PAGES, ids=str)
_CODE = re.compile(r"^```[^\n]*\n(.*?)^```|`([^`]+)`", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:\$ |\.venv/bin/|\w+=\S+ |.*\| )*fairlane(?: +(.+))?")


def commands(page: Path) -> Iterator[list[str]]:
    """Return the arguments of the `fairlane …` that stand in a page's code."""
    for block, words in _CODE.findall((ROOT / page).read_text(encoding="utf-8")):
        for line in block.splitlines() or [" ".join(words.split())]:
            found = _COMMAND.fullmatch(line)
            if found and found[1]:
                yield shlex.split(found[1], comments=True)


def test_the_generated_tables_are_current() -> None:
    check = [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_setting_of_ours_that_the_mapping_names_exists() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    mapping = page.split("## The document's names")[1].split("\n## ")[0]
    ours = re.findall(r"^\|[^|]*\| `([a-z_]+)`", mapping, re.MULTILINE)
    assert len(ours) > 12
    assert set(ours) <= {item.name for item in fields(Settings)}


def test_the_readme_has_commands_to_check() -> None:
    found = [" ".join(command) for command in commands(Path("README.md"))]
    assert "configure aa:bb:cc:00:11:22 --weight 4" in found
    assert "simulate flood --policy fair --policy aging --policy fifo --policy rr" in found
    assert "detect -" in found


def test_the_site_has_every_page_and_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    named = set(re.findall(r'"([^"]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")))
    written = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert named == {page for page in written if not re.match(r"adr/\d", page)}


def test_each_decision_has_a_number_of_its_own_and_its_line_in_the_list() -> None:
    folder = ROOT / "docs" / "adr"
    listed = []
    for page in sorted(folder.glob("0*.md")):
        number = page.name[:4]
        title = page.read_text("utf-8").partition("\n")[0].removeprefix(f"# {number} ")
        listed.append(f"| [{number}]({page.name}) | {title} |")
    rows = (folder / "README.md").read_text("utf-8").splitlines()
    assert [row for row in rows if row.startswith("| [0")] == listed
    assert [row[3:7] for row in listed] == [f"{n:04}" for n in range(1, len(listed) + 1)]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "cli.md"], ids=str)
def test_every_command_of_a_page_is_one_with_these_options(page: Path) -> None:
    context = click.Context(cli, info_name="fairlane")
    for name, *arguments in commands(page):
        command = cli.get_command(context, name)
        assert command is not None, f"{page}: no command is called {name}"
        within = click.Context(command, info_name=name)
        try:
            command.make_parser(within).parse_args(list(arguments))
        except click.UsageError as error:
            pytest.fail(f"{page}: fairlane {name} {' '.join(arguments)}: {error.format_message()}")


def test_every_command_that_the_code_names_is_one() -> None:
    context = click.Context(cli, info_name="fairlane")
    sources = sorted((ROOT / "src").rglob("*.py"))
    named = {
        (words[0], found)
        for path in sources
        for found in re.findall(r"`fairlane ([a-z][^`]*)`", path.read_text(encoding="utf-8"))
        if (words := found.split())
    }
    assert ("doctor", "doctor --acknowledge") in named
    assert [found for name, found in sorted(named) if cli.get_command(context, name) is None] == []


@each_page
def test_every_variable_of_a_page_is_a_setting(page: Path) -> None:
    named = re.findall(r"FAIRLANE_([A-Z_]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert {name.lower() for name in named} <= {item.name for item in fields(Settings)}


@each_page
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", (ROOT / page).read_text("utf-8")):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
            assert anchor in anchors, f"{page}: {target}"


def test_operations_explains_whatever_holds_a_device() -> None:
    told = _first_column("## Why a device does not go")
    named = (DeviceLane.__doc__ or "").split("says why:")[1].split("`tag`")[0]
    assert told == set(re.findall(r"`([a-z_ ]+)`", named)) - {"until_ms"}


def test_operations_explains_every_refusal() -> None:
    assert _first_column("## How to read a refusal") == set(
        re.findall(r"return '(\w+_full)'", read("_admission") + read("_receipts"))
    )


def _first_column(heading: str) -> set[str]:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.split(f"{heading}\n")[1].split("\n## ")[0]
    rows = section.split("\n| --- |")[1]
    return set(re.findall(r"^\| `([a-z_ ]+)` \|", rows, re.MULTILINE))
