"""URLs of stores and brokers: what the driver, the sentinels and kombu are told."""

from __future__ import annotations

from typing import Any

import kombu
import pytest

from fairlane import Settings
from fairlane.celery.announce import broker_name
from fairlane.celery.patience import PatientConnection
from fairlane.client.broker import broker_of
from fairlane.client.sentinel import SCHEMES, Sentinels, SentinelUrl
from fairlane.client.store import Store
from fairlane.errors import InvalidSettings

LONG = "redis+sentinel://me:p%40ss@a,b:1234,[::1]:5/svc/3?sentinel_password=s%20p&ssl_ca_certs=/ca"


def kombus(url: str) -> dict[str, Any]:
    """Return what kombu reads in the broker of a URL."""
    broker = broker_of(url, 5.0)
    connection = kombu.Connection(broker.url, ssl=broker.use_ssl)
    names = ("transport_cls", "hostname", "port", "userid", "password", "virtual_host", "alt")
    return {name: getattr(connection, name) for name in names}


def test_a_url_of_sentinels_is_read() -> None:
    url = SentinelUrl.of(LONG)
    assert url.nodes == (("a", 26_379), ("b", 1_234), ("::1", 5))
    assert (url.service, url.db) == ("svc", 3)
    assert url.store_url == "redis://me:p%40ss@primary/3?ssl_ca_certs=%2Fca"
    assert url.sentinel_login == {"password": "s p"}
    assert SentinelUrl.of("valkey+sentinel://a/svc").db == 0


@pytest.mark.parametrize(
    "rest", ["", "a", "a/", "/svc", "a/svc/x", "a/svc/1/2", "a/svc/-1", "a:x/svc", "a,/svc", ":1/s"]
)
def test_a_url_of_sentinels_that_names_too_little_is_refused(rest: str) -> None:
    with pytest.raises(InvalidSettings, match=r"redis\+sentinel://host:26379"):
        Store(Settings(store_url=f"redis+sentinel://{rest}"))


@pytest.mark.parametrize("is_async", [False, True])
def test_tls_is_to_both_and_each_has_its_own_login(is_async: bool) -> None:
    url = LONG.replace("redis+", "rediss+")
    sentinels = Sentinels(url, is_async=is_async, socket_timeout=5.0)
    store, sentinel = sentinels._store, sentinels._sentinel
    assert "SSL" in sentinels._class.__name__
    assert (store["username"], store["password"], store["db"]) == ("me", "p@ss", 3)
    assert (sentinel.get("username"), sentinel["password"]) == (None, "s p")
    assert store["ssl_ca_certs"] == sentinel["ssl_ca_certs"] == "/ca"
    assert "db" not in sentinel


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_broker_of_sentinels_is_kombus(scheme: str) -> None:
    broker = broker_of(LONG.replace("redis+sentinel", scheme), 5.0)
    assert broker.options["master_name"] == "svc"
    assert broker.options["sentinel_kwargs"]["password"] == "s p"
    is_tls = SCHEMES[scheme] == "rediss"
    tls = {"ssl_cert_reqs": "required", "ssl_ca_certs": "/ca"}
    assert broker.use_ssl == (tls if is_tls else None)
    assert broker.options["sentinel_kwargs"].get("ssl", False) is is_tls
    read = kombus(LONG.replace("redis+sentinel", scheme))
    assert (read["hostname"], read["port"]) == ("a", 26_379)
    assert (read["userid"], read["password"], read["virtual_host"]) == ("me", "p@ss", "3")
    assert [node.rpartition("@")[2] for node in read["alt"]] == [
        "a:26379/3",
        "b:1234/3",
        "[::1]:5/3",
    ]


