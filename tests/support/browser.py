"""Pages of the dashboard in a real Chromium, opened as somebody with a token.

The rule: whatever a test does, a page that throws, that its policy stops, or that opens a dialog of
a script's making fails the test.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from fairlane import Client
from fairlane.grant import Grant
from support.issuer import issue

ROOT: Final = Path(__file__).parents[2]
#: Where the screenshots of the tests go.
SCREENS: Final = ROOT / ".fairlane" / "screens"
#: The names of Chromium's program, the one of Debian first.
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: A slow machine has this long; nothing waits longer than it must.
PATIENCE_MS: Final = 30_000


def chromium() -> str:
    """Return Chromium's path; skips the test where there is none, and fails it in CI."""
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    told = "no Chromium on the PATH; `tools/need.sh chromium chromium chromium` installs it"
    if "CI" in os.environ:
        pytest.fail(told)
    pytest.skip(told)


@contextmanager
def started() -> Iterator[Browser]:
    """Give a browser. While it is there, no other event loop can run in this thread."""
    path = chromium()
    with sync_playwright() as playwright:
        # The sandbox asks for rights that containers do not have; it only meets our own pages.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@dataclass
class Visitor:
    """Somebody who opens pages of a service."""

    browser: Browser
    http: httpx.Client
    store: Client
    #: Another way to the service than straight on.
    base_url: str = ""
    #: What no page may say.
    faults: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    def opens(
        self,
        path: str = "/",
        *,
        role: Any = "operator",
        theme: Any = "light",
        language: str = "en-GB",
        width: int = 1360,
        height: int = 900,
    ) -> Page:
        """Return a page, opened with a token of a role; with none if the role is empty."""
        page = self.browser.new_page(
            base_url=self.base_url or str(self.http.base_url),
            viewport={"width": width, "height": height},
            color_scheme=theme,
            locale=language,
        )
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.faults.append(f"thrown: {error}"))
        page.on("console", self._hear)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        self.pages.append(page)
        if role:
            token = issue(self.store, Grant(role, name="ann"))
            page.goto(f"/?token={token}")
            page.get_by_role("heading", level=1).wait_for()
        if not role or path != "/":
            page.goto(path)
            page.get_by_role("heading", level=1).wait_for()
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.faults.append(message.text)

    def leave(self) -> None:
        """Close all pages. Raises AssertionError for what one should not have said."""
        for page in self.pages:
            page.context.close()
        assert self.faults == []
