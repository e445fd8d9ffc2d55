"""Print the one-page book with a browser.

A browser knows no page numbers before it has printed. So the book is printed, the pages of all
places that it links to are read off, written into the contents and the index, and it is printed
again, until the printed numbers are true.
"""

import io
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter

from . import chromium

ON_THE_PAGE = Path(__file__).with_name("press.js")
PRINTS = 4  # a number that gains a digit may move a line; after that, nothing moves


class Unfit(Exception):  # noqa: N818
    """The page cannot be printed as a book."""


def bind(browser, source, target):
    """Print the book; raise Unfit if something is missing on a page or the numbers never settle."""
    page = browser.new_page(viewport={"width": 700, "height": 1000}, color_scheme="light")
    page.set_default_timeout(240_000)
    try:
        laid_out(page, source)
        pdf = settled(page)
        said = [
            page.locator(f"meta[name={what}]").get_attribute("content")
            for what in ("author", "description")
        ]
    finally:
        page.close()
    finish(pdf, target, *said)


def laid_out(page, source):
    """Open the book, let its formulas be drawn, and see that everything is there and fits."""
    page.emulate_media(media="print", color_scheme="light")
    page.goto(source.resolve().as_uri())
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.evaluate("MathJax.startup.promise.then(() => null)")
    page.add_script_tag(path=ON_THE_PAGE)
    page.evaluate("press.say()")
    page.evaluate("press.fit()")
    page.evaluate("press.hold()")
    faults = page.evaluate("[...press.missing(), ...press.sideways()]")
    if faults:
        raise Unfit("\n".join(faults))


def settled(page):
    """Return the PDF's bytes, printed until the page numbers written into it are true."""
    known = None
    for _ in range(PRINTS):
        pdf, places = printed(page)
        if places == known:
            return pdf
        known = places
        page.evaluate("pages => press.number(pages)", places)
    raise Unfit(f"page numbers still move after {PRINTS} prints")


def printed(page):
    """Return the PDF's bytes, and the page of each place that the book links to."""
    pdf = page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    reader = PdfReader(io.BytesIO(pdf))
    return pdf, {
        name.lstrip("/"): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def finish(pdf, target, author, subject):
    """Store the file with what a browser leaves out: who wrote it, and that the outline opens."""
    writer = PdfWriter(io.BytesIO(pdf), incremental=True)  # what is there stays, byte for byte
    writer.add_metadata({"/Author": author, "/Subject": subject})
    writer.page_mode = "/UseOutlines"
    writer.create_viewer_preferences().display_doctitle = True
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.write(target)


def main(source, target):
    """Print the book with the Chromium that is found."""
    with sync_playwright() as playwright:
        try:
            program = chromium.find(playwright.chromium.executable_path)
        except LookupError as fault:
            sys.exit(f"The book is not printed: {fault}")
        if program is None:
            sys.exit(chromium.MISSING)
        browser = playwright.chromium.launch(executable_path=program, args=chromium.ARGUMENTS)
        try:
            bind(browser, source, target)
        except Unfit as fault:
            sys.exit(f"The book is not printed: {fault}")
        browser.close()
    pages = len(PdfReader(target).pages)
    print(f"{target}: {pages} pages, {target.stat().st_size / 1e6:.1f} MB")
