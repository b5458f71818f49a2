"""Write the tables of the documentation that the code decides, or check that they are current.

    python tools/docs.py           write them
    python tools/docs.py --check   exit with 1 and name the pages that are stale

The rule: a table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`, and nobody edits it
by hand; what it says comes from the settings, the keyspace, the commands and the OpenAPI.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import rich_click as click  # noqa: E402

from fairlane.cli import cli  # noqa: E402
from fairlane.http import create_app  # noqa: E402
from fairlane.http.metrics import Levels  # noqa: E402
from fairlane.keys import ABNORMAL, TABLE  # noqa: E402 - the tool runs without an installation
from fairlane.model import Overload, Totals  # noqa: E402
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


def commands() -> str:
    """Return every command with its help and its options."""
    return "\n".join(_command(["fairlane"], cli))


def _command(path: Sequence[str], command: click.Command) -> Iterator[str]:
    name = " ".join(path)
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## `{name}`\n\n```\n{name} {usage}\n```\n\n{cleandoc(command.help or '')}\n"
    options = [
        (", ".join(f"`{flag}`" for flag in _flags(option)), _takes(option), option.help or "")
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    if options:
        yield table(("option", "takes", "what it does"), options)
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            if found is not None and not found.hidden:
                yield from _command([*path, part], found)


def _flags(option: click.Option) -> list[str]:
    return [*option.opts, *option.secondary_opts]


def _takes(option: click.Option) -> str:
    if option.is_flag:
        return ""
    shown = option.make_metavar(click.Context(cli)).replace("[", "").replace("]", "").lower()
    if option.show_default and option.default is not None and isinstance(option.default, str | int):
        shown = f"{shown} ({option.default})"
    return f"{shown}, repeated" if option.multiple else shown


def routes() -> str:
    """Return every route of the HTTP service, and what it answers."""
    paths = create_app(Settings(store_url="redis://")).openapi()["paths"]
    rows = (
        (
            f"`{method.upper()} {path}`",
            operation.get("summary", ""),
            ", ".join(sorted(operation["responses"])),
        )
        for path, methods in sorted(paths.items())
        for method, operation in methods.items()
    )
    return table(("request", "does", "answers"), rows)


def metrics() -> str:
    """Return every metric, by the name that Prometheus has it under."""
    overload = Overload(overloaded=False, global_pending=0, overloaded_devices=0)
    found = Levels((), Totals({}, 0, 0, 0, 0), (), overload, 0.0, (), {}).collect()
    rows = (
        (
            f"`{each.name}{'_total' if each.type == 'counter' else ''}`",
            each.type,
            ", ".join(f"`{label}`" for label in getattr(each, "_labelnames", ())),
            each.documentation,
        )
        for each in sorted(found, key=lambda each: each.name)
    )
    return table(("metric", "type", "labels", "what it is"), rows)


#: The tables by the name of their block.
TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "SHARED": lambda: settings(shared=True),
    "PROCESS": lambda: settings(shared=False),
    "KEYS": keys,
    "COMMANDS": commands,
    "ROUTES": routes,
    "METRICS": metrics,
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
