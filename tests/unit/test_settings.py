"""Settings: read, checked at once, agreed with a store."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Settings, TaskType, formulas
from fairlane.errors import InvalidSettings
from fairlane.settings import SEED, shared_fields
from fairlane.settings.told import told
from fairlane.site import SiteRule


def test_the_defaults_are_the_documents_numbers() -> None:
    settings = Settings()
    assert settings.max_total_pending == formulas.MAX_TOTAL_PENDING == 5_000
    assert settings.max_per_mac_pending == formulas.MAX_PER_MAC_PENDING == 200
    assert (settings.task_ttl_ms, settings.active_ttl_ms) == (3_600_000, 900_000)
    assert (settings.aging_max_wait_ms, settings.starvation_after_ms) == (600_000, 30_000)
    assert (settings.batch_size, settings.min_batch_size, settings.max_defers) == (10, 1, 5)
    assert settings.lanes == ("ocr", "text")


def test_from_the_environment() -> None:
    environ = {
        "FAIRLANE_STORE_URL": "redis://example:6379",
        "FAIRLANE_BATCH_SIZE": "7",
        "FAIRLANE_AGING_WEIGHT": "0.5",
        "FAIRLANE_DATA_DIR": "/var/lib/fairlane",
        "FAIRLANE_KEYWORDS_FILES": "/a.txt:/b.txt",
        "FAIRLANE_TASK_TYPES": '[{"name": "video", "lane": "video", "queue": "q.video"}]',
        "PATH": "/bin",
        "fairlane_batch_size": "8",
    }
    settings = Settings.from_env(environ)
    assert (settings.store_url, settings.batch_size) == ("redis://example:6379", 7)
    assert (settings.aging_weight, settings.data_dir) == (0.5, Path("/var/lib/fairlane"))
    assert settings.keywords_files == (Path("/a.txt"), Path("/b.txt"))
    assert settings.task_types == (TaskType("video", "video", "q.video"),)
    assert (settings.lanes, settings.lane_by_type) == (("video",), {"video": "video"})


def test_the_process_environment_is_what_counts_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_BATCH_SIZE", "3")
    assert Settings.from_env().batch_size == 3


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(
        InvalidSettings,
        match=r"FAIRLANE_BATCHSIZE: no such setting; did you mean FAIRLANE_BATCH_SIZE\?",
    ):
        Settings.from_env({"FAIRLANE_BATCHSIZE": "7"})


@pytest.mark.parametrize("text", ["", "7.0", "seven", "1e3", " 7", "7\n", "٧", "0x7", "9" * 40])
def test_a_number_that_is_none(text: str) -> None:
    with pytest.raises(InvalidSettings, match="FAIRLANE_BATCH_SIZE"):
        Settings.from_env({"FAIRLANE_BATCH_SIZE": text})


@pytest.mark.parametrize("text", ["", "ocr", "{}", "[1]", '[{"name": "a"}]', '[{"colour": 1}]'])
def test_task_types_that_are_none(text: str) -> None:
    with pytest.raises(InvalidSettings):
        Settings.from_env({"FAIRLANE_TASK_TYPES": text})


def test_every_violation_is_told_at_once() -> None:
    with pytest.raises(InvalidSettings) as raised:
        Settings.from_env({"FAIRLANE_BATCH_SIZE": "x", "FAIRLANE_COLOUR": "red"})
    assert "FAIRLANE_BATCH_SIZE" in str(raised.value)
    assert "FAIRLANE_COLOUR" in str(raised.value)
    with pytest.raises(InvalidSettings) as raised:
        Settings(batch_size=0, policy="lottery", lease_ms=-1)
    for name in ("batch_size", "policy", "lease_ms"):
        assert name in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": "10"},
        {"batch_size": True},
        {"batch_size": 1.5},
        {"batch_size": 10**12 + 1},
        {"aging_weight": float("nan")},
        {"aging_weight": float("inf")},
        {"aging_weight": 0.0},
        {"policy": None},
        {"store_url": None},
        {"order": "random"},
        {"min_batch_size": 11},
        {"low_mark_percent": 101},
        {"defer_jitter_percent": 101},
        {"sites": (SiteRule("02:42", "a"), SiteRule("02:42", "b"))},
        {"defer_backoff_base_ms": 600_001},
        {"starvation_after_ms": 600_001},
        {"heartbeat_every_ms": 30_000},
        {"turn_lease_ms": 900_001},
        {"resume_percent": 76},
        {"pause_percent": 101},
        {"task_types": ()},
        {"task_types": (TaskType("a", "x", "q"), TaskType("a", "y", "q"))},
        {"task_types": (TaskType("a", "main", "q"), TaskType("b", "x", "q"))},
    ],
    ids=str,
)
def test_what_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match=next(iter(wrong))):
        Settings(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "OCR"},
        {"name": "a b"},
        {"name": ""},
        {"lane": "a:b"},
        {"lane": "a,b"},
        {"lane": "a|b"},
        {"queue": "1"},
        {"queue": "a b"},
        {"requires": "tpu"},
        {"soft_limit_ms": 0},
        {"soft_limit_ms": 300_001},
        {"name": 7},
    ],
    ids=str,
)
def test_a_task_type_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        TaskType(**{"name": "a", "lane": "a", "queue": "a", **wrong})


def test_the_seed_preset_gives_way_to_what_is_set_beside_it() -> None:
    seed = Settings(preset="seed")
    assert {name: getattr(seed, name) for name in SEED} == dict(SEED)
    assert (seed.policy, seed.order, seed.admission, seed.lanes) == (
        "aging",
        "lifo",
        "system",
        ("main",),
    )
    environ = {"FAIRLANE_PRESET": "seed", "FAIRLANE_ORDER": "fifo"}
    assert Settings.from_env(environ) == replace(seed, order="fifo")


def test_a_default_is_no_opinion() -> None:
    assert Settings().opinions() == {}
    assert Settings(batch_size=10).opinions() == {}
    assert Settings(batch_size=7, namespace="x").opinions() == {"batch_size": "7"}
    assert set(Settings(preset="seed").opinions()) == {"preset", *SEED} - {
        field.name for field in fields(Settings) if not field.metadata["shared"]
    }


def test_a_process_adopts_what_the_store_has_and_keeps_what_is_its_own() -> None:
    stored = Settings(preset="seed", batch_size=7, aging_weight=0.5).shared()
    mine = Settings(store_url="redis://x", heartbeat_every_ms=7_000)
    adopted = mine.adopt({**stored, "a later setting": "x", "lanes": "main"})
    assert adopted.shared() == stored
    assert (adopted.store_url, adopted.heartbeat_every_ms) == ("redis://x", 7_000)
    assert mine.adopt({}) == mine


@given(
    weight=st.floats(1e-6, 1e6) | st.integers(1, 10**6),
    numbers=st.tuples(st.integers(10, 10**6), st.integers(1, 10)),
)
def test_adopted_settings_have_the_digest_of_the_stored_ones(
    weight: float, numbers: tuple[int, int]
) -> None:
    stored = Settings(aging_weight=weight, batch_size=numbers[0], min_batch_size=numbers[1])
    assert Settings().adopt(stored.shared()).digest == stored.digest


def test_the_digest_is_that_of_the_shared_settings() -> None:
    assert Settings(batch_size=7).digest != Settings().digest
    assert Settings(namespace="x", socket_timeout_ms=1).digest == Settings().digest


def test_the_environment_of_settings_makes_them_again() -> None:
    for settings in (
        Settings(),
        Settings(preset="seed", store_url="redis://x", aging_weight=0.25),
        Settings(keywords_files=(Path("/a"), Path("/b")), data_dir=Path("/d")),
    ):
        assert Settings.from_env(settings.environ()) == settings


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Settings(store_url="redis://:secret@host"))


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket?secret_access_key=hidden%2F1&region=x",
        "s3://bucket?access%5Fkey_id=hidden&secret%5faccess%5fkey=hidden&region=x",
        "s3://me:hidden@bucket?region=x",
    ],
)
def test_a_secret_in_a_url_is_not_told(url: str) -> None:
    told_of = {row.setting: row.value for row in told(Settings(files_url=url))}
    assert "hidden" not in told_of["files_url"]
    assert told_of["files_url"].endswith("region=x")
    told_of = {
        row.setting: row.value for row in told(Settings(store_url="redis://h?pass%77ord=x9"))
    }
    assert told_of["store_url"] == "redis://h?pass%77ord=***"


def test_nothing_changes_later() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().batch_size = 7  # type: ignore[misc]


def test_every_setting_says_what_it_is() -> None:
    for item in fields(Settings):
        assert re.search(r"\w", item.metadata["about"]), item.name
    assert {item.name for item in shared_fields()} >= {"policy", "task_types", "max_attempts"}


def test_what_undoes_a_preset_is_an_opinion_and_goes_along_to_other_processes() -> None:
    settings = Settings(preset="seed", order="fifo", on_no_capacity="hold")
    assert Settings.from_env(settings.environ()) == settings
    assert settings.opinions()["order"] == "fifo"


def test_a_process_reports_often_enough_for_leases_that_it_adopts() -> None:
    """One that said nothing could not join a store with leases under its 15 s."""
    assert Settings().adopt(Settings(lease_ms=20_000).shared()).heartbeat_every_ms == 15_000
    brief = Settings(lease_ms=10_000, heartbeat_every_ms=2_000).shared()
    assert Settings().adopt(brief).heartbeat_every_ms == 5_000
    assert Settings(heartbeat_every_ms=3_000).adopt(brief).heartbeat_every_ms == 3_000
    with pytest.raises(InvalidSettings, match="heartbeat_every_ms"):
        Settings(heartbeat_every_ms=12_000).adopt(brief)


def test_a_relative_folder_is_one_of_the_data_folder_wherever_a_process_runs() -> None:
    """Service and worker have working directories of their own."""
    for folder, expected in (
        ("", "/data/files"),
        ("images", "/data/images"),
        ("/mnt/images", "/mnt/images"),
        ("s3://bucket/x", "/data/files"),
    ):
        assert Settings(data_dir=Path("/data"), files_url=folder).files_dir == Path(expected)
    settings = Settings(data_dir=Path("/data"), token_keys_dir="own")
    assert settings.token_keys_folder == Path("/data/own")
