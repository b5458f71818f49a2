"""The page: it needs nothing else, says everything twice, and takes no markup from a name."""

from __future__ import annotations

import re

from fairlane.sim.page import page
from fairlane.sim.report import measure
from fairlane.sim.simulation import POLICIES, simulate
from fairlane.sim.workload import Arrival, Workload, mac_of


def made(name: str = "traffic", group: str = "heavy") -> str:
    arrivals = [Arrival(0, mac_of(1 + at % 2), "text", 10) for at in range(20)]
    workload = Workload(name, arrivals, {"text": 1}, {mac_of(1): group, mac_of(2): "light"})
    reports = [measure(workload, policy, simulate(workload, policy)) for policy in ("fifo", "rr")]
    return page(name, ("about", "关于"), ("facts", "事实"), reports)


def test_it_needs_nothing_from_elsewhere() -> None:
    text = made()
    assert not re.search(r"https?:|//|@import|url\(|<link|<img|src=", text)
    assert text.count("<svg") == 2 + 2 + 2


def test_every_word_is_there_in_both_languages_and_every_series_in_both_schemes() -> None:
    text = made()
    assert text.count("<span lang=en>") == text.count("<span lang=zh>") > 30
    light, dark = text.split("prefers-color-scheme: dark")
    for policy in POLICIES:
        assert f"--p-{policy}:" in light
        assert f"--p-{policy}:" in dark


def test_what_a_name_says_is_shown_as_text() -> None:
    text = made("<script>alert(1)</script>", "<b>")
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
