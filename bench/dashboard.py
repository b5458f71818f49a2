"""`make bench`, its part on the dashboard: how soon the overview of a full system is there.

The rule: a real service and store, a real Chromium with nothing cached, and devices that all wait.
What is told is what the browser measured: its first contentful paint, when the figures stood, and
how long each call of the API took.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import rich_click as click
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.progress import track

from fairlane import Client, Settings
from fairlane.http.serve import listen, with_key
from fairlane.settings import other_variables

#: Read by the browser itself.
_SEEN: Final = """() => ({
  paint_ms: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
  calls: performance.getEntriesByType('resource')
    .filter(one => one.name.includes('/v1/') && !one.name.includes('/v1/events')
                || one.name.includes('/readyz'))
    .map(one => [new URL(one.name).pathname, one.duration])
})"""
_AT_ONCE: Final = 1_000


def fill(client: Client, devices: int) -> None:
    """Let so many devices wait, each with a task."""
    for first in track(range(0, devices, _AT_ONCE), "devices", console=Console(stderr=True)):
        numbers = range(first, min(devices, first + _AT_ONCE))
        client.enqueue_many([(f"02:{_pairs(n)}", "text", {"n": n}) for n in numbers])


def look(browser: Browser, url: str) -> dict[str, Any]:
    """Open the overview as somebody who was never there; return what the browser measured."""
    page = browser.new_page()
    page.goto(url)  # with the token, which becomes the cookie
    page.goto(url.partition("/?")[0] + "/")
    began = time.monotonic()
    page.reload()
    page.get_by_test_id("pending").wait_for()
    figures_ms = (time.monotonic() - began) * 1000
    page.locator("table tbody tr").nth(3).wait_for()
    page.wait_for_timeout(2_000)
    seen: dict[str, Any] = page.evaluate(_SEEN)
    page.context.close()
    return {**seen, "figures_ms": figures_ms}


@click.command()
@click.option("--devices", default=100_000, show_default=True, help="Devices that wait.")
@click.option("--rounds", default=5, show_default=True, help="Times that the page is opened.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
def main(*, devices: int, rounds: int, as_json: bool) -> None:
    """Measure the overview's first paint, and its calls, while devices wait."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise click.ClickException("there is no Chromium; tools/need.sh chromium installs it")
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder:
        settings, token = with_key(
            Settings(
                store_url=f"embedded://{folder}/store",
                data_dir=Path(folder),
                max_total_pending=10 * devices,
            )
        )
        listener = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(settings) as client:
            fill(client, devices)
            api = subprocess.Popen(
                [sys.executable, "-m", "fairlane", "api", f"--fd={listener.fileno()}"],
                env={**other_variables(), **settings.environ()},
                pass_fds=[listener.fileno()],
            )
            try:
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(
                        executable_path=program, args=["--no-sandbox"]
                    )
                    look(browser, f"{url}/?token={token}")  # the service's own first time
                    seen = [look(browser, f"{url}/?token={token}") for _ in range(rounds)]
                    browser.close()
            finally:
                api.terminate()
                api.wait(20)
    show(devices, seen, as_json=as_json)


def show(devices: int, seen: list[dict[str, Any]], *, as_json: bool) -> None:
    """Tell what was measured."""
    calls: dict[str, list[float]] = {}
    for one in seen:
        for path, took_ms in one["calls"]:
            calls.setdefault(path, []).append(took_ms)
    told: dict[str, Any] = {
        "devices": devices,
        "first_paint_ms": [round(one["paint_ms"]) for one in seen],
        "figures_ms": [round(one["figures_ms"]) for one in seen],
        "call_ms": {path: round(statistics.median(took)) for path, took in sorted(calls.items())},
        "slowest_call_ms": {path: round(max(took)) for path, took in sorted(calls.items())},
    }
    if as_json:
        click.echo(json.dumps(told))
        return
    paint, figures = (statistics.median(told[name]) for name in ("first_paint_ms", "figures_ms"))
    click.echo(f"{devices} devices wait; medians of {len(seen)}")
    click.echo(f"first paint {paint:.0f} ms, figures there {figures:.0f} ms")
    for path, took_ms in told["slowest_call_ms"].items():
        click.echo(f"  {path}: {told['call_ms'][path]} ms, {took_ms} ms at most")


def _pairs(number: int) -> str:
    return ":".join(f"{number:010x}"[at : at + 2] for at in range(0, 10, 2))


if __name__ == "__main__":
    main()