@pytest.mark.parametrize(
    ("url", "host", "port", "db"),
    [
        ("redis://h", "h", 6379, "0"),
        ("redis://h:1/2?protocol=3", "h", 1, "2"),
        ("redis://h?db=4", "h", 6379, "4"),
        ("valkey://h/1", "h", 6379, "1"),
        ("rediss://h/1?ssl_ca_certs=/ca", "h", 6379, "1"),
        ("valkeys://u:p@h/1", "h", 6379, "1"),
        ("unix:///a/b.sock?db=5", "socket:///a/b.sock", None, "5"),
        ("unix:///a%20b.sock", "socket:///a%20b.sock", None, "0"),
        ("redis+socket:///a?virtual_host=1", "socket:///a", None, "1"),
    ],
)
def test_the_broker_of_a_store_is_the_same_server(
    url: str, host: str, port: int | None, db: str
) -> None:
    broker = broker_of(url, 5.0)
    connection = kombu.Connection(broker.url, ssl=broker.use_ssl)
    read = kombus(url)
    assert str(read["hostname"]).partition("?")[0] == host
    if port is not None:
        assert connection.port or connection.get_transport_cls().default_port == port
        assert str(read["virtual_host"]) == db
    else:
        assert f"virtual_host={db}" in str(read["hostname"])


def test_certificates_are_checked_unless_somebody_says_otherwise() -> None:
    assert broker_of("rediss://h/1", 5.0).use_ssl == {"ssl_cert_reqs": "required"}
    lax = broker_of("valkeys://h/1?ssl_cert_reqs=none", 5.0)
    assert lax.use_ssl is not None
    assert lax.use_ssl["ssl_cert_reqs"] == "none"
    assert broker_of("redis://h", 5.0).use_ssl is None


def test_every_socket_of_a_broker_gives_up_some_day() -> None:
    """K12: a publish to a hung broker was still blocked after 25 s."""
    for url in ("redis://h", "rediss://h", "unix:///a", "redis+socket:///a", LONG):
        options = broker_of(url, 4.0).options
        assert options["socket_timeout"] == options["socket_connect_timeout"] == 4.0
        assert options["health_check_interval"] == 4
        assert options["socket_keepalive"] is True
    assert broker_of("amqp://h//", 4.0).options == {"write_timeout": 4.0}
    store = Store(Settings(store_url="redis://h", socket_timeout_ms=4_000))
    assert store.options["socket_timeout"] == store.options["socket_connect_timeout"] == 4.0
    assert store.options["socket_keepalive"] is True


def test_kombus_own_sentinels_have_no_service() -> None:
    with pytest.raises(InvalidSettings, match=r"redis\+sentinel://"):
        broker_of("sentinel://h:26379", 5.0)


def test_a_broker_that_is_away_is_tried_again_every_two_seconds_and_without_end() -> None:
    pauses: list[float] = []

    class Enough(Exception):
        """The test has seen enough."""

    def told(_: Exception, pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 120:
            raise Enough

    with (
        PatientConnection("redis://127.0.0.1:1/0") as connection,
        pytest.MonkeyPatch.context() as at,
    ):
        at.setattr("kombu.utils.functional.sleep", lambda _: None)
        with pytest.raises(Enough):
            connection.ensure_connection(told)
    assert pauses[0] <= 0.5
    assert max(pauses) == 2.0


@pytest.mark.parametrize(
    ("store", "broker", "name"),
    [
        ("redis+sentinel://a:1,b:2/svc/0", "", "the store, database 0"),
        (
            "redis+sentinel://a:1,b:2/svc",
            "redis+sentinel://u:p@b:2,c/svc/1",
            "the store, database 1",
        ),
        ("redis+sentinel://a:1,b:2/svc/0", "redis+sentinel://a/other/1", "service other/1"),
        ("redis+sentinel://a:1,b:2/svc/0", "redis://a/1", "redis://a:6379/1"),
    ],
)
def test_processes_agree_on_a_service_however_they_name_its_sentinels(
    store: str, broker: str, name: str
) -> None:
    kombus = broker_of(broker or store, 5.0)
    service = str(kombus.options.get("master_name", ""))
    assert broker_name(kombus.url, store, service).endswith(name)
