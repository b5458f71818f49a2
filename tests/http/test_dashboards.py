"""The alert rules and the dashboard: Prometheus reads them, and what they name is in /metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlane import verbs
from support.service import Service
from support.store import mac

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "fairlane.rules.yaml"
BOARD: Any = json.loads((DEPLOY / "grafana" / "fairlane.json").read_text(encoding="utf-8"))

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool (Debian's prometheus)"
)


def promtool(*words: str | Path) -> None:
    done = subprocess.run(
        ["promtool", *map(str, words)], capture_output=True, text=True, cwd=RULES.parent, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def expressions() -> Iterator[str]:
    """Give every expression of the dashboard, its variables filled in."""
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m").replace("$job", "fairlane")


def named() -> set[str]:
    """Return every metric of ours that the rules and the dashboard name."""
    text = "\n".join([RULES.read_text(encoding="utf-8"), *expressions()])
    text += BOARD["templating"]["list"][1]["query"]["query"]
    return set(re.findall(r"\bfairlane_\w+", text))


@needs_promtool
def test_prometheus_takes_the_rules_and_the_configuration() -> None:
    promtool("check", "rules", RULES)
    promtool("check", "config", "--syntax-only", "prometheus.yaml")


@needs_promtool
def test_the_alerts_fire_on_what_they_are_for_and_not_before() -> None:
    promtool("test", "rules", "fairlane.rules.test.yaml")


@needs_promtool
def test_prometheus_takes_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": told} for number, told in enumerate(expressions())
    ]
    assert len(rules) > 20
    (tmp_path / "board.yaml").write_text(
        json.dumps({"groups": [{"name": "board", "rules": rules}]}), encoding="utf-8"
    )
    promtool("check", "rules", tmp_path / "board.yaml")


def test_every_metric_that_they_name_is_told(service: Service) -> None:
    service.enqueue(mac=mac(1))
    (leased,) = service.store.run(verbs.Claim("text", 1)).leased
    service.store.run(verbs.Start(leased.task_id, 1, "worker", "run"))
    service.store.run(verbs.Finish(leased.task_id, 1))
    page = service.ask("GET", "/metrics").text
    told = set(re.findall(r"^# TYPE (\w+) (?:gauge|counter)$", page, re.MULTILINE))
    for family in text_string_to_metric_families(page):
        told |= {sample.name for sample in family.samples}
    assert named() <= told
    assert len(named()) > 20


def test_every_panel_has_a_place_of_its_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        place = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not place & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= place
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
