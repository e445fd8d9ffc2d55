"""Each check finds the fault that it is for, planted in a sound notebook."""

import checks
import nbformat
import pytest


def output(cell, text, kind="text/plain"):
    """Let a cell show something more."""
    cell.outputs.append(nbformat.v4.new_output("display_data", {kind: text}))


def stream(cell, text, name="stdout"):
    """Let a cell print something more."""
    cell.outputs.append(nbformat.v4.new_output("stream", name=name, text=text))


def error(cell):
    """Let a cell have failed."""
    cell.outputs.append(nbformat.v4.new_output("error", ename="E", evalue="e", traceback=[]))


def rename(cell, **about):
    """Change what a figure's metadata say."""
    cell.metadata.mystnb.figure.update({k: v for k, v in about.items() if k != "alt"})
    if "alt" in about:
        cell.metadata.mystnb.image.alt = about["alt"]


def source(cell, text):
    """Change a cell's source."""
    cell.source = text


def swap(cell, old, new):
    """Change what must be there."""
    assert old in cell.source
    cell.source = cell.source.replace(old, new)


SLIDER = '<div class="posenc-slider" id="slider-one"></div>'
HEAVY = SLIDER.replace("></div>", ">" + "x" * 60_000 + "</div>")
HEADS = f"| {' | '.join(checks.summary.COLUMNS)} |\n| --- | --- | --- | --- | --- | --- |\n"
ROW = "| one $M_k$ | a | b | c | d | e |\n"
# Cells: prose 0 to 2 (an exercise each), imports 3, a print and a glued number 4, a figure 5, the
# close 6.
PLANTED = [
    (checks.not_run_in_order, lambda c: c[4].update(execution_count=None)),
    (checks.not_run_in_order, lambda c: c[4].update(execution_count=7)),
    (checks.semicolons, lambda c: source(c[4], "plt.plot(x);")),
    (checks.stored_errors, lambda c: stream(c[4], "warned", "stderr")),
    (checks.stored_errors, lambda c: error(c[4])),
    (checks.long_cells, lambda c: source(c[4], "\n".join(["x = 1"] * 16))),
    (checks.long_cells, lambda c: source(c[4], "x = " + "1" * 85)),
    (checks.first_cell_not_imports, lambda c: source(c[3], "import numpy as np\nx = 1")),
    (checks.first_cell_not_imports, lambda c: source(c[3], 'device = "cuda"')),
    (checks.ignored_outputs, lambda c: c[4].metadata.update(tags=["nbval-ignore-output"])),
    (checks.ignored_outputs, lambda c: c[4].metadata.update(tags=["raises-exception"])),
    (checks.ignored_outputs, lambda c: source(c[4], "# NBVAL_IGNORE_OUTPUT\nprint(1)")),
    (checks.ignored_outputs, lambda c: source(c[4], "# NBVAL_SKIP\nprint(1)")),
    (checks.machine_words, lambda c: output(c[4], "<object at 0x7f12ab34cd56>")),
    (checks.machine_words, lambda c: output(c[4], "tensor([1.], device='cuda:0')")),
    (checks.machine_words, lambda c: output(c[4], "device(type='cpu')")),
    (checks.machine_words, lambda c: output(c[4], "np.float64(1.5)")),
    (checks.machine_words, lambda c: output(c[4], "np.True_")),
    (checks.machine_words, lambda c: stream(c[4], "[ 1. -0. 2.]")),
    (checks.machine_words, lambda c: stream(c[4], "err -0.000")),
    (checks.machine_words, lambda c: stream(c[4], "-0")),
    (checks.machine_words, lambda c: stream(c[4], "/home/me/book")),
    (checks.long_prints, lambda c: stream(c[4], "line\n" * 9)),
    (checks.mute_pictures, lambda c: c[5].metadata.pop("mystnb")),
    (checks.mute_pictures, lambda c: rename(c[5], alt="")),
    (checks.mute_pictures, lambda c: rename(c[5], alt="It rises.")),
    (checks.mute_pictures, lambda c: rename(c[5], caption="")),
    (checks.mute_pictures, lambda c: rename(c[5], name="")),
    (checks.mute_pictures, lambda c: rename(c[5], name="rise")),
    (checks.uncompared_pictures, lambda c: output(c[5], "iVBORw0KGgo=", "image/png")),
    (checks.uncompared_pictures, lambda c: source(c[5], "ax.plot(x, y)")),
    (checks.network_requests, lambda c: output(c[4], '<img src="https://a.b/c">', "text/html")),
    (checks.network_requests, lambda c: output(c[4], "<link href=//a.b/c>", "text/html")),
    (checks.network_requests, lambda c: output(c[4], "<script>fetch('x')</script>", "text/html")),
    (checks.network_requests, lambda c: output(c[4], "a{b:url(http://a.b)}", "text/html")),
    (checks.repeated_sliders, lambda c: output(c[4], SLIDER + SLIDER, "text/html")),
    (checks.heavy_sliders, lambda c: output(c[4], HEAVY, "text/html")),
    (checks.forbidden_words, lambda c: source(c[0], "The proof is simply this.")),
    (checks.forbidden_words, lambda c: source(c[0], "```{note}\nObviously so.\n```")),
    (checks.forbidden_words, lambda c: source(c[0], "It holds!")),
    (checks.forbidden_words, lambda c: rename(c[5], caption="Of course it rises.")),
    (checks.few_predictions, lambda c: c[4].metadata.update(tags=[])),
    (checks.unsolved_exercises, lambda c: source(c[0], "Nothing.")),
    (
        checks.unsolved_exercises,
        lambda c: source(c[0], c[0].source.replace("} ex-one", "} ex-two")),
    ),
    (checks.untitled_exercises, lambda c: swap(c[0], "Extend: one more", "One more")),
    (checks.untitled_exercises, lambda c: swap(c[0], " Extend: one more", "")),
    (checks.untitled_exercises, lambda c: [swap(c[n], "Extend:", "Try:") for n in range(3)]),
    (checks.no_summary_row, lambda c: swap(c[6], "| who uses it |", "| users |")),
    (checks.no_summary_row, lambda c: source(c[6], HEADS)),
    (checks.no_summary_row, lambda c: source(c[6], HEADS + 3 * ROW)),
    (checks.no_summary_row, lambda c: source(c[6], f"{HEADS}{ROW}\n{HEADS}{ROW}")),
    (checks.no_summary_row, lambda c: source(c[6], HEADS + ROW.replace("| e ", "|"))),
    (checks.no_summary_row, lambda c: source(c[6], HEADS + ROW.replace("| e ", ""))),
    (checks.no_summary_row, lambda c: source(c[6], HEADS + ROW.replace("b", "b " * 17))),
    (checks.no_summary_row, lambda c: source(c[6], HEADS + ROW.replace("one", "[one](a)"))),
    (checks.no_index_entry, lambda c: swap(c[6], "{index}", "{note}")),
    (checks.terms_without_an_entry, lambda c: swap(c[0], "shift matrix", "shifty matrix")),
    (checks.terms_without_an_entry, lambda c: swap(c[0], "A **shift", "**shifty")),
    (checks.code_that_is_not_run, lambda c: source(c[0], "```python\nprint(1)\n```")),
]


