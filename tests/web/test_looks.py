"""How the dashboard looks and reads: no serious finding of axe, nothing cut off on a narrow screen.

The screenshots that these tests take of both themes and languages are left in .fairlane/screens.
"""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from fairlane import Client, verbs
from fairlane.files import FileStore
from support import sown
from support.browser import SCREENS, Visitor
from support.store import mac

pytestmark = [
    pytest.mark.parametrize("server", ["valkey9"], indirect=True),
    pytest.mark.timeout(300),
]
FOUND = {
    "type": "PHONE", "value": "138-****-**78", "line": 0, "rule": "phone.cn",
    "box": [[40, 40], [360, 40], [360, 90], [40, 90]],
}  # fmt: skip


def sow(store: Client) -> list[str]:
    """Fill every page; return their paths."""
    sown.worker(store)
    sown.worker(store, "busy:7:nonce", slots=0, reason="CPU 91 %, over 75 %", name="ocr@busy")
    sown.dead(store, 12, ["ValueError: no page", "worker_lost", "TimeoutError"])
    seen = sown.done(store, 3, {"file": photograph(store)}, {"findings": [FOUND]})
    sown.waiting(store, 40, tasks=3)
    store.run(verbs.Configure(mac(5), paused=True))
    store.run(verbs.Configure(mac(6), max_running=2))
    sown.running(store, 4)
    one = f"/devices/{mac(5)}"
    return [
        "/",
        "/devices",
        one,
        "/tasks",
        f"/tasks/{seen}",
        "/dead-letters",
        "/workers",
        "/settings",
    ]


def photograph(store: Client) -> str:
    """Store an image with a number to find; return its name."""
    image = Image.new("RGB", (420, 140), "white")
    ImageDraw.Draw(image).text((40, 44), "138-1234-5678", fill="black", font_size=40)
    content = io.BytesIO()
    image.save(content, "PNG")
    name = FileStore.of(store.settings).put(content.getvalue())
    store.run(verbs.KeepFile(name))
    return name


def shown(page: Page, path: str) -> None:
    """Go to a page, and wait until all of it is there."""
    page.goto(path)
    page.get_by_role("heading", level=1).wait_for()
    expect(page.locator("main .skeleton")).to_have_count(0)


def keep(page: Page, path: str, how: str) -> None:
    """Keep a screenshot."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    parts = path.strip("/").split("/")
    name = (parts[0] or "overview") + ("-one" if len(parts) > 1 else "")
    page.screenshot(path=SCREENS / f"{name}-{how}.png", full_page=True)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_axe_finds_nothing_serious_on_any_page(
    visitor: Visitor, store: Client, axe: str, theme: str, language: str
) -> None:
    paths = sow(store)
    page = visitor.opens("/", theme=theme, language=language)
    for path in paths:
        shown(page, path)
        keep(page, path, f"{theme}-{language[:2]}")
        assert serious(page, axe) == [], path
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    assert serious(page, axe) == []
    stranger = visitor.opens("/", role="", theme=theme, language=language)
    assert serious(stranger, axe) == []


def serious(page: Page, axe: str) -> list[str]:
    """Return what axe finds that is serious or critical, each with its places."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {[node['target'] for node in one['nodes']][:4]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def test_everything_can_be_reached_at_400_pixels(visitor: Visitor, store: Client) -> None:
    paths = sow(store)
    page = visitor.opens("/", width=400, height=800)
    for path in paths:
        shown(page, path)
        keep(page, path, "narrow")
        wide = page.evaluate("document.scrollingElement.scrollWidth")
        assert wide <= 400, f"{path} is {wide} px wide"
        cut = page.evaluate(
            """[...document.querySelectorAll('main button, main input, main a')].filter(one => {
              const box = one.getBoundingClientRect();
              return box.width && box.right > innerWidth + 1 && !one.closest('.scroll, .feed');
            }).map(one => one.outerHTML.slice(0, 120))"""
        )
        assert cut == [], path


def test_the_tables_of_lanes_fit_into_400_pixels(visitor: Visitor, store: Client) -> None:
    """What matters of a lane is seen without pushing its table aside."""
    paths = sow(store)
    page = visitor.opens("/", width=400, height=800)
    for path, label in (("/", "Lanes"), (paths[2], "Per lane")):
        shown(page, path)
        table = page.locator(f".scroll[aria-label='{label}']")
        expect(table.locator("tbody tr").first).to_be_visible()
        too_wide = table.evaluate("one => one.scrollWidth - one.clientWidth")
        assert too_wide <= 0, f"{label} of {path}: {too_wide} px"


def test_findings_are_drawn_where_they_are_in_the_image(visitor: Visitor, store: Client) -> None:
    paths = sow(store)
    page = visitor.opens(paths[4], role="viewer")
    box = page.locator(".drawn polygon").bounding_box()
    image = page.locator(".drawn img").bounding_box()
    assert box is not None
    assert image is not None
    scale = image["width"] / 420
    assert box["x"] - image["x"] == pytest.approx(40 * scale, abs=6)
    assert box["y"] - image["y"] == pytest.approx(40 * scale, abs=6)
    assert box["width"] == pytest.approx(320 * scale, abs=8)
    expect(page.get_by_text("138-****-**78").first).to_be_visible()
    FileStore.of(store.settings).delete(photograph(store))
    gone = visitor.opens(paths[4], role="viewer")
    expect(gone.get_by_text("The image is not there any more")).to_be_visible()
    expect(gone.get_by_text("138-****-**78").first).to_be_visible()
