"""Lists of words: how they are written, compiled and found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.detect.keywords import InvalidKeywords, Keyword, Keywords, load, parse, shipped
from fairlane.detect.text import detect


def test_a_list_has_words_categories_and_comments() -> None:
    content = "\ufeff# ours\n绿灯\n\n[project-x]\nblue heron\n"
    assert parse(content, "list.txt") == [
        Keyword("绿灯", "list"),
        Keyword("blue heron", "project-x"),
    ]


def test_a_bad_category_is_told_with_its_line() -> None:
    with pytest.raises(InvalidKeywords, match=r"list\.txt, line 2"):
        parse("word\n[No Good]\n", "list.txt")


def test_the_shipped_list_is_small_and_has_both_languages() -> None:
    words = {keyword.word for keyword in shipped()}
    assert {"机密", "confidential"} <= words
    assert len(words) < 100


def test_a_users_list_comes_on_top_of_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "ours.txt"
    path.write_text("[project]\nBlue Heron\n", "utf-8")
    findings = detect("机密：ＢＬＵＥ heron, blue herons", load([path]))
    assert [(finding.value, finding.rule) for finding in findings] == [
        ("机密", "keyword.confidential"),
        ("ＢＬＵＥ heron", "keyword.project"),
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_list_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ours.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidKeywords, match="ours"):
        load([path])


def test_the_longest_of_nested_words_stays() -> None:
    words = Keywords([Keyword("商业"), Keyword("商业秘密"), Keyword("秘密"), Keyword("")])
    assert len(words) == 3
    assert [finding.value for finding in detect("属于商业秘密", words)] == ["商业秘密"]


def test_letters_that_grow_in_lower_case_do_not_shift_spans() -> None:
    words = Keywords([Keyword("secret")])
    (finding,) = detect("İİİ SECRET", words)
    assert (finding.value, finding.start) == ("SECRET", 4)


def test_no_words_find_nothing() -> None:
    assert detect("confidential", Keywords([])) == []
