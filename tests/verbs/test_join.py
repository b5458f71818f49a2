"""Agree on the configuration: the first process writes it, later ones adopt it or are refused."""

from __future__ import annotations

import pytest

from fairlane import Client, Settings, verbs
from fairlane.errors import ConfigMismatch
from support.store import LANE, Store, mac
from verbs.conftest import Open


def test_the_first_process_writes_it_and_later_ones_adopt_it(open_store: Open) -> None:
    store = open_store(policy="aging", batch_size=7)
    stored, _ = store.run(verbs.Join())
    assert (stored["policy"], stored["batch_size"], stored["lanes"]) == ("aging", "7", "ocr,text")
    other = store.other()
    other.ping()
    assert (other.settings.policy, other.settings.batch_size) == ("aging", 7)
    assert other.settings.digest == store.client.settings.digest


def test_config_mismatch_names_both_values(open_store: Open) -> None:
    store = open_store(batch_size=7)
    with store.unchanged(), pytest.raises(ConfigMismatch, match="says 8, the store says 7"):
        store.other(batch_size=8).ping()


def test_a_default_is_no_opinion_and_the_same_opinion_no_mismatch(open_store: Open) -> None:
    store = open_store(batch_size=7)
    store.other(batch_size=7).ping()
    store.other(namespace="sensitive", socket_timeout_ms=1_000).ping()


def test_what_was_adopted_is_no_opinion_either(open_store: Open) -> None:
    store = open_store(policy="aging")
    adopter = store.other()
    adopter.ping()
    store.client.migrate(store.other(policy="fair", batch_size=7).settings)
    adopter.ping()
    assert (adopter.settings.policy, adopter.settings.batch_size) == ("fair", 7)


def test_what_was_agreed_outlives_an_empty_store(open_store: Open) -> None:
    store = open_store(batch_size=7)
    adopter = store.other()
    adopter.ping()
    store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")
    adopter.enqueue(mac(1), LANE, {})
    assert store.redis.hget(store.keys.config, "batch_size") == "7"
    store.client.ping()


def test_an_opinion_that_no_longer_holds_is_refused(open_store: Open) -> None:
    store = open_store(batch_size=7)
    insists = store.other(batch_size=7)
    insists.ping()
    store.client.migrate(store.other(batch_size=8).settings)
    with store.unchanged(), pytest.raises(ConfigMismatch):
        insists.ping()


@pytest.mark.parametrize("weight", [2, 2.0, 0.1, 1e-7])
def test_a_number_means_the_same_however_it_was_written(store_url: str, weight: float) -> None:
    settings = Settings(store_url=store_url, aging_weight=weight)
    with Client(settings) as one, Client(settings) as other:
        one.ping()
        other.ping()
        assert other.settings.aging_weight == weight


def test_twice_reads_the_same_configuration(store: Store) -> None:
    with store.unchanged():
        assert store.run(verbs.Join()) == store.run(verbs.Join())


def test_two_releases_that_know_different_settings_work_side_by_side(open_store: Open) -> None:
    store = open_store()
    config = store.client.keys.config
    store.redis.hdel(config, "dead_letter_cap")
    store.redis.hset(config, "a_setting_of_the_next_release", "1")
    newer = store.other()
    newer.ping()
    assert store.redis.hget(config, "dead_letter_cap") == "10000"
    store.client.ping()
    newer.ping()
