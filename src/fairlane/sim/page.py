"""The report as one HTML page that needs nothing else: no network, no other file.

The rule: every word is there in English and in Chinese, every series in light and in dark, and
the figures behind the plots stand in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from fairlane.sim.charts import Series, areas, linear, lines, logarithmic, timeline
from fairlane.sim.report import QUANTILES, Report
from fairlane.sim.simulation import POLICIES
from fairlane.sim.units import count, duration, percent

Words = tuple[str, str]

#: A wait of 0 has no place on a logarithmic axis.
_LEAST_MS: Final = 1.0
#: So many groups have a shade of their own.
_SHADES: Final = 6
_GROUPS: Final[dict[str, str]] = {
    "heavy": "重载设备", "light": "轻载设备", "backlogged": "积压设备", "new": "新设备",
    "staying": "常驻设备", "returning": "返回设备", "equal": "相同设备", "long": "长任务设备",
    "short": "短任务设备", "sybil": "女巫站点", "honest": "诚实设备", "all": "全部设备",
    "busy": "忙碌设备", "idle": "空闲设备", "paused": "暂停设备", "capped": "限额设备",
    "others": "其他设备",
}  # fmt: skip


def page(name: str, about: Words, facts: Words, reports: Sequence[Report]) -> str:
    """Return the page of a workload: what it is, and its reports, one a policy."""
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    script = files(__package__).joinpath("page.js").read_text("utf-8")
    body = "".join(_body(name, about, facts, reports))
    return (
        '<!doctype html>\n<html lang="en" data-lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)} · fairlane simulate</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _body(name: str, about: Words, facts: Words, reports: Sequence[Report]) -> Iterator[str]:
    yield (
        '<header><button id="language" type="button" aria-label="中文 / English">'
        f"{_both(('中文', 'English'))}</button>"
        f"<h1>{escape(name)}</h1><p>{_both(about)}</p><p class=note>{_both(facts)}</p></header>\n"
    )
    yield f"<main>\n{_legend(reports)}"
    yield from _waits(reports)
    yield from _shares(reports)
    yield from _over_time(reports)
    yield _table(reports)
    yield "</main>\n"


def _waits(reports: Sequence[Report]) -> Iterator[str]:
    yield _heading(
        ("How long tasks wait", "任务等待时间"),
        ("The share of tasks that waited no longer than that. Further left is better.",
         "等待不超过该时间的任务比例，曲线越靠左越好。"),
    )  # fmt: skip
    longest = max((g.wait_max_ms or 0 for r in reports for g in r.groups), default=0)
    x = logarithmic(_LEAST_MS, max(longest, 10), duration)
    y = linear(0, 1, percent)
    for group in dict.fromkeys(g.group for r in reports for g in r.groups):
        series = [
            Series(report.policy, f"p-{report.policy}",
                   [(max(_LEAST_MS, wait), mille / 1000)
                    for mille, wait in zip(QUANTILES, found.waits_ms, strict=False)])
            for report in reports
            for found in report.groups
            if found.group == group
        ]  # fmt: skip
        yield _figure(_group(group), lines(f"wait of {group}", x, y, series))
    yield "</section>\n"


def _shares(reports: Sequence[Report]) -> Iterator[str]:
    yield _heading(
        ("Share of the slots' time", "处理时间份额"),
        ("Who was served when, from the begin to the end.", "从开始到结束，各组获得的处理时间。"),
    )
    y = linear(0, 1, percent)
    for report in reports:
        x = timeline(report.seconds * 1000, duration)
        series = [
            Series(group, f"g-{at % _SHADES}", _middles(report, row))
            for at, (group, row) in enumerate(report.share_over_time.items())
        ]
        keys = "".join(
            f'<span class="key"><i class="g-{at % _SHADES}"></i>{_both(_group(group))}</span>'
            for at, group in enumerate(report.share_over_time)
        )
        yield _figure(_policy(report.policy), areas(f"share under {report.policy}", x, y, series),
                      f"<p class=keys>{keys}</p>")  # fmt: skip
    yield "</section>\n"


def _over_time(reports: Sequence[Report]) -> Iterator[str]:
    x = timeline(max(report.seconds for report in reports) * 1000, duration)
    yield _heading(
        ("Fairness and queue", "公平性与队列"),
        ("Jain's index among the devices that are backlogged, by weight: 1 is perfectly fair.",
         "积压设备之间按权重计算的 Jain 指数，1 为完全公平。"),
    )  # fmt: skip
    fairness = [Series(r.policy, f"p-{r.policy}", _middles(r, r.jain_over_time)) for r in reports]
    queue = [Series(r.policy, f"p-{r.policy}", _middles(r, r.queue_over_time)) for r in reports]
    longest = max(report.queue_max for report in reports)
    yield _figure(("Jain's index", "Jain 指数"),
                  lines("Jain's index", x, linear(0, 1, "{:.1f}".format), fairness))  # fmt: skip
    yield _figure(("Tasks that wait", "等待中的任务"),
                  lines("queue length", x, linear(0, max(longest, 1), count), queue))  # fmt: skip
    yield "</section>\n"


def _middles(report: Report, values: Sequence[float | None]) -> list[tuple[float, float | None]]:
    return [((at + 0.5) * report.part_ms, value) for at, value in enumerate(values)]


def _table(reports: Sequence[Report]) -> str:
    heads: tuple[Words, ...] = (
        ("policy", "策略"), ("group", "分组"), ("devices", "设备"), ("tasks", "任务"),
        ("done", "完成"), ("wait p50", "等待 p50"), ("p99", "p99"), ("max", "最长"),
        ("share of time", "时间份额"), ("Jain", "Jain"), ("longest queue", "最长队列"),
    )  # fmt: skip
    rows = []
    for report in reports:
        for at, group in enumerate(report.groups):
            whole = at == 0
            cells = (
                escape(report.policy) if whole else "",
                _both(_group(group.group)),
                count(group.devices), count(group.tasks), count(group.done),
                duration(group.wait_p50_ms), duration(group.wait_p99_ms),
                duration(group.wait_max_ms), percent(group.share),
                ("–" if report.jain is None else f"{report.jain:.3f}") if whole else "",
                count(report.queue_max) if whole else "",
            )  # fmt: skip
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n")
    head = "".join(f"<th>{_both(words)}</th>" for words in heads)
    return (
        f"<section class=wide><h2>{_both(('In numbers', '数据'))}</h2><div class=scroll>"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody></table></div>"
        "</section>\n"
    )


def _legend(reports: Sequence[Report]) -> str:
    keys = "".join(
        f'<span class="key"><i class="p-{report.policy}"></i>{_both(_policy(report.policy))}</span>'
        for report in reports
    )
    return f'<p class="keys legend">{keys}</p>\n'


def _policy(name: str) -> Words:
    english, chinese = POLICIES[name]
    return f"{name}: {english}", f"{name}: {chinese}"


def _group(name: str) -> Words:
    if name.startswith("weight "):
        return name, name.replace("weight ", "权重 ")
    return name, _GROUPS.get(name, name)


def _heading(title: Words, note: Words) -> str:
    return f"<section><h2>{_both(title)}</h2><p class=note>{_both(note)}</p>\n"


def _figure(caption: Words, chart: str, keys: str = "") -> str:
    return f"<figure><figcaption>{_both(caption)}</figcaption>{chart}{keys}</figure>\n"


def _both(words: Words) -> str:
    english, chinese = (escape(text) for text in words)
    return f"<span lang=en>{english}</span><span lang=zh>{chinese}</span>"
