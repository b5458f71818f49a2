"""The table of keys: complete, without overlap, and behind one prefix."""

from __future__ import annotations

import re

import pytest

from fairlane.errors import InvalidSettings
from fairlane.keys import ABNORMAL, MAIN_LANE, TABLE, Keys

MAC = "02:00:00:00:00:01"
#: The keys that the requirement document names, with one lane for all.
OF_THE_DOCUMENT = {
    "QUEUE": f"sensitive:mac:queue:{MAC}",
    "META": f"sensitive:mac:meta:{MAC}",
    "SCHEDULE": "sensitive:mac:schedule",
    "ACTIVE": f"sensitive:mac:active:{MAC}",
    "GLOBAL_PENDING": "sensitive:global_pending",
    "OVERLOADED": "sensitive:overloaded_macs",
    "DEAD_LETTER": "sensitive:dead_letter",
    "WATERMARK": "sensitive:watermark",
    "ABNORMAL": "abnormal:parsed_queue",
}


def test_the_documents_keys_have_the_documents_names() -> None:
    keys = Keys()
    of_devices = {"QUEUE", "META", "ACTIVE"}
    for lua, expected in OF_THE_DOCUMENT.items():
        found = keys.device(lua, MAC, MAIN_LANE) if lua in of_devices else keys.lane(lua, MAIN_LANE)
        assert found == expected


def test_a_lane_adds_its_name() -> None:
    keys = Keys()
    assert keys.lane("SCHEDULE", "ocr") == "sensitive:mac:schedule:ocr"
    assert keys.device("QUEUE", MAC, "ocr") == f"sensitive:mac:queue:{MAC}:ocr"
    assert keys.device("META", MAC) == f"sensitive:mac:meta:{MAC}"
    assert keys.task("abc") == "sensitive:task:abc"


def test_everything_stands_behind_the_namespace_and_the_tag() -> None:
    keys = Keys("other", "shard-1")
    for row in TABLE:
        assert keys.name(row.lua).startswith("{shard-1}other:")
    assert keys.name("ABNORMAL") == "{shard-1}abnormal:parsed_queue"
    assert Keys().name("ABNORMAL") == "abnormal:parsed_queue"


def test_no_name_is_the_beginning_of_another_ones_keys() -> None:
    """A lane or a device that somebody chose must not spell another key."""
    names = [Keys().name(row.lua) for row in TABLE]
    assert len(set(names)) == len(names)
    prefixes = [name for name in names if name.endswith(":")]
    for prefix in prefixes:
        assert not [name for name in names if name != prefix and name.startswith(prefix)]


def test_every_row_is_told_in_full() -> None:
    for row in (*TABLE, ABNORMAL):
        assert re.fullmatch(r"[A-Z_]+", row.lua)
        assert all((row.type, row.holds, row.bound, row.owner)), row


def test_lua_constants_are_those_that_are_asked_for() -> None:
    line = Keys().lua(iter(["TASK", "CONFIG", "call", "TASK"]))
    assert line == "local TASK, CONFIG = 'sensitive:task:', 'sensitive:config'"


@pytest.mark.parametrize(
    ("namespace", "tag"),
    [
        ("", ""),
        ("1x", ""),
        ("Upper", ""),
        ("a:b", ""),
        ("a b", ""),
        ("x" * 33, ""),
        ("a'", ""),
        ("a\n", ""),
        ("a", "{x}"),
        ("a", "a b"),
        ("a", "'"),
        ("a", "x" * 33),
    ],
)
def test_a_name_that_would_break_a_key_or_a_script(namespace: str, tag: str) -> None:
    with pytest.raises(InvalidSettings):
        Keys(namespace, tag)
