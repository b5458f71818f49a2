"""Find sensitive content in a text, and the handler of the task type `text`.

The rule: findings are sorted, do not overlap (`rules.RANKS` says which stay), and stand on the
text as it was given: `text[finding.start:finding.end] == finding.value`. What the handler answers
holds no value unmasked, and time and answer are bounded by MAX_CHARS and MAX_FINDINGS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from fairlane.detect import setup
from fairlane.detect.finding import Finding, mask
from fairlane.detect.keywords import Keywords, default
from fairlane.detect.normalise import Normalised, normalise
from fairlane.detect.rules import RANKS, RULES, Span
from fairlane.errors import Fail
from fairlane.model import Task

MAX_CHARS: Final = 1_000_000
MAX_FINDINGS: Final = 1_000

_EXPECTED: Final = 'send {"text": "…"}, or {"file": "<sha256>"} for a stored UTF-8 text'


def detect(text: str, keywords: Keywords | None = None) -> list[Finding]:
    """Return what is sensitive in a text, in its order; `keywords` replaces the shipped list."""
    plain = normalise(text)
    words = default() if keywords is None else keywords
    spans = [span for rule in RULES for span in rule(plain.text)]
    spans += words.find(plain.text)
    placed = (_placed(span, plain) for span in spans)
    return [
        Finding(span.type, text[span.start : span.end], span.start, span.end, span.rule)
        for span in _without_overlap(placed, len(text))
    ]


def masked(text: str, findings: Iterable[Finding]) -> str:
    """Return a copy of the text, of the same length, with every finding masked."""
    pieces = []
    at = 0
    for finding in findings:
        pieces += [text[at : finding.start], mask(finding.type, finding.value)]
        at = finding.end
    return "".join([*pieces, text[at:]])


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many findings there are of each type that was found."""
    return dict(Counter(finding.type.value for finding in findings))


def text(task: Task) -> dict[str, Any]:
    """Find sensitive content in a task's text.

    Data: `{"text": str}`, or `{"file": sha256}` naming a stored UTF-8 text; at most MAX_CHARS
    characters. Result: `{findings, masked, counts}`: the first MAX_FINDINGS findings, masked; a
    masked copy of the text; how many findings there are of each type, all counted.

    Raises Fail for any other data: another attempt would end alike.
    """
    content = _content(task)
    findings = detect(content, setup.keywords())
    return {
        "findings": [finding.to_dict() for finding in findings[:MAX_FINDINGS]],
        "masked": masked(content, findings),
        "counts": counts(findings),
    }


def _content(task: Task) -> str:
    if set(task.data) == {"file"}:
        try:
            content = setup.stored_file(task.data["file"]).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Fail(
                f"data.file: no UTF-8 text ({error.reason} at byte {error.start})"
            ) from error
    elif set(task.data) == {"text"} and isinstance(task.data["text"], str):
        content = task.data["text"]
    else:
        raise Fail(f"data: {_EXPECTED}; got the keys {sorted(task.data)!r:.80}")
    if len(content) > MAX_CHARS:
        raise Fail(f"data: {len(content):,} characters, at most {MAX_CHARS:,}; send it in parts")
    return content


def _placed(span: Span, plain: Normalised) -> Span:
    start, end = plain.original_span(span.start, span.end)
    return span._replace(start=start, end=end)


def _without_overlap(spans: Iterable[Span], length: int) -> list[Span]:
    """Keep the strongest spans that share no code point, in order of the text of `length`."""
    taken = bytearray(length)
    kept = []
    for span in sorted(spans, key=_strength):
        if taken.find(1, span.start, span.end) < 0:
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _strength(span: Span) -> tuple[int, int, int]:
    return RANKS[span.type], span.start - span.end, span.start
