"""Every built page as a reader meets it: from a file, offline, on a desktop and on a phone."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import WIDTHS
from reader import EXCUSES, built_pages, dead_links, parsed, remote_parts, repeated_ids

from posenc.lab import terms

MOST_BYTES = 15_000_000
ROOT = Path(__file__).parents[2]
GLOSSARY = terms.entries((ROOT / "book/appendix/glossary.md").read_text(encoding="utf-8"))


def file_of(html, page):
    return html / f"{page}.html"


def test_page_asks_nothing_of_the_network(html, read, page):
    assert read(file_of(html, page))["network"] == []
    assert remote_parts(file_of(html, page)) == []


def test_page_runs_without_an_error_or_a_missing_file(html, read, page):
    seen = read(file_of(html, page))
    assert seen["errors"] == []
    assert seen["files"] == []


def test_page_shows_every_formula(html, read, page):
    assert read(file_of(html, page))["formulas"] == []


def test_page_shows_and_says_no_raw_tex(html, read, page):
    assert read(file_of(html, page))["raw TeX"] == []


def test_page_does_not_scroll_sideways(html, read, page):
    assert read(file_of(html, page))["sideways"] == []


def test_page_describes_its_pictures(html, read, page):
    assert read(file_of(html, page))["pictures"] == []


def test_page_has_no_axe_violation_of_ours(html, read, page):
    assert read(file_of(html, page))["accessibility"] == []


def test_page_has_sliders_that_move(html, read, page):
    assert read(file_of(html, page))["sliders"] == []


def test_page_is_used_by_key_alone(html, read, page):
    """Tab reaches every control, each shows that it has the focus, none holds it, folds open."""
    assert read(file_of(html, page))["keyboard"] == []


def test_page_stands_still_for_who_asks_for_less_motion(html, read, page):
    assert read(file_of(html, page))["motion"] == []


def test_page_loses_nothing_on_paper(html, read, page):
    """No buttons, nothing folded, cut or dark, on a sheet of A4, from a page in dark colours."""
    assert read(file_of(html, page))["print"] == []


def test_page_bears_zoom_and_wider_spacing(html, read, page):
    seen = read(file_of(html, page))
    assert seen["zoom"] == []
    assert seen["spacing"] == []


def test_page_has_links_that_lead_somewhere(html, page):
    assert dead_links(file_of(html, page), html) == []


def test_page_uses_no_id_twice(html, page):
    assert repeated_ids(file_of(html, page)) == []


# The book as a whole.


def test_no_built_file_fetches_a_part_from_elsewhere(html):
    """Catch it in the listings of code as well, which are not opened one by one."""
    assert {file: found for file in html.rglob("*.html") if (found := remote_parts(file))} == {}


def test_index_leads_to_the_first_page(html, browser):
    tab = browser.new_page()
    tab.goto((html / "index.html").as_uri())
    tab.wait_for_url("**/book/index.html")
    assert tab.locator("article h1").count() == 1
    tab.close()


def test_the_checks_had_something_to_look_at(html):
    """Catch a build that lost its formulas, pictures or sliders: nothing else would miss them."""
    found = [parsed(file_of(html, page)) for page in built_pages()]
    for what in (".math", "article img", "input[type=range]"):
        assert any(soup.select(what) for soup in found), f"no page of the book has {what}"


def test_search_finds_a_section_from_a_file(html, browser):
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto((html / "book" / "index.html").as_uri())
    tab.keyboard.press("Control+k")
    tab.keyboard.type("wavelength")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#search-results li a")
    found = tab.locator("#search-results li a").all_inner_texts()
    assert any("wavelength" in title.lower() for title in found), found
    tab.close()


def test_search_finds_the_page_by_its_title(html, searching, page):
    """Catches a page that the search does not know, and an index that a file cannot read."""
    title = parsed(file_of(html, page)).select_one("article h1")
    if page == "search":
        pytest.skip("the search is no page to be found")
    for extra in title.select(".headerlink, .section-number"):
        extra.extract()
    found = searching(title.text.strip())
    assert f"{page}.html" in found, found


@pytest.fixture(scope="module")
def searching(html, browser):
    """Return a function that asks the search, as from a file, and lists the pages it finds."""
    tab = browser.new_page()

    def ask(words):
        tab.goto(f"{(html / 'search.html').as_uri()}?q={quote(words)}")
        tab.wait_for_selector("#search-results .search-summary:not(:empty)")
        tab.wait_for_function("!document.querySelector('#search-progress')?.textContent")
        links = tab.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
        return [link.removeprefix(html.as_uri() + "/").partition("?")[0] for link in links]

    yield ask
    tab.close()


def test_header_works_by_key(html, browser, device):
    """Catches a switch of colours, a sidebar or a search that only a mouse can use."""
    tab = browser.new_page(viewport={"width": WIDTHS[device], "height": 800})
    tab.goto((html / "book" / "index.html").as_uri())

    def press(selector, key="Enter"):
        tab.locator(selector).locator("visible=true").first.focus()
        tab.keyboard.press(key)

    before = tab.evaluate("document.documentElement.dataset.mode")
    press(".theme-switch-button")
    assert tab.evaluate("document.documentElement.dataset.mode") != before
    sidebar = tab.locator(".bd-sidebar-primary .bd-links").first
    was = sidebar.is_visible()
    press(".primary-toggle")
    tab.wait_for_function(
        "was => document.querySelector('.bd-sidebar-primary .bd-links').checkVisibility() !== was"
        " || document.querySelector('.bd-sidebar-primary').getBoundingClientRect().right <= 1",
        arg=was,
    )
    if device == "phone":
        tab.keyboard.press("Escape")
    else:
        press(".primary-toggle")
    press(".search-button, .search-button-field")
    tab.wait_for_selector("dialog[open] input[type=search], .search-button__wrapper.show input")
    tab.keyboard.type("octave")
    tab.keyboard.press("Escape")
    tab.wait_for_function("!document.querySelector('dialog[open]')")
    tab.close()


def test_no_launch_button_without_an_address(html):
    """Catches a button that would open somebody else's repository."""
    for page in built_pages():
        links = [link["href"] for link in parsed(file_of(html, page)).select("a[href]")]
        assert not [link for link in links if "mybinder.org" in link or "colab." in link]


