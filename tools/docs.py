"""Write the tables of the documentation that the code decides, or check that they are current.

    python tools/docs.py           write them
    python tools/docs.py --check   exit with 1 and name the pages that are stale

The rule: a table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`, and nobody edits it
by hand; what it says comes from `fairlane.settings` and `fairlane.keys`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from fairlane.keys import ABNORMAL, TABLE  # noqa: E402 - the tool runs without an installation
from fairlane.settings import SEED, Settings  # noqa: E402

NAMESPACE: Final = "sensitive"
_BLOCK: Final = re.compile(r"(<!-- begin (\w+) -->\n)(.*?)(<!-- end \2 -->)", re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a `|` in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def settings(*, shared: bool) -> str:
    """Return the settings that the processes share, or those of one process."""
    rows = (
        (f"`{item.name}`", _shown(item.default), _seeded(item.name), item.metadata["about"])
        for item in fields(Settings)
        if item.metadata["shared"] == shared
    )
    return table(("setting", "default", "`seed`", "what it is"), rows)


def keys() -> str:
    """Return the whole keyspace."""
    rows = [(f"{NAMESPACE}:{key.suffix}{key.shape}", key) for key in TABLE]
    rows.append((ABNORMAL.suffix, ABNORMAL))
    return table(
        ("key", "type", "holds", "bound", "written by"),
        ((f"`{name}`", key.type, key.holds, key.bound, key.owner) for name, key in rows),
    )


#: The tables by the name of their block.
TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "SHARED": lambda: settings(shared=True),
    "PROCESS": lambda: settings(shared=False),
    "KEYS": keys,
}


def current(page: str) -> str:
    """Return a page with its tables as they should be."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n{block[4]}", page)


def pages() -> list[Path]:
    """Return the pages that have such tables."""
    return [page for page in sorted((ROOT / "docs").glob("*.md")) if _BLOCK.search(_text(page))]


def stale() -> list[str]:
    """Return the pages whose tables are not what the code says."""
    return [str(page.relative_to(ROOT)) for page in pages() if current(_text(page)) != _text(page)]


def main(arguments: Sequence[str]) -> int:
    """Write the tables, or check them; return the exit status."""
    if arguments == ["--check"]:
        found = stale()
        for name in found:
            sys.stderr.write(f"{name} is stale; run `python tools/docs.py`\n")
        return 1 if found else 0
    if arguments:
        sys.stderr.write(f"usage: {Path(__file__).name} [--check]\n")
        return 2
    for page in pages():
        page.write_text(current(_text(page)), encoding="utf-8")
    return 0


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _seeded(name: str) -> str:
    return _shown(SEED[name]) if name in SEED else ""


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        kinds = (f"`{kind.name}` in lane `{kind.lane}`{_needs(kind.requires)}" for kind in value)
        return ", ".join(kinds) or "none"
    return f"`{value}`" if str(value) else "empty"


def _needs(resource: str) -> str:
    return f" (needs `{resource}`)" if resource else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
