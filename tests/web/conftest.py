"""What the tests of the dashboard can ask for: a served store and somebody who opens pages."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from playwright.sync_api import Browser

from fairlane import Client, Settings
from support import browser as browsers
from support.browser import ROOT, Visitor
from support.issuer import SECRET
from support.service import served


@pytest.fixture(scope="session")
def web() -> ModuleType:
    """Give the tool that builds the dashboard."""
    spec = importlib.util.spec_from_file_location("web_tool", ROOT / "tools" / "web.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser, for the tests of one file."""
    with browsers.started() as browser:
        yield browser


@pytest.fixture
def http(store_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """Give what talks to `fairlane api`, which serves an empty store with a key for tokens."""
    with served(store_url, tmp_path, token_secret=SECRET, max_attempts=1) as http:
        yield http


@pytest.fixture
def store(store_url: str, tmp_path: Path, http: httpx.Client) -> Iterator[Client]:
    """Give a client of the same store."""
    settings = Settings(store_url=store_url, data_dir=tmp_path, token_secret=SECRET, max_attempts=1)
    with Client(settings) as store:
        yield store


@pytest.fixture
def visitor(browser: Browser, http: httpx.Client, store: Client) -> Iterator[Visitor]:
    """Give somebody who opens pages."""
    visitor = Visitor(browser, http, store)
    yield visitor
    visitor.leave()


@pytest.fixture(scope="session")
def axe() -> str:
    """Give axe-core's source, of the packages of web/; it is not shipped."""
    path = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        command = [sys.executable, "-c", "import web; web.install()"]
        done = subprocess.run(command, cwd=ROOT / "tools", check=False, capture_output=True)
        if done.returncode:
            told = f"axe-core is not to be had: {done.stderr.decode()[-300:]}"
            if "CI" in os.environ:
                pytest.fail(told)
            pytest.skip(told)
    return path.read_text(encoding="utf-8")
