"""A browser's session: a cookie that no script reads and no other origin uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlane import Client, Settings, verbs
from fairlane.grant import Grant
from support.issuer import SECRET, claims, forged, issue, issued, now_s
from support.service import Service, bearer, is_problem, served

MAC = "02:00:00:00:00:01"
COOKIE = "fairlane_session"
OWN = {"sec-fetch-site": "same-origin"}
TASK = {"mac": MAC, "task_type": "text", "data": {}}


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    """Give the application with a key."""
    service = Service(store_url, token_secret=SECRET)
    yield service
    service.close()


def begin(service: Service, role: str = "operator") -> dict[str, str]:
    """Begin a session; return the header that a browser sends from then on."""
    answer = service.ask("POST", "/v1/session", headers=bearer(issued(service, role)))
    assert answer.status_code == 200
    service.forget_cookies()
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


def test_the_cookie_is_the_tokens_and_no_script_reads_it(service: Service) -> None:
    token = issued(service, "operator", name="ann")
    answer = service.ask("POST", "/v1/session", headers=bearer(token))
    assert answer.json()["role"] == "operator"
    assert answer.json()["name"] == "ann"
    assert answer.json()["expires_at"].endswith("Z")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert cookie == f"{COOKIE}={token}"
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(attributes)
    (age,) = [int(part.partition("=")[2]) for part in attributes if part.startswith("Max-Age=")]
    assert 3_500 < age <= 3_600
    secure = service.ask(
        "POST", "/v1/session", headers={**bearer(token), "x-forwarded-proto": "https"}
    )
    assert "Secure" in secure.headers["set-cookie"].split("; ")


def test_a_session_is_as_good_as_its_token_and_no_longer(service: Service) -> None:
    cookie = begin(service, "viewer")
    assert service.ask("GET", "/v1/session", headers=cookie | OWN).json()["role"] == "viewer"
    assert service.ask("GET", "/v1/lanes", headers=cookie | OWN).status_code == 200
    sent = service.ask("POST", "/v1/tasks", json=TASK, headers=cookie | OWN)
    assert is_problem(sent, 403, "FORBIDDEN")
    old = forged(claims(now_s(service.store), exp=now_s(service.store) - 31))
    answer = service.ask("GET", "/v1/lanes", headers={"cookie": f"{COOKIE}={old}"} | OWN)
    assert is_problem(answer, 401, "INVALID_TOKEN")
    (token,) = service.store.run(verbs.Tokens())
    service.store.run(verbs.RevokeToken(token.token_id))
    service.age(seconds=11)
    answer = service.ask("GET", "/v1/lanes", headers=cookie | OWN)
    assert is_problem(answer, 401, "INVALID_TOKEN")


def test_it_ends_when_it_is_told_to(service: Service) -> None:
    cookie = begin(service)
    answer = service.ask("DELETE", "/v1/session", headers=cookie | OWN)
    assert answer.status_code == 204
    assert answer.headers["set-cookie"].startswith(f'{COOKIE}=""')
    assert "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "same-origin", "origin": "http://service"},
        {"origin": "http://service"},
        {"origin": "HTTP://SERVICE"},
        {"origin": "https://service", "x-forwarded-proto": "https"},
    ],
)
def test_our_own_pages_may_write(service: Service, headers: dict[str, str]) -> None:
    cookie = begin(service)
    sent = service.ask("POST", "/v1/tasks", json=TASK, headers=cookie | headers)
    assert sent.status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "SAME-ORIGIN "},
        {"sec-fetch-site": ""},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
        {"sec-fetch-site": "cross-site", "origin": "http://service"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://evil.example"},
        {"origin": "http://service.evil.example"},
        {"origin": "http://service:81"},
        {"origin": "https://service"},
        {"origin": "ftp://service"},
        {"origin": "http://service@evil.example"},
        {"origin": "http://[service"},
        {"referer": "http://service/"},
    ],
)
def test_no_other_origin_writes(service: Service, headers: dict[str, str]) -> None:
    cookie = begin(service)
    for method, path, body in (
        ("POST", "/v1/tasks", TASK),
        ("PATCH", f"/v1/devices/{MAC}", {"weight": 2.0}),
        ("DELETE", "/v1/session", None),
        ("POST", "/v1/dead-letters:drop", {"task_ids": ["x"]}),
    ):
        answer = service.ask(method, path, json=body, headers=cookie | headers)
        assert is_problem(answer, 403, "CROSS_ORIGIN"), (method, path)
    assert service.store.run(verbs.InspectTotals()).pending == 0


def test_a_page_of_another_origin_cannot_even_read(service: Service) -> None:
    cookie = begin(service)
    for headers in (
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
        {"origin": "http://127.0.0.1:9999"},
    ):
        answer = service.ask("GET", "/v1/lanes", headers=cookie | headers)
        assert is_problem(answer, 403, "CROSS_ORIGIN")
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert service.ask("GET", "/v1/lanes", headers=cookie | link).status_code == 200
    assert "access-control-allow-origin" not in service.ask("GET", "/livez").headers


def test_a_token_in_the_header_counts_before_the_cookie(service: Service) -> None:
    cookie = begin(service)
    bad = bearer("no.good.token")
    answer = service.ask("GET", "/v1/lanes", headers=cookie | bad | OWN)
    assert is_problem(answer, 401, "INVALID_TOKEN")
    viewer = bearer(issued(service, "viewer"))
    sent = service.ask("POST", "/v1/tasks", json=TASK, headers=cookie | viewer | OWN)
    assert is_problem(sent, 403, "FORBIDDEN")
    program = bearer(issued(service, "producer"))
    sent = service.ask("POST", "/v1/tasks", json=TASK, headers=cookie | program)
    assert sent.status_code == 202, "a program's token needs no origin"


def test_two_cookies_that_differ_are_none(service: Service) -> None:
    good = begin(service)["cookie"]
    for cookies in (
        [("cookie", f"{good}; {COOKIE}=x")],
        [("cookie", good), ("cookie", f"{COOKIE}=x")],
    ):
        answer = service.ask("GET", "/v1/lanes", headers=[*cookies, *OWN.items()])
        assert is_problem(answer, 401, "UNAUTHORIZED")
    same = [("cookie", f"{good}; other=1; {good}"), *OWN.items()]
    assert service.ask("GET", "/v1/lanes", headers=same).status_code == 200


def test_the_start_up_urls_token_becomes_the_cookie_and_leaves_the_address(
    service: Service,
) -> None:
    token = issued(service, "operator")
    answer = service.ask("GET", f"/?token={token}&lane=a%20b", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?lane=a+b")
    assert answer.headers["set-cookie"].startswith(f"{COOKIE}={token};")
    assert token not in answer.text
    assert answer.headers["referrer-policy"] == "no-referrer"
    head = service.ask("HEAD", f"/?token={token}&lane=a%20b", follow_redirects=False)
    assert (head.status_code, head.headers["location"]) == (303, "/?lane=a+b")
    service.forget_cookies()
    bad = service.ask("GET", "/?token=x.y.z", follow_redirects=False)
    assert is_problem(bad, 401, "INVALID_TOKEN")
    for site in ("cross-site", "same-site"):
        link = service.ask("GET", f"/?token={token}", headers={"sec-fetch-site": site})
        assert is_problem(link, 401, "UNAUTHORIZED"), "a link elsewhere does not say who one is"
    for method, path in (("POST", "/"), ("GET", "/v1/lanes"), ("GET", "/livezz")):
        answer = service.ask(method, f"{path}?token={token}")
        assert is_problem(answer, 401, "UNAUTHORIZED")


def test_where_the_service_is_mounted_its_cookie_is_too(service: Service) -> None:
    service.mount("/fair")
    token = issued(service, "operator")
    answer = service.ask("GET", f"/fair/?token={token}", follow_redirects=False)
    assert answer.headers["location"] == "/fair/"
    assert "Path=/fair/" in answer.headers["set-cookie"]


def test_every_answer_tells_browsers_what_not_to_do(service: Service) -> None:
    operator = bearer(issued(service, "operator"))
    answers = [
        service.ask("GET", "/livez"),
        service.ask("GET", "/v1/lanes", headers=operator),
        service.ask("GET", "/nowhere", headers=operator),
        service.ask("GET", "/v1/lanes"),
        service.ask("POST", "/v1/tasks", content=b"{", headers=operator),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert len(answer.headers.get_list("x-content-type-options")) == 1


def test_a_fault_tells_nothing_of_the_servers_insides(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise OSError(2, "No such file", str(Path(__file__)))

    monkeypatch.setattr(service.app.state.gate, "run", broken)
    headers = bearer(issued(service, "operator"))
    service.app.state.door._revocations._read_at = float("inf")
    answer = service.ask("GET", "/v1/lanes", headers=headers)
    assert is_problem(answer, 500, "INTERNAL")
    assert "test_session" not in answer.text
    assert answer.headers["content-security-policy"]


def test_a_stream_ends_with_its_token(store_url: str, tmp_path: Path) -> None:
    with (
        Client.from_url(store_url) as store,
        served(store_url, tmp_path, token_secret=SECRET) as http,
    ):
        signer = Client(Settings(store_url=store_url, token_secret=SECRET))
        with signer:
            token = issue(signer, Grant("viewer"), token_id="watcher")
        told = 0
        with http.stream("GET", "/v1/events", headers=bearer(token)) as stream:
            assert stream.status_code == 200
            for line in stream.iter_lines():
                if not line.startswith("event:"):
                    continue
                if not told:
                    store.run(verbs.RevokeToken("watcher"))
                told += 1
                # There is always something to tell, so what ends the stream is the token.
                store.enqueue(MAC, "text", {})
        assert 0 < told < 150
        assert http.get("/v1/session", headers=bearer(token)).status_code == 401


def test_the_printed_url_opens_a_session_of_a_real_server(store_url: str, tmp_path: Path) -> None:
    """Without a key: one operator's token, in the URL that is printed at the start."""
    with served(store_url, tmp_path) as http:
        token = http.headers.pop("authorization").partition(" ")[2]
        assert http.get("/v1/lanes").status_code == 401
        opened = http.get("/", params={"token": token})
        assert opened.status_code == 303
        assert "token" not in opened.headers["location"]
        port = http.base_url.port
        assert http.cookies.get(f"{COOKIE}_{port}") == token
        assert http.get("/v1/session").json()["role"] == "operator"
        assert http.post("/v1/tasks", json=TASK).status_code == 403
        assert http.post("/v1/tasks", json=TASK, headers=OWN).status_code == 202
        twice = httpx.Headers([("authorization", f"Bearer {token}")] * 2)
        assert http.get("/v1/lanes", headers=twice).status_code in (400, 401)
        huge = http.get("/v1/lanes", headers={"authorization": "Bearer " + "a" * 60_000})
        assert huge.status_code in (400, 401, 431)
        assert http.get("/v1/lanes").status_code == 200
        assert http.delete("/v1/session", headers=OWN).status_code == 204
        assert http.get("/v1/lanes").status_code == 401
        log = (tmp_path / "api.log").read_text()
        assert "Traceback" not in log, log
        assert log.count(token) == 1
