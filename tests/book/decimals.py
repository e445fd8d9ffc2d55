"""The rule for numbers in prose: each decimal is glued, shown or written above it, or cited."""

import re

from reading import figure, glued, lines, shown

DECIMAL = re.compile(r"(?<![\w.])(?:\d+)?\.\d+(?![\d]|\.\d)")
NUMBERS = re.compile(r"(?:\d+)?\.\d+|\d+\.")
THOUSANDS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,|\\;|\s|_)(?=\d{3}(?!\d))")
CITED = re.compile(r"\{cite(?::\w+)?\}`")
# What is no measured number: a version, a name, a section of a text, an address.
NAMES = re.compile(
    r"(?:Python|NumPy|torch|PyTorch|matplotlib|Jupyter Book|Llama|BY|[Vv]ersion|[Ss]ections?|"
    r"[Tt]able|[Ff]igure|[Ee]quation|§|arXiv:)[\s~]*\d+\.\d[\d.]*|https?://\S+|\bv\d+\.\d[\d.]*"
)
ROLE = re.compile(r"\{[\w:]+\}`[^`]*`")
CODE = re.compile(
    r"(`+)(?=[^`]*[A-Za-z_=(])[^`]+\1"
)  # code with a name in it; a bare number counts
TAG = re.compile(r"<style.*?</style>|<[A-Za-z/\\][^>]*>", re.DOTALL)  # coordinates say nothing
GLUE = re.compile(r"\{glue:?(?:\w+)?\}`([^`]+)`|\{glue:(?:\w+)?\}\s+(\S+)")


def stray(page):
    """Return each decimal of a page's prose that stands on nothing, with its paragraph's start."""
    known, faults = set(), []
    for cell in page.cells:
        if cell.cell_type == "markdown":
            texts = paragraphs(cell.source)
        elif cell.cell_type == "code":
            known |= numbers(TAG.sub(" ", shown(cell))) | numbers(cell.source)
            texts = [figure(cell)[1], figure(cell)[0]]
        else:
            texts = []
        for text in texts:
            if not CITED.search(text):
                faults += [f"{number} in: {text[:60]}" for number in decimals(text) - known]
    return faults


def paragraphs(text):
    """Return the paragraphs, those of formulas too, without blocks of code.

    A formula set off belongs to the sentence around it: its fences are no ends of paragraphs.
    """
    kept, before = [], "prose"
    for kind, line in lines(text):
        kept.append("" if kind == "code" else line)
        if kind == "math" and before == "prose" and kept[-2:-1] == [""]:
            del kept[-2]
        before = kind
    return [part for part in re.split(r"\n\s*\n", "\n".join(kept)) if part.strip()]


def decimals(text):
    """Return the decimals of a paragraph, as `plain` writes them."""
    for pattern in (ROLE, CODE, NAMES):
        text = pattern.sub(" ", text)
    return {plain(hit) for hit in DECIMAL.findall(THOUSANDS.sub("", text))}


def numbers(text):
    """Return every number with a point that an output or a cell's source shows."""
    return {plain(hit) for hit in NUMBERS.findall(THOUSANDS.sub("", text))}


def plain(number):
    """Return a number as it is compared: with the zero that some leave out before the point."""
    return "0" + number if number.startswith(".") else number


def asked(page):
    """Return the keys that a page's prose asks for."""
    return [plain_key(hit[1] or hit[2]) for hit in GLUE.finditer(page.prose)]


def plain_key(key):
    """Return the key without the format that may follow it."""
    return key.partition(":")[0] if "::" not in key else key


def offered(page):
    """Return the keys that a page's cells glue."""
    return [key for cell in page.code for key in glued(cell)]
