"""Who is let in, and what he may do."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fairlane import Settings, verbs
from fairlane.errors import InvalidSettings
from fairlane.http import create_app, revocations
from fairlane.http.serve import check_address, listen
from fairlane.keyring import new_key
from support.issuer import SECRET, bare, claims, forged, issued, now_s
from support.service import Service, bearer, is_problem

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
TASK = {"mac": MAC, "task_type": "text", "data": {}}


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    """Give the application with a key."""
    service = Service(store_url, token_secret=SECRET)
    yield service
    service.close()


def as_(service: Service, token: str, method: str, path: str, **more: Any) -> httpx.Response:
    return service.ask(method, path, headers={**bearer(token), **more.pop("headers", {})}, **more)


def every_route(service: Service) -> list[tuple[str, str]]:
    """Return each method and path of the OpenAPI, with something in its places."""
    told = service.app.openapi()["paths"]
    return [
        (method.upper(), path.replace("{mac}", MAC).replace("{task_id}", "x"))
        for path, methods in told.items()
        for method in methods
    ]


def test_no_route_but_livez_without_a_token(service: Service) -> None:
    """A48: no credentials, 401 on everything but livez."""
    routes = every_route(service)
    assert len(routes) > 10
    for method, path in [*routes, ("GET", "/"), ("GET", "/openapi.json"), ("GET", "/nowhere"),
                         ("PUT", "/v1/tasks"), ("OPTIONS", "/v1/tasks"), ("HEAD", "/readyz"),
                         ("GET", "/livez/"), ("GET", "//livez"), ("GET", "/livez/../v1/lanes"),
                         ("GET", "/v1/lanes?/livez")]:  # fmt: skip
        answer = service.ask(method, path)
        if path == "/livez":
            assert answer.json() == {"status": "ok"}
            continue
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"
        if method != "HEAD":
            assert is_problem(answer, 401, "UNAUTHORIZED")


def test_a_good_token_is_let_in(service: Service) -> None:
    for role in ("viewer", "operator"):
        assert as_(service, issued(service, role), "GET", "/v1/lanes").status_code == 200
    lower = {"Authorization": "bearer  " + issued(service, "viewer")}
    assert service.ask("GET", "/v1/lanes", headers=lower).status_code == 200


def test_every_way_in_which_a_token_does_not_hold(service: Service) -> None:
    now = now_s(service.store)
    good = claims(now)
    private = rsa.generate_private_key(65537, 2048)
    bad = {
        "alg none": bare({"alg": "none", "kid": "settings"}, good),
        "alg None": bare({"alg": "NoNe", "kid": "settings"}, good, b"x"),
        "no alg": bare({"kid": "settings"}, good, b"x"),
        "another HMAC": forged(good, algorithm="HS512", key=SECRET * 2),
        "RS256 under an HMAC's name": forged(good, key=private, algorithm="RS256"),
        "wrong key": forged(good, key="t" * 40),
        "unknown kid": forged(good, kid="other"),
        "kid of a path": forged(good, kid="../../../../dev/null"),
        "kid of an empty file": forged(good, kid="/dev/null", key=b"\0" * 32),
        "kid of many": bare({"alg": "HS256", "kid": ["settings"]}, good, b"x"),
        "kid of a process without a key": forged(good, kid="start"),
        "key in the header": forged(good, key="t" * 40, jwk={"kty": "oct", "k": "dHR0"}),
        "crit": forged(good, crit=["exp"]),
        "b64": bare({"alg": "HS256", "kid": "settings", "b64": False}, good, b"x"),
        "expired": forged(claims(now, exp=now - 31)),
        "no exp": forged(claims(now, exp=None)),
        "exp of text": bare_signed(service, claims(now, exp="tomorrow")),
        "exp of a million years": bare_signed(service, claims(now, exp=10**14)),
        "exp infinite": forged(claims(now, exp=float("inf"))),
        "exp true": forged(claims(now, exp=True)),
        "not yet": forged(claims(now, nbf=now + 40)),
        "issued in the future": forged(claims(now, iat=now + 40)),
        "another audience": forged(claims(now, aud="other")),
        "no audience": forged(claims(now, aud=None)),
        "no id": forged(claims(now, jti=None)),
        "id of a number": bare_signed(service, claims(now, jti=7)),
        "unknown role": forged(claims(now, role="root")),
        "no role": forged(claims(now, role=None)),
        "roles": forged(claims(now, role=["operator"])),
        "a device without a MAC": forged(claims(now, role="device")),
        "a device of all": forged(claims(now, role="device", mac="*")),
        "an operator with a MAC": forged(claims(now, mac=MAC)),
        "a list": bare_signed(service, ["operator"]),
        "no JSON": bare_signed(service, None, raw=b"{"),
        "deep": bare_signed(service, None, raw=b"[" * 5_000),
        "cut": forged(good)[:-1],
        "longer": forged(good) + "A",
        "no signature": forged(good).rpartition(".")[0] + ".",
        "huge": "a" * 100_000,
        "huge and dotted": "a" * 5_000 + "." + "b" * 5_000 + ".c",
        "dots": "..",
        "four parts": forged(good) + ".x",
        "unicode": "t\u00f6ken.\u00e4.\u00f6",
        "nothing of ours": "Zm9v",
    }  # fmt: skip
    for why, token in bad.items():
        headers = {"Authorization": f"Bearer {token}".encode("latin-1")}
        answer = service.ask("GET", "/v1/lanes", headers=headers)
        assert is_problem(answer, 401, "INVALID_TOKEN"), why
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"', why
        assert SECRET not in answer.text
    assert as_(service, forged(good), "GET", "/v1/lanes").status_code == 200, "the others' base"


def bare_signed(service: Service, said: Any, raw: bytes | None = None) -> str:
    """Return a token whose signature holds, whatever it says."""
    payload = json.dumps(said).encode() if raw is None else raw
    return jwt.PyJWS().encode(payload, SECRET, "HS256", {"kid": "settings"})


def test_the_clocks_may_differ_by_30_seconds(service: Service) -> None:
    now = now_s(service.store)
    late, early = claims(now, exp=now - 20), claims(now, nbf=now + 20, iat=now + 20)
    for said in (late, early):
        assert as_(service, forged(said), "GET", "/v1/lanes").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Basic b3A6b3A=")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", "")],
        [("Authorization", "Bearer x"), ("Authorization", "Bearer x")],
        [("X-Authorization", "Bearer x")],
        [("Cookie", "other=1; fairlane_session=; =;;")],
    ],
)
def test_what_is_no_token_at_all(service: Service, headers: list[tuple[str, str]]) -> None:
    assert is_problem(service.ask("GET", "/v1/lanes", headers=headers), 401, "UNAUTHORIZED")


def test_a_good_token_beside_another_is_refused(service: Service) -> None:
    good = "Bearer " + issued(service, "operator")
    twice = [("Authorization", good), ("authorization", good)]
    assert is_problem(service.ask("GET", "/v1/lanes", headers=twice), 401, "UNAUTHORIZED")


def test_a_device_is_held_to_its_own_mac(service: Service) -> None:
    token = issued(service, "device", MAC)
    sent = as_(service, token, "POST", "/v1/tasks", json={**TASK, "mac": MAC.upper()})
    assert sent.status_code == 202
    mine = sent.headers["location"]
    theirs = service.store.enqueue(OTHER, "text", {}).task_id
    assert as_(service, token, "GET", mine).status_code == 200
    assert as_(service, token, "GET", f"/v1/devices/{MAC}").status_code == 200
    refused = [
        as_(service, token, "POST", "/v1/tasks", json={**TASK, "mac": OTHER}),
        as_(service, token, "GET", f"/v1/tasks/{theirs}"),
        as_(service, token, "DELETE", f"/v1/tasks/{theirs}"),
        as_(service, token, "GET", f"/v1/devices/{OTHER}"),
        as_(service, token, "PATCH", f"/v1/devices/{MAC}", json={"weight": 9.0}),
        *(as_(service, token, "GET", path) for path in
          ("/v1/devices", "/v1/lanes", "/v1/workers", "/v1/dead-letters", "/readyz")),
    ]  # fmt: skip
    for answer in refused:
        assert is_problem(answer, 403, "FORBIDDEN")
        assert answer.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'
    batch = as_(service, token, "POST", "/v1/tasks:batch", json=[TASK, {**TASK, "mac": OTHER}])
    assert [verdict["status"] for verdict in batch.json()["verdicts"]] == [202, 403]
    assert service.store.run(verbs.InspectTotals()).pending == 3
    assert as_(service, token, "DELETE", mine).status_code == 200


def test_a_device_has_no_say_in_its_share(service: Service) -> None:
    """Neither what its tasks cost, nor with whom it shares."""
    token = issued(service, "device", MAC)
    for field in ({"cost_seconds": 0.001}, {"site": "mine"}):
        answer = as_(service, token, "POST", "/v1/tasks", json={**TASK, **field})
        assert is_problem(answer, 403, "FORBIDDEN")
    of_lab = issued(service, "device", OTHER, "lab")
    answer = as_(service, of_lab, "POST", "/v1/tasks", json={**TASK, "mac": OTHER})
    assert answer.status_code == 202
    assert service.store.device(OTHER).site == "lab"


def test_a_producer_may_be_held_to_a_site(service: Service) -> None:
    token = issued(service, "producer", site="lab")
    sent = as_(service, token, "POST", "/v1/tasks", json={**TASK, "cost_seconds": 1})
    assert sent.status_code == 202
    assert service.store.device(MAC).site == "lab"
    theirs = service.store.enqueue(OTHER, "text", {}, site="other").task_id
    refused = [
        as_(service, token, "POST", "/v1/tasks", json={**TASK, "site": "other"}),
        as_(service, token, "GET", f"/v1/tasks/{theirs}"),
        as_(service, token, "DELETE", f"/v1/tasks/{theirs}"),
        as_(service, token, "GET", "/v1/devices"),
        as_(service, token, "PATCH", f"/v1/devices/{MAC}", json={"weight": 9.0}),
    ]
    for answer in refused:
        assert is_problem(answer, 403, "FORBIDDEN")
    assert as_(service, token, "DELETE", sent.headers["location"]).status_code == 200
    free = issued(service, "producer")
    assert as_(service, free, "GET", f"/v1/tasks/{theirs}").status_code == 200


def test_a_viewer_changes_nothing(service: Service) -> None:
    token = issued(service, "viewer")
    task_id = service.store.enqueue(MAC, "text", {}).task_id
    assert as_(service, token, "GET", f"/v1/tasks/{task_id}").status_code == 200
    for method, path, body in (
        ("POST", "/v1/tasks", TASK),
        ("POST", "/v1/tasks:batch", [TASK]),
        ("DELETE", f"/v1/tasks/{task_id}", None),
        ("PATCH", f"/v1/devices/{MAC}", {"weight": 9.0}),
        ("POST", "/v1/dead-letters:redrive", {"task_ids": [task_id]}),
        ("POST", "/v1/dead-letters:drop", {"task_ids": [task_id]}),
    ):
        answer = as_(service, token, method, path, **({"json": body} if body else {}))
        assert is_problem(answer, 403, "FORBIDDEN"), path


def test_a_revoked_token_is_refused(service: Service) -> None:
    token = issued(service, "operator", token_id="t1")
    assert as_(service, token, "GET", "/v1/lanes").status_code == 200
    service.store.run(verbs.RevokeToken("t1"))
    service.age(seconds=11)
    assert is_problem(as_(service, token, "GET", "/v1/lanes"), 401, "INVALID_TOKEN")
    other = issued(service, "operator")
    assert as_(service, other, "GET", "/v1/lanes").status_code == 200


def test_a_token_ends_while_the_service_runs(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two readings the store's clock is carried on, and what is known is checked again."""
    monkeypatch.setattr(revocations, "FRESH_S", 3_600)
    token = forged(claims(now_s(service.store), exp=now_s(service.store) + 600))
    assert as_(service, token, "GET", "/v1/lanes").status_code == 200
    service.age(seconds=500)
    assert as_(service, token, "GET", "/v1/lanes").status_code == 200
    service.age(seconds=131)
    assert is_problem(as_(service, token, "GET", "/v1/lanes"), 401, "INVALID_TOKEN")


