"""Every stored notebook and page passes every check of `checks`."""

from collections import Counter

import checks
import pytest
from reading import CHAPTERS, NOTEBOOKS, PAGES, figure


def each(pages):
    """Run a test on each of these pages."""
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.name)


@each(NOTEBOOKS)
@pytest.mark.parametrize("check", checks.OF_ALL, ids=lambda check: check.__name__)
def test_no_notebook_has(check, page):
    """Catches what the check's own sentence says."""
    assert not check(page), check.__doc__


@each(CHAPTERS)
@pytest.mark.parametrize("check", checks.OF_CHAPTERS, ids=lambda check: check.__name__)
def test_no_chapter_has(check, page):
    """Catches what the check's own sentence says."""
    assert not check(page), check.__doc__


@each(PAGES)
def test_no_page_has_words_that_the_style_forbids(page):
    """Catches a word that tells the reader how easy it ought to be, and shouting."""
    assert not checks.forbidden_words(page)


def test_figure_names_are_one_of_their_kind():
    """Catches two figures of one name: a reference would lead to either."""
    names = Counter(figure(cell)[2] for page in NOTEBOOKS for cell in page.code)
    assert not {name for name, count in names.items() if name and count > 1}


def test_no_allowance_outlives_its_cell():
    """Catches an allowance for an uncompared cell of a page that is not there."""
    assert set(checks.ALLOWED_IGNORED) <= {page.name for page in NOTEBOOKS}
