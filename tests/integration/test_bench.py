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
    besides = ["bare EVALSHA (driver)", "bare EVALSHA (our wire)", "RPUSH (driver)"]
    of_100 = [f"{beside.replace(' (', ' of 100 (')}: tasks" for beside in besides]
    alone = [
        "claim of 1",
        "start",
        "finish",
        "claim of 10: tasks",
        "sweep of 100 lost: tasks",
        "sweep, nothing due",
        "purge of 200: tasks",
    ]
    assert [(row["what"], row["beside"]) for row in rows] == [
        *(("enqueue", beside) for beside in besides),
        *(("enqueue_many of 100, one device: tasks", beside) for beside in of_100),
        *(("enqueue_many of 100, 100 devices: tasks", beside) for beside in of_100),
        *((f"{what}, {count} devices", "2 devices") for what in alone for count in (2, 50)),
    ]
    assert all(number > 0 for row in rows for number in row.values() if type(number) is not str)
