"""A browser, and what it saw on each page of the built book; each page is read once."""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from reader import HTML, WIDTHS, Visit, built_pages, visit

NO_BOOK = "the book is not built: make book"
NO_BROWSER = (
    "no Chromium found: install one (Debian: apt-get install chromium; elsewhere: "
    "python -m playwright install chromium), or name it: CHROMIUM=/path/to/chromium make site"
)


def pytest_generate_tests(metafunc):
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", built_pages() or ["no page"])
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", WIDTHS)


def cannot(reason: str):
    """Skip; where the site must be read (CI), fail."""
    if os.environ.get("WAVES_REQUIRE_SITE", "0") not in ("", "0"):
        pytest.fail(f"WAVES_REQUIRE_SITE is set, but {reason}", pytrace=False)
    pytest.skip(reason)


def find_chromium(own: str) -> str | None:
    """Return the browser that the reader named, else an installed one, else Playwright's own."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named) or pytest.fail(f"CHROMIUM names no program: {named}", False)
    candidates = [
        "/usr/lib/chromium/chromium",  # Debian's /usr/bin/chromium is a wrapper around this
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        own,
    ]
    return next(filter(None, map(shutil.which, candidates)), None)


@pytest.fixture(scope="session")
def html() -> Path:
    """Return the folder of the built book."""
    if not built_pages():
        cannot(NO_BOOK)
    return HTML


@pytest.fixture(scope="session")
def browser(html):
    """One Chromium for the session, which can resolve no host name."""
    with sync_playwright() as playwright:
        program = find_chromium(playwright.chromium.executable_path)
        if program is None:
            cannot(NO_BROWSER)
        chromium = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"],
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def contexts(browser):
    """Open a desktop and a phone."""
    return {
        device: browser.new_context(
            viewport={"width": width, "height": 800}, reduced_motion="reduce"
        )
        for device, width in WIDTHS.items()
    }


@pytest.fixture(scope="session")
def read(contexts):
    """Read a page, by its file, on both devices; a page already read is not opened again."""

    @cache
    def read_once(file: Path) -> Visit:
        seen = Visit()
        for device, context in contexts.items():
            seen.add(device, visit(context, file, desktop=device == "desktop"))
        return seen

    return read_once
