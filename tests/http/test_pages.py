"""The dashboard's pages and files over HTTP: who gets what, and what browsers may keep."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import pytest

from fairlane.http import pages
from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def service(store_url: str) -> Iterator[Service]:
    """Give the application with a key."""
    service = Service(store_url, token_secret=SECRET)
    yield service
    service.close()


def files_of(page: str) -> list[str]:
    return re.findall(r'(?:src|href)="([^"]+)"', page)


def test_a_page_comes_with_the_status_of_its_caller_and_holds_no_data(service: Service) -> None:
    for path in ("/", "/devices", "/devices/02:00:00:00:00:01", "/tasks/x", "/dead-letters"):
        known = service.ask("GET", path, headers=HTML | bearer(issued(service, "viewer")))
        assert (known.status_code, known.headers["content-type"]) == (
            200,
            "text/html; charset=utf-8",
        )
        stranger = service.ask("GET", path, headers=HTML | {"Authorization": "Bearer x"})
        assert stranger.status_code == 401
        assert stranger.text == known.text, "a page is the same for everybody"
        assert stranger.headers["cache-control"] == "no-store"
        program = service.ask("GET", path, headers={"Authorization": "Bearer x"})
        assert is_problem(program, 401, "INVALID_TOKEN")


def test_only_the_paths_of_pages_answer_the_page(service: Service) -> None:
    viewer = HTML | bearer(issued(service, "viewer"))
    for path in ("/nowhere", "/devices/a/b", "/v1", "/v1/nothing", "/assets/no.js",
                 "/assets/../index.html", "/assets/%2e%2e/index.html", "/index.html"):  # fmt: skip
        assert is_problem(service.ask("GET", path, headers=viewer), 404, "PATH_NOT_FOUND"), path
    assert is_problem(service.ask("POST", "/devices", headers=viewer), 405, "METHOD_NOT_ALLOWED")


def test_nobody_is_sent_to_the_host_that_a_request_names(service: Service) -> None:
    viewer = bearer(issued(service, "viewer"))
    for path in ("/v1/lanes/", "/devices/", "/v1/tasks/"):
        elsewhere = service.ask("GET", path, headers=viewer | {"host": "elsewhere.example"})
        assert is_problem(elsewhere, 404, "PATH_NOT_FOUND"), path


def test_no_page_has_code_or_style_in_it_nor_names_another_host(service: Service) -> None:
    page = service.ask("GET", "/", headers=HTML).text
    assert files_of(page)
    for file in files_of(page):
        assert file.startswith("/assets/"), file
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", page)
    for name, asset in pages.assets().items():
        found = set(re.findall(rb"https?://[a-z0-9.-]+", asset.content))
        # Names of vocabularies, which nothing is loaded from.
        assert found <= {b"http://www.w3.org"}, name


def test_files_have_hashed_names_and_stay_for_ever(service: Service) -> None:
    for file in files_of(service.ask("GET", "/", headers=HTML).text):
        answer = service.ask("GET", file, headers={"accept-encoding": "gzip", "Authorization": ""})
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert re.search(r"-[\w-]{8}\.(js|css|svg)$", file)
        name = file.rpartition("/")[2]
        assert answer.content == pages.assets()[name].content
        kind = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        assert answer.headers["content-type"].startswith(kind[name.rpartition(".")[2]])
        head = service.ask("HEAD", file)
        assert (head.status_code, head.content) == (200, b"")


def test_gzip_is_for_who_takes_it(service: Service) -> None:
    (script,) = (file for file in pages.assets() if file.endswith(".js"))
    for taken, is_zipped in (("gzip", True), ("br, gzip;q=0.5", True), ("*", True),
                             ("identity", False), ("gzip;q=0", False), ("gzip;q=0.0, br", False),
                             ("", False)):  # fmt: skip
        answer = service.ask("GET", f"/assets/{script}", headers={"accept-encoding": taken})
        assert (answer.headers.get("content-encoding") == "gzip") == is_zipped, taken
        assert answer.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(pages.assets()[script].zipped) == pages.assets()[script].content


def test_where_the_service_is_mounted_its_page_names_its_files(service: Service) -> None:
    service.mount("/fair")
    page = service.ask("GET", "/fair/devices", headers=HTML).text
    assert 'name="fairlane-root" content="/fair"' in page
    for file in files_of(page):
        assert file.startswith("/fair/assets/")
        assert service.ask("GET", file).status_code == 200


def test_a_link_with_a_token_from_elsewhere_is_the_page_that_asks_who_one_is(
    service: Service,
) -> None:
    token = issued(service, "operator")
    link = HTML | {"sec-fetch-site": "cross-site", "Authorization": ""}
    answer = service.ask("GET", f"/?token={token}", headers=link, follow_redirects=False)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert token not in answer.text
