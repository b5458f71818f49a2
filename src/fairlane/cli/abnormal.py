"""`fairlane abnormal`: the abnormal data that `/decter` was sent lately."""

from __future__ import annotations

import json

import rich_click as click

from fairlane.cli.opened import opened
from fairlane.verbs import ReadAbnormal
from fairlane.verbs.bounds import MOST


@click.command(short_help="The abnormal data that /decter was sent lately.")
@click.option("--limit", type=click.IntRange(1), help="So many at most; all by default.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON array.")
def abnormal(*, limit: int | None, as_json: bool) -> None:
    """Read abnormal data, oldest first, a JSON object a line, and leave it there.

    It is kept until 20 s after the last of it came.
    """
    found: list[str] = []
    with opened() as client:
        while limit is None or len(found) < limit:
            most = MOST if limit is None else min(MOST, limit - len(found))
            page = client.run(ReadAbnormal(len(found), most))
            found += [json.dumps(record, ensure_ascii=False) for record in page]
            if len(page) < most:
                break
    if as_json:
        click.echo("[" + ",\n ".join(found) + "]")
        return
    for line in found:
        click.echo(line)
