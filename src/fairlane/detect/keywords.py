"""Words of lists: the user's own and the small one that is shipped.

The rule: all lists are searched in one pass, whatever their size. Case and width do not matter. A
word whose ends are letters or digits of ASCII stands alone; Chinese has no spaces, so Chinese words
are found inside sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from ahocorasick_rs import AhoCorasick

from fairlane.detect.finding import FindingType
from fairlane.detect.normalise import normalise
from fairlane.detect.rules.span import Span
from fairlane.errors import InvalidInput

DEFAULT_CATEGORY: Final = "list"

_CATEGORY: Final = re.compile(r"\[([a-z0-9_-]{1,32})\]")
_WORD_CHAR: Final = re.compile(r"[0-9A-Za-z_]")


class InvalidKeywords(InvalidInput):
    """A keyword list cannot be read or holds a line that is no keyword."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word or phrase to find; findings carry the rule `keyword.<category>`."""

    word: str
    category: str = DEFAULT_CATEGORY


class Keywords:
    """Words to find, compiled once."""

    def __init__(self, keywords: Iterable[Keyword]) -> None:
        folded = {_fold(normalise(keyword.word).text): keyword.category for keyword in keywords}
        folded.pop("", None)
        self._words: Sequence[str] = tuple(folded)
        self._categories: Sequence[str] = tuple(folded.values())
        self._automaton = AhoCorasick(self._words)

    def __len__(self) -> int:
        return len(self._words)

    def find(self, text: str) -> Iterator[Span]:
        """Find the words in a plain text; of words that overlap, every one is answered."""
        folded = _fold(text)
        matches = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        for index, start, end in matches:
            if _stands_alone(folded, start, end):
                yield Span(FindingType.KEYWORD, start, end, f"keyword.{self._categories[index]}")


def parse(content: str, source: str) -> list[Keyword]:
    """Read a list: one word a line, `[category]` before its words, `#` before comments.

    Raises InvalidKeywords, naming `source` and the line, for a bad category.
    """
    category = DEFAULT_CATEGORY
    keywords = []
    for number, raw in enumerate(content.splitlines(), start=1):
        line = raw.strip().removeprefix("\ufeff")
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            named = _CATEGORY.fullmatch(line)
            if named is None:
                raise InvalidKeywords(
                    f"{source}, line {number}: a category is 1 to 32 of a-z 0-9 _ - in brackets, "
                    f"such as [internal]"
                )
            category = named[1]
        else:
            keywords.append(Keyword(line, category))
    return keywords


def shipped() -> list[Keyword]:
    """Return the list that comes with fairlane."""
    content = files("fairlane.detect").joinpath("data", "keywords.txt").read_text("utf-8")
    return parse(content, "keywords.txt")


def load(paths: Iterable[Path]) -> Keywords:
    """Compile the shipped list together with those of the files (UTF-8).

    Raises InvalidKeywords for a file that cannot be read.
    """
    keywords = shipped()
    for path in paths:
        try:
            content = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidKeywords(f"keyword list {path}: {error}") from error
        keywords += parse(content, str(path))
    return Keywords(keywords)


@cache
def default() -> Keywords:
    """Return the shipped list, compiled once a process."""
    return load(())


def _fold(text: str) -> str:
    # `lower` may lengthen a text (İ), which would shift the spans.
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (
        (start > 0 and _WORD_CHAR.match(text[start]) and _WORD_CHAR.match(text[start - 1]))
        or (end < len(text) and _WORD_CHAR.match(text[end - 1]) and _WORD_CHAR.match(text[end]))
    )
