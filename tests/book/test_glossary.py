"""The glossary holds what the book speaks of, and nothing else."""

import re

import pytest
from reading import GLOSSARY, PAGES

from posenc.lab import terms

WORDS = terms.key(" ".join(page.prose for page in PAGES if page.name != "appendix/glossary"))


@pytest.mark.parametrize("term", [part for head in GLOSSARY for part in head.split(", ")])
def test_a_term_is_used_on_some_page(term):
    """Catches a word that is explained and never said."""
    forms = [term, *(said for said, meant in terms.SAID_AS.items() if meant == term)]
    said = "|".join(re.escape(terms.key(form)) for form in forms)
    assert re.search(rf"(?<!\w)(?:{said})(?:e?s)?(?!\w)", WORDS)


def test_terms_stand_in_order_and_once():
    """Catches a term explained twice, or where nobody looks for it."""
    keys = [terms.key(head) for head in GLOSSARY]
    assert len(set(keys)) == len(keys) > 100


def test_every_other_form_leads_to_a_term():
    """Catches a form kept for a term that the glossary has lost."""
    assert not [said for said in terms.SAID_AS if terms.defined(said, GLOSSARY) is None]


def test_a_glossary_is_read_whole():
    """Catches a reading that takes an option, a definition or a fence for a term."""
    block = ":sorted:\n\nkey, value\n  A pair.\n\n  More.\n\n$R^2$\n  A share.\n"
    page = f"# G\n\nNo term.\n\n```{{glossary}}\n{block}```\n\nNo term either.\n"
    assert terms.entries(page) == ["key, value", "$R^2$"]


@pytest.mark.parametrize(
    ("bold", "term"),
    [
        ("shift\nmatrix", "shift matrix"),
        ("Shift matrices", None),
        ("sliding-window", "sliding window"),
        ("Frequencies", "frequency"),
        ("value", "value"),
        ("clipped", "clipping"),
        ("shift", None),
    ],
)
def test_words_in_bold_find_their_term(bold, term):
    """Catches a comparison that stumbles over case, plural or a hyphen, or finds too much."""
    heads = ["shift matrix", "sliding window", "frequency", "query, key, value", "clipping"]
    assert terms.defined(bold, heads) == term
