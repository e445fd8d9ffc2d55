"""Every built page as a reader meets it: from a file, offline, on a desktop and on a phone."""

from reader import EXCUSES, built_pages, dead_links, parsed, remote_parts, repeated_ids


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


def test_no_excuse_is_stale(html, read):
    """Catch an excuse that outlived the fault it was made for."""
    used = set().union(*(read(file_of(html, page)).excuses_used for page in built_pages()))
    assert [why for n, (_, _, why) in enumerate(EXCUSES) if n not in used] == []
