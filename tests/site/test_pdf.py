"""The printed book, page by page; `leaves` says what is looked at."""

import pytest
from leaves import CHECKS, SOURCE, TARGET, Leaves, other_numbers
from printing.press import bind

NO_PAGE = "the book is not ready to be printed: make one-page"
MEGABYTES = 25


@pytest.fixture(scope="session")
def leaves(browser, cannot):
    """Print the book, unless it has been printed since it was built."""
    if not SOURCE.is_file():
        cannot(NO_PAGE)
    if not TARGET.is_file() or TARGET.stat().st_mtime < SOURCE.stat().st_mtime:
        bind(browser, SOURCE, TARGET)
    return Leaves(SOURCE, TARGET)


@pytest.mark.parametrize("check", CHECKS)
def test_printed_book_has_no_fault(leaves, check):
    assert CHECKS[check](leaves) == []


def test_printed_book_bears_the_numbers_of_the_html_book(leaves, html):
    assert other_numbers(leaves, html) == []


def test_printed_book_is_small_enough_to_send(leaves):
    assert TARGET.stat().st_size < MEGABYTES * 1e6


def test_the_checks_had_something_to_look_at(leaves):
    """Catch a print that lost its figures, formulas or solutions: nothing else would miss them."""
    for what in ("figure img", ".strip svg", ".eqno", ".solution", ".answer", ".printed-index .at"):
        assert leaves.soup.select(what), f"the printed book has no {what}"
    assert len(leaves.texts) > 100
