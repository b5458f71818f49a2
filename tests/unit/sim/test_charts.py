"""Charts as SVG: axes with round steps, lines with gaps, areas upon each other."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from fairlane.sim.charts import Series, areas, linear, lines, logarithmic, timeline


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 9_992, [0, 2000, 4000, 6000, 8000, 10_000]),
        (0, 0, [0]),
    ],
)
def test_a_linear_axis_has_round_steps_and_holds_the_end(
    low: float, high: float, ticks: list[float]
) -> None:
    axis = linear(low, high, str)
    assert list(axis.ticks)[: len(ticks)] == ticks
    assert axis.high >= high
    assert (axis.at(low), axis.at(axis.high)) == (0, 1)


def test_a_logarithmic_axis_has_powers_of_ten() -> None:
    axis = logarithmic(1, 45_000, str)
    assert list(axis.ticks) == [1, 10, 100, 1000, 10_000, 100_000]
    assert axis.at(1000) == pytest.approx(0.6)
    assert axis.at(0) == 0


@pytest.mark.parametrize(
    ("end_ms", "step_ms", "steps"),
    [(0, 1, 2), (25_000, 5_000, 6), (200_000, 30_000, 7), (1e8, 4 * 3_600_000, 7), (1e12, 2e11, 6)],
)
def test_a_timeline_counts_as_people_do(end_ms: float, step_ms: float, steps: int) -> None:
    axis = timeline(end_ms, str)
    assert axis.ticks[1] - axis.ticks[0] == step_ms
    assert len(axis.ticks) == steps
    assert axis.high >= end_ms


def test_a_line_lifts_the_pen_at_a_gap_and_its_name_is_escaped() -> None:
    axis = linear(0, 10, str)
    points = [(0, 0.0), (5, 10.0), (6, None), (10, 0.0)]
    drawn = lines("chart", axis, axis, [Series("<b>", "p-fair", points)])
    tree = ElementTree.fromstring(drawn)
    (path,) = (node for node in tree if node.get("class") == "line p-fair")
    assert re.sub(r"[\d. ]", "", path.get("d", "")) == "MLM"
    assert path[0].text == "<b>"


def test_areas_stand_upon_each_other() -> None:
    axis = linear(0, 1, str)
    low = Series("low", "g-0", [(0, 0.25), (1, 0.5)])
    high = Series("high", "g-1", [(0, 0.75), (1, 0.5)])
    paths = re.findall(r'class="area g-\d" d="M([^"]+)Z"', areas("chart", axis, axis, [low, high]))
    tops, bottoms = ([p.split("L") for p in paths][at] for at in (0, 1))
    assert tops[:2] == list(reversed(bottoms[2:]))
