"""`fairlane detect`: search local texts and images.

The rule: standard output is data (a table for people, one JSON object a file for programs),
standard error is talk. Values are masked unless `--reveal`. A file that cannot be read is told
and the others are still searched.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from fairlane.detect.keywords import Keywords

_COLUMNS: Final = ("type", "value", "where", "rule")


@click.command(short_help="Find sensitive content in local texts and images.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH… | -")
@click.option("--reveal", is_flag=True, help="Show values as they are, not masked.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file, a line each.")
@click.option(
    "--keywords",
    "lists",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A keyword list to search besides the shipped one (may be repeated).",
)
def detect(paths: Sequence[str], *, reveal: bool, as_json: bool, lists: Sequence[Path]) -> None:
    """Find sensitive content in local texts and images.

    Phone numbers, identity and bank cards, e-mail addresses, IBANs, IP and MAC addresses,
    passports, and the words of lists. A PATH of `-` is standard input. What a file is, its content
    says: PNG, JPEG, WebP, TIFF and BMP are read by OCR, anything else as text.

    Exit status: 0 all were read, 1 one or more were not, 2 wrong usage.
    """
    from fairlane.detect.keywords import InvalidKeywords, load

    try:
        keywords = load(lists)
    except InvalidKeywords as error:
        raise click.BadParameter(str(error), param_hint="--keywords") from error
    console = Console(markup=False, highlight=False)
    talk = Console(stderr=True, markup=False, highlight=False)
    failed = False
    for report in _reports(paths, keywords, talk, reveal=reveal):
        if isinstance(report, Exception):
            failed = True
            talk.print(f"error: {report}", style="red", soft_wrap=True)
        elif as_json:
            click.echo(json.dumps(report, ensure_ascii=False))
        else:
            _show(console, report)
    if failed:
        sys.exit(1)


def _reports(
    paths: Sequence[str], keywords: Keywords, talk: Console, *, reveal: bool
) -> Iterator[dict[str, Any] | Exception]:
    """Search the paths one by one; a person sees on standard error which one takes its time."""
    from fairlane.detect.local import Unreadable, inspect_path

    for number, path in enumerate(paths, start=1):
        # Over before the report is printed: both may be on one terminal.
        with talk.status(f"Searching {path} ({number} of {len(paths)})"):
            try:
                report: dict[str, Any] | Exception = inspect_path(
                    path, reveal=reveal, keywords=keywords
                )
            except Unreadable as error:
                report = error
        yield report


def _show(console: Console, report: dict[str, Any]) -> None:
    findings = report["findings"]
    told = "nothing found" if not findings else f"{len(findings)} found"
    console.print(f"{report['path']} ({report['kind']}): {told}", soft_wrap=True)
    if not findings:
        return
    table = Table(*_COLUMNS)
    for finding in findings:
        table.add_row(finding["type"], finding["value"], _where(finding), finding["rule"])
    console.print(table)


def _where(finding: dict[str, Any]) -> str:
    if "box" in finding:
        left, top = finding["box"][0]
        return f"line {finding['line'] + 1} at {left}, {top}"
    return f"{finding['start']} to {finding['end']}"
