"""/ and its pages: the dashboard, as it was built into the package.

The rule: what is here is the same for everybody and holds no data, so its scripts and styles are
given to whoever asks; a page is answered with the status that its caller's credentials have, and
what it shows it asks of the public API. Only the paths of pages that are known answer the page.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from importlib.resources import files
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

#: The pages of `web/src/app.tsx`; the last part is a MAC address or a task's id.
_PAGE: Final = re.compile(
    r"/|/(overview|devices|tasks|dead-letters|workers|settings)|/(devices|tasks)/[A-Za-z0-9._:-]{1,128}"
)
ASSETS: Final = "/assets/"
#: Their names have the hash of what is in them, so they never change.
_FOREVER: Final = "public, max-age=31536000, immutable"
_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: Less is not worth a header.
_WORTH_ZIPPING: Final = 1_024


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the bundle, and the same zipped if that is shorter."""

    media_type: str
    content: bytes
    zipped: bytes


@cache
def assets() -> Mapping[str, Asset]:
    """Return the files of the bundle by their names."""
    folder = files("fairlane.http").joinpath("static", "assets")
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {
        name: Asset(_TYPES[name.rpartition(".")[2]], content, _zipped(content))
        for name, content in found.items()
    }


@lru_cache(maxsize=16)
def _page(root: str) -> bytes:
    """Return the page for where the service is mounted; relative paths would not hold below `/`."""
    source = files("fairlane.http").joinpath("static", "index.html").read_text(encoding="utf-8")
    told = escape(root)
    named = 'name="fairlane-root" content="'
    source = source.replace('"./assets/', f'"{told}{ASSETS}')
    return source.replace(f'{named}"', f'{named}{told}"').encode()


def is_page(method: str, path: str) -> bool:
    """Whether a request is for a page."""
    return method in ("GET", "HEAD") and _PAGE.fullmatch(path) is not None


def is_asset(method: str, path: str) -> bool:
    """Whether a request is for a file of the bundle, which is the same for everybody."""
    return (
        method in ("GET", "HEAD")
        and path.startswith(ASSETS)
        and path.removeprefix(ASSETS) in assets()
    )


def page(scope: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the page."""
    root: str = scope.get("root_path", "").rstrip("/")
    content = _page(root) if len(root) <= 200 else b""
    return Response(content, status, dict(headers or {}), "text/html; charset=utf-8")


def wants_page(scope: Any, path: str) -> bool:
    """Whether a browser asks for a page, and no program that would read a problem."""
    return is_page(scope["method"], path) and "text/html" in Headers(scope=scope).get("accept", "")


async def _answer_page(request: Request) -> Response:
    return page(request.scope)


async def _answer_asset(request: Request) -> Response:
    asset = assets().get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
    coding = request.headers.get("accept-encoding", "")
    content = asset.content
    if asset.zipped and _takes_gzip(coding):
        content = asset.zipped
        headers["Content-Encoding"] = "gzip"
    return Response(content, 200, headers, asset.media_type)


#: They are no part of the public API, so they stand in no description of it.
ROUTES: Final = (
    Route("/", _answer_page, methods=["GET"]),
    *(
        Route(path, _answer_page, methods=["GET"])
        for path in ("/overview", "/devices", "/tasks", "/dead-letters", "/workers", "/settings")
    ),
    Route("/devices/{mac}", _answer_page, methods=["GET"]),
    Route("/tasks/{task_id}", _answer_page, methods=["GET"]),
    Route("/assets/{name}", _answer_asset, methods=["GET"]),
)


def _zipped(content: bytes) -> bytes:
    if len(content) < _WORTH_ZIPPING:
        return b""
    return gzip.compress(content, 9, mtime=0)


def _takes_gzip(accept_encoding: str) -> bool:
    """Whether a browser takes gzip; `gzip;q=0` says that it does not."""
    for part in accept_encoding.lower().split(","):
        name, _, weight = part.replace(" ", "").partition(";q=")
        if name in ("gzip", "*"):
            return not weight or weight.strip("0.") != ""
    return False
