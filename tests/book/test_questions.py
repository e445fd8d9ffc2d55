"""The page of questions: all of them, each once, each with an answer and the place of it."""

import re

import pytest
from reading import BOOK

ITEM = re.compile(r"^(\d+)\. \*(.+?)\*\s+(.+?)(?=^\d+\. |^## |\Z)", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"\{(?:ref|doc)\}`[^`]+`")
PLANNED = range(69, 73)  # they wait for the part on more than one line of tokens
TEXT = (BOOK / "appendix/questions.md").read_text(encoding="utf-8")


def items(text):
    """Return number, question and answer of each item, in the order of the page."""
    return [(int(number), asked, said.strip()) for number, asked, said in ITEM.findall(text)]


def faults(text):
    """List what is wrong with a page of questions; Sphinx finds the links that lead nowhere."""
    found = items(text)
    numbers = [number for number, _, _ in found]
    wrong = [] if numbers == list(range(1, 73)) else [f"the numbers are {numbers}"]
    for number, asked, said in found:
        planned = said.startswith("Planned: ")
        if planned != (number in PLANNED):
            wrong.append(f"{number}: planned or not?")
        if asked[-1] not in "?.":
            wrong.append(f"{number}: the question has no end")
        if not planned and not (PLACE.search(said) and len(PLACE.sub("", said).split()) > 4):
            wrong.append(f"{number}: no answer, or no place of it")
    return wrong


def test_every_question_has_an_answer_and_its_place():
    """Catches a question that was lost, asked twice, or sent nowhere."""
    assert faults(TEXT) == []


@pytest.mark.parametrize(
    "broken",
    [
        TEXT.replace("\n7. ", "\n8. "),
        TEXT.replace("See {ref}`why-mask`.", ""),
        TEXT.replace("Planned: grids.", "Soon.", 1),
        re.sub(r"(1\. \*.+?\*\s+).+?(See \{ref\})", r"\1\2", TEXT, count=1, flags=re.DOTALL),
    ],
)
def test_a_gap_in_the_page_of_questions_is_found(broken):
    """Catches rules that pass whatever the page says."""
    assert broken != TEXT
    assert faults(broken)
