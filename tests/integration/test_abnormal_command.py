"""`fairlane abnormal`: what `/decter` was sent lately, a line each, left where it is."""

from __future__ import annotations

import json

from click.testing import CliRunner

from fairlane import Client, verbs
from fairlane.cli import cli


def test_it_reads_all_pages_and_leaves_them(store_url: str) -> None:
    records = [{"n": n, "文": "é"} for n in range(1_200)]
    with Client.from_url(store_url) as client:
        for at in (0, 600):
            client.run(verbs.ReportAbnormal(records[at : at + 600]))

    def said(*arguments: str) -> str:
        environ = {"FAIRLANE_STORE_URL": store_url}
        done = CliRunner(env=environ).invoke(cli, ["abnormal", *arguments], catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    assert [json.loads(line) for line in said().splitlines()] == records
    assert json.loads(said("--json")) == records
    assert json.loads(said("--json", "--limit=2")) == records[:2]