def test_book_is_small(html):
    """Catches a book that grew past what one wants to send or carry."""
    sizes = {file: file.stat().st_size for file in html.rglob("*") if file.is_file()}
    largest = sorted(sizes, key=sizes.get)[-5:]
    assert sum(sizes.values()) < MOST_BYTES, largest


def test_every_icon_is_drawn(html, browser, device):
    """Catches an icon that was cut out of the theme's script although a page shows it."""
    tab = browser.new_page(viewport={"width": WIDTHS[device], "height": 800})
    for page in ("book/index", "book/2-waves/shift", "search"):
        tab.goto((html / f"{page}.html").as_uri())
        tab.wait_for_selector("svg.svg-inline--fa", state="attached")
        bare = tab.locator("i[class*='fa-'], span[class*='fa-']").evaluate_all(
            "all => all.map(e => e.className)"
        )
        shapes = tab.locator("svg.svg-inline--fa path").evaluate_all(
            "all => all.map(e => e.getAttribute('d')?.length ?? 0)"
        )
        lost = tab.locator("svg.svg-inline--fa:not([data-icon]), svg.fa-missing, svg g.missing")
        assert shapes
        assert min(shapes) > 10
        assert (bare, lost.count()) == ([], 0)
    tab.close()


def test_a_notebook_is_downloaded_as_it_is_before_a_run(html):
    """Catches a download that has lost a cell, or has brought its pictures."""
    files = sorted((html / "_sources").rglob("*.ipynb"))
    assert len(files) > 15
    for file in files:
        source = ROOT / file.relative_to(html / "_sources")
        cells, stored = (json.loads(f.read_text("utf-8"))["cells"] for f in (file, source))
        assert [c["source"] for c in cells] == [c["source"] for c in stored]
        assert not any(cell.get("outputs") for cell in cells)


def test_every_term_in_bold_is_in_the_index(html, page):
    """Catches a chapter whose definitions the index does not lead to."""
    if not page.startswith(tuple(f"book/{part}-" for part in range(1, 8))):
        pytest.skip("no chapter")
    index = html / "book/appendix/general-index.html"
    links = {link["href"] for link in parsed(index).select(".index-entries a")}
    bold = [
        b
        for b in parsed(file_of(html, page)).select("article strong")
        if not b.find_parent("table", class_="summary")
    ]
    defined = {terms.defined(b.text, GLOSSARY): b for b in reversed(bold)}
    missing = [
        term
        for term, element in defined.items()
        if term and f"../{page.removeprefix('book/')}.html#{element.get('id')}" not in links
    ]
    assert missing == []


def test_no_excuse_is_stale(html, read):
    """Catch an excuse that outlived the fault it was made for."""
    used = set().union(*(read(file_of(html, page)).excuses_used for page in built_pages()))
    assert [why for n, (_, _, why) in enumerate(EXCUSES) if n not in used] == []
