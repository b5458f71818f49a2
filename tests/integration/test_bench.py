"""`fairlane bench` measures, and says what it measured beside what."""

from __future__ import annotations

import json

from click.testing import CliRunner

from fairlane.cli import cli


def test_it_tells_rates_and_ratios_of_every_pair() -> None:
    done = CliRunner().invoke(
        cli,
        ["bench", "--rounds", "1", "--calls", "20", "--devices", "2", "--devices", "50", "--json"],
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["what"] for row in rows] == [
        "enqueue",
        "enqueue",
        "enqueue_many of 100, one device: tasks",
        "enqueue_many of 100, 100 devices: tasks",
        "claim + start + finish, 2 devices",
        "claim + start + finish, 50 devices",
    ]
    assert all(row["per_s"] > 0 and row["beside_per_s"] > 0 and row["ratio"] > 0 for row in rows)