def test_keys_are_rotated_while_the_service_runs(store_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    assert new_key(folder) == "k0001"
    service = Service(store_url, token_keys_dir=str(folder))
    try:
        old = issued(service, "viewer")
        assert jwt.get_unverified_header(old)["kid"] == "k0001"
        assert as_(service, old, "GET", "/v1/lanes").status_code == 200
        assert new_key(folder) == "k0002"
        new = issued(service, "viewer")
        assert jwt.get_unverified_header(new)["kid"] == "k0002"
        service.age(seconds=11)
        assert [as_(service, one, "GET", "/v1/lanes").status_code for one in (old, new)] == [
            200
        ] * 2
        (folder / "k0001.key").unlink()
        service.age(seconds=11)
        assert is_problem(as_(service, old, "GET", "/v1/lanes"), 401, "INVALID_TOKEN")
        assert as_(service, new, "GET", "/v1/lanes").status_code == 200
        (folder / "k0002.key").unlink()
        service.age(seconds=11)
        assert is_problem(as_(service, new, "GET", "/v1/lanes"), 401, "INVALID_TOKEN")
        assert not service.token, "and no key at all lets nobody in"
    finally:
        service.close()


def test_a_jwk_set_verifies(store_url: str, tmp_path: Path) -> None:
    private, curve = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    of_rsa = jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
    of_ec = jwt.algorithms.ECAlgorithm.to_jwk(curve.public_key(), as_dict=True)
    keys = [
        {**of_rsa, "kid": "r", "use": "sig"},
        {**of_ec, "kid": "e"},
        {"kty": "RSA", "use": "enc"},
    ]
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": keys}))
    service = Service(store_url, token_jwks_file=str(file))
    try:
        good = claims(now_s(service.store))
        for key, algorithm, kid in ((private, "RS256", "r"), (curve, "ES256", "e")):
            token = forged(good, key=key, algorithm=algorithm, kid=kid)
            assert as_(service, token, "GET", "/v1/lanes").status_code == 200, algorithm
        public = base64.urlsafe_b64decode(of_rsa["n"] + "==")
        for token in (
            forged(good, key=private, algorithm="RS256", kid="e"),
            forged(good, key=private, algorithm="PS256", kid="r"),
            forged(good, key=public, kid="r"),
        ):
            answer = as_(service, token, "GET", "/v1/lanes")
            assert is_problem(answer, 401, "INVALID_TOKEN")
    finally:
        service.close()


def test_keys_that_cannot_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "k0001.key").write_text("short")
    with pytest.raises(InvalidSettings, match=r"k0001.key: 5 bytes") as raised:
        create_app(Settings(token_keys_dir=str(folder)))
    assert str(tmp_path) not in str(raised.value)
    for text in ("", "{}", "[]", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "c2hvcnQ"}]}',
                 '{"keys": [{"kty": "RSA", "n": "x", "e": "y"}]}', "[" * 100_000):  # fmt: skip
        (tmp_path / "jwks").write_text(text)
        with pytest.raises(InvalidSettings, match="token_jwks_file"):
            create_app(Settings(data_dir=tmp_path / "none", token_jwks_file=str(tmp_path / "jwks")))
    with pytest.raises(InvalidSettings, match="token_secret"):
        Settings(token_secret="short")
    with pytest.raises(InvalidSettings) as raised:
        Settings(token_secret=["hidden"])  # type: ignore[arg-type]
    assert "hidden" not in str(raised.value)


