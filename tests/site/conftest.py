"""A browser, and what it saw on each page of the built book; each page is read once."""

import os
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from printing import chromium
from reader import HTML, WIDTHS, Visit, built_pages, visit

NO_BOOK = "the book is not built: make book"


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


@pytest.fixture(scope="session", name="cannot")
def cannot_for_tests():
    """Hand `cannot` to the tests of the printed book."""
    return cannot


@pytest.fixture(scope="session")
def html() -> Path:
    """Return the folder of the built book."""
    if not built_pages():
        cannot(NO_BOOK)
    return HTML


@pytest.fixture(scope="session")
def browser():
    """One Chromium for the session, which can resolve no host name."""
    with sync_playwright() as playwright:
        program = chromium.find(playwright.chromium.executable_path)
        if program is None:
            cannot(chromium.MISSING)
        opened = playwright.chromium.launch(executable_path=program, args=chromium.ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def contexts(html, browser):
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
