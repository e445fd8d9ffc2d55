"""No number in a sentence stands on nothing, and no glued number is lost."""

import decimals
import nbformat
import pytest
from reading import NOTEBOOKS, PAGES, Page

v4 = nbformat.v4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_decimal_in_prose_is_glued_shown_or_cited(page):
    """Catches a number typed into a sentence, which no computation holds to anything."""
    assert not decimals.stray(page)


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.name)
def test_every_glued_number_is_asked_for_and_the_reverse(page):
    """Catches a sentence that asks for a number of no cell, and a number no sentence shows."""
    assert sorted(set(decimals.asked(page))) == sorted(decimals.offered(page))


def written(prose, source="x = 1", output="", tmp_path=None):
    """Return a page: a cell, what it printed, and prose below it."""
    cell = v4.new_code_cell(source)
    if output:
        cell.outputs.append(v4.new_output("stream", name="stdout", text=output))
    path = tmp_path / "page.ipynb"
    notebook = v4.new_notebook(cells=[cell, v4.new_markdown_cell(prose)])
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return Page(path)


@pytest.mark.parametrize(
    "prose",
    [
        "The share is 0.731.",
        "The share is .731.",
        "The share is $0.731$.",
        "The share is `0.731`.",
        "```{math}\n:label: eq-one\nx = 0.731.\n```",
        "```{note}\nThe share is 0.731.\n```",
        "```{note} The share is 0.731\nSee above.\n```",
        "The longest is 60,611.48 tokens.",
        "$$ x = 60\\,611.48 $$",
        "{cite:t}`vaswani` say so.\n\nThe share is 0.731.",
        "As {ref}`fig-share` shows, 0.731 is left, in Section 3.5 too.",
    ],
)
def test_a_planted_stray_decimal_is_found(prose, tmp_path):
    """Catches a rule with a hole: in formulas, code spans, notes, groups of thousands."""
    assert len(decimals.stray(written(prose, "x = 0.7", "0.7313\n0.73\n", tmp_path))) == 1


@pytest.mark.parametrize(
    ("prose", "source", "output"),
    [
        ("The share is {glue:text}`share` and {glue:text}`share:.2f`.", "x = 1", ""),
        ("The share is 0.731.", "x = 1", "share 0.731\n"),
        ("The share is −0.731, or .731.", "x = 1", "[[-0.731  1.]]\n"),
        ("The longest is 60,611.48 tokens.", "x = 1", "60611.48\n"),
        ("The factor is $0.731$.", "y = 0.731 * x", ""),
        ("The base is 10000.0, in words ten thousand.", "frequencies(8, 10_000.0)", ""),
        ("{cite:t}`vaswani` report 0.731 and 0.25.", "x = 1", ""),
        ("Call `frequencies(dim, base=10000.0)`.", "x = 1", ""),
        ("```python\nx = 0.731\n```", "x = 1", ""),
        ("Python 3.11, Llama 3.1, Section 3.5, CC BY 4.0, version 1.2.3, 2.13.0.", "x = 1", ""),
        ("See https://arxiv.org/abs/2104.09864 for pages 3. 4 and 5.", "x = 1", ""),
    ],
)
def test_a_number_that_stands_on_something_passes(prose, source, output, tmp_path):
    """Catches a rule that cries at a glued, printed, written, cited or unmeasured number."""
    assert not decimals.stray(written(prose, source, output, tmp_path))


def test_only_what_stands_above_counts(tmp_path):
    """Catches a rule that lets a sentence quote the output of a cell below it."""
    page = written("Later.", "x = 1", "0.731\n", tmp_path)
    page.cells.insert(0, v4.new_markdown_cell("The share is 0.731."))
    assert decimals.stray(page)


def test_a_caption_is_prose(tmp_path):
    """Catches a number typed into a caption or an alt text."""
    page = written("Nothing.", tmp_path=tmp_path)
    page.cells[0].metadata["mystnb"] = {"figure": {"caption": "The share is 0.731."}}
    assert decimals.stray(page)


def test_a_coordinate_of_a_picture_is_no_shown_number(tmp_path):
    """Catches a rule that takes the ink of a slider for its statement."""
    html = (
        '<div><svg><circle cx="0.731"/></svg><script>["at 0.25","<g d=\\"0.5\\"/>"]</script></div>'
    )
    page = written("It is 0.731, 0.5 and 0.25.", tmp_path=tmp_path)
    page.cells[0].outputs.append(v4.new_output("display_data", {"text/html": html}))
    assert [fault[:5] for fault in sorted(decimals.stray(page))] == ["0.5 i", "0.731"]


@pytest.mark.parametrize("prose", ["Nothing.", "{glue:text}`share` and {glue:text}`other`."])
def test_a_lost_key_is_found(prose, sound, page):
    """Catches a comparison of glued and asked keys that is blind."""
    assert set(decimals.asked(page(sound))) == set(decimals.offered(page(sound))) == {"share"}
    for cell in sound.cells[:3]:
        cell.source = prose
    assert set(decimals.asked(page(sound))) != set(decimals.offered(page(sound)))