def test_without_a_key_only_this_machine_is_let_in(store_url: str, tmp_path: Path) -> None:
    service = Service(store_url, data_dir=tmp_path)
    try:
        assert service.ask("GET", "/v1/lanes").status_code == 200
        for host in ("192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "example.org"):
            service.call_from(host)
            answer = service.ask("GET", "/v1/lanes")
            assert is_problem(answer, 401, "UNAUTHORIZED")
            assert "without a key only callers on this machine" in answer.json()["detail"]
        service.call_from("::1")
        assert service.ask("GET", "/v1/lanes").status_code == 200
    finally:
        service.close()


def test_without_a_key_no_address_that_others_reach_is_served(tmp_path: Path) -> None:
    app = create_app(Settings(data_dir=tmp_path))
    with (
        listen("0.0.0.0", 0) as listener,
        pytest.raises(InvalidSettings, match="fairlane token key"),
    ):
        check_address(app, listener)
    with listen("127.0.0.1", 0) as listener:
        check_address(app, listener)
    with socket.socket(socket.AF_UNIX) as listener:
        check_address(app, listener)
    with listen("0.0.0.0", 0) as listener:
        check_address(create_app(Settings(data_dir=tmp_path, token_secret=SECRET)), listener)


def test_a_token_that_asks_too_often_is_told_when_to_ask_again(store_url: str) -> None:
    service = Service(store_url, token_secret=SECRET, device_requests_per_s=1, requests_per_s=2)
    try:
        device, other = issued(service, "device", MAC), issued(service, "device", OTHER)
        path = f"/v1/devices/{MAC}"
        codes = [as_(service, device, "GET", path).status_code for _ in range(4)]
        assert codes[:2] == [200, 200]
        assert codes[-1] == 429
        answer = as_(service, device, "GET", path)
        assert is_problem(answer, 429, "TOO_MANY_REQUESTS")
        assert int(answer.headers["retry-after"]) >= 1
        assert as_(service, other, "GET", f"/v1/devices/{OTHER}").status_code == 200
        operator = issued(service, "operator")
        assert as_(service, operator, "GET", path).status_code == 200
        assert service.ask("GET", "/livez").status_code == 200
    finally:
        service.close()


def test_a_store_that_is_gone_is_a_503_also_for_tokens(tmp_path: Path) -> None:
    service = Service(f"unix://{tmp_path}/none.sock", token_secret=SECRET)
    try:
        answer = as_(service, forged(claims(1_900_000_000)), "GET", "/v1/lanes")
        assert is_problem(answer, 503, "STORE_UNAVAILABLE")
        assert str(tmp_path) not in answer.text
        bad = as_(service, forged(claims(1_900_000_000), key="t" * 40), "GET", "/v1/lanes")
        assert is_problem(bad, 401, "INVALID_TOKEN")
    finally:
        service.close()