@pytest.mark.parametrize(
    ("check", "plant"), PLANTED, ids=[f"{n}-{c.__name__}" for n, (c, _) in enumerate(PLANTED)]
)
def test_a_planted_fault_is_found(check, plant, sound, page):
    """Catches a check that is blind, or one that cries at a sound notebook."""
    assert not check(page(sound))
    plant(sound.cells)
    assert check(page(sound)), check.__doc__


@pytest.mark.parametrize("check", checks.OF_ALL + checks.OF_CHAPTERS, ids=lambda c: c.__name__)
def test_every_check_is_tried(check):
    """Catches a new check that nobody has seen fail."""
    assert check is checks.not_canonical or check in {tried for tried, _ in PLANTED}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"nbformat_minor": 5', '"nbformat_minor": 4'),
        ('"metadata": {}', '"metadata": {"ExecuteTime": {"end_time": "2026-01-01"}}'),
        ('"metadata": {}', '"metadata": {"execution": {"iopub.status.busy": "2026-01-01"}}'),
        ('"display_name": "Python 3"', '"display_name": ".venv-xyz"'),
        ("\n}\n", "\n}"),
        (' "cells"', '"cells"'),
    ],
)
def test_a_notebook_stored_by_an_editor_is_found(old, new, sound, page):
    """Catches a check of the stored form that compares too little."""
    stored = page(sound)
    assert not checks.not_canonical(stored)
    assert old in stored.text
    stored.path.write_text(stored.text.replace(old, new, 1), encoding="utf-8")
    assert checks.not_canonical(type(stored)(stored.path))


@pytest.mark.parametrize(
    "text",
    [
        "The factorial $n!$ and `x != y` and a picture ![alt](a.png).",
        "```python\nprint('just so!')\n```\n\nA justified claim.",
        "```{math}\n:label: eq-one\nn! = 1\n```",
    ],
)
def test_code_and_formulas_may_use_any_word(text, sound, page):
    """Catches a check of words that reads what is not prose."""
    sound.cells[0].source = text
    assert not checks.forbidden_words(page(sound))


@pytest.mark.parametrize("text", ["-0.05", "1e-05", "2026-01-02", "[-0.25 0.5]", "10-0.5"])
def test_numbers_that_only_resemble_a_negative_zero_pass(text, sound, page):
    """Catches a check of outputs that cries at an ordinary negative number."""
    stream(sound.cells[4], text)
    assert not checks.machine_words(page(sound))
