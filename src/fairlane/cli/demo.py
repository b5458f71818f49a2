"""`fairlane demo`: forty devices, one of them flooding, on real workers."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import rich_click as click

from fairlane.files import FileStore
from fairlane.settings import Settings


@click.command(short_help="See fair scheduling happen: one loud device, many quiet ones.")
@click.option("--flood/--no-flood", default=True, help="Leave the flooding device out.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(min=1), help="Tasks at once; one a CPU by default."
)
def demo(*, flood: bool, as_json: bool, concurrency: int | None) -> None:
    """Replay real texts and images from forty devices, one of which floods.

    Starts everything it needs on this machine (an embedded store in a temporary folder, workers,
    Beat), checks every text and image for sensitive content, accounts for every task, and leaves
    nothing behind. Exit status 0 only if nothing was lost.
    """
    from fairlane.cli.replay import Replay
    from fairlane.cli.report import show, summary
    from fairlane.cli.stack import Stack, on_stop

    on_stop(signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fairlane-demo-") as folder:
        # A demo on a busy laptop must not wait for the laptop: backpressure is off.
        settings = Settings(
            store_url=f"embedded://{folder}/store",
            data_dir=Path(folder),
            pause_percent=100,
            resume_percent=100,
        )
        try:
            with Stack(
                settings,
                concurrency=concurrency or os.cpu_count() or 1,
                say=lambda text: click.echo(text, err=True),
                log_file=Path(folder) / "workers.log",
            ) as stack:
                outcome = Replay(stack, FileStore.of(settings), flood=flood).run()
        except KeyboardInterrupt:
            click.echo("stopped; nothing was left behind", err=True)
            sys.exit(130)
    report = summary(outcome)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        show(outcome, report)
    sys.exit(0 if report["balanced"] else 1)
