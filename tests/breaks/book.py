"""Faults of chapters, pages, the printed book, the laboratory and the command."""

from .cells import (
    a_label_more,
    another_curve,
    another_digit,
    in_cells,
    misspelt_macro,
    no_alt_text,
    no_row,
)
from .fault import FORMULA, NBVAL, TESTS, Break, swap, unit

BUILD = (
    "-c",
    "from jupyter_book.cli.main import main; main()",
    "build",
    ".",
    "-W",
    "-n",
    "--keep-going",
    "--all",
    "-q",
)
ONE_PAGE = (*BUILD, "--builder", "singlehtml")

BREAKS = (
    Break(
        "an error that leaves status 0",
        "posenc/__main__.py",
        swap("    return 2\n", "    return 0\n"),
        unit("test_command.py::test_errors_are_one_sentence_and_status_2"),
    ),
    Break("one stored digit", FORMULA, in_cells(another_digit), ((*NBVAL, FORMULA),)),
    Break("one curve of a stored figure", FORMULA, in_cells(another_curve), ((*NBVAL, FORMULA),)),
    Break(
        "a misspelt TeX macro",
        FORMULA,
        in_cells(misspelt_macro),
        (BUILD, (*TESTS, "tests/site/test_site.py", "-k", "shows_every_formula and formula")),
    ),
    Break(
        "a missing alt text",
        FORMULA,
        in_cells(no_alt_text),
        ((*TESTS, "tests/book/test_notebooks.py"),),
    ),
    Break(
        "a chapter without its row",
        FORMULA,
        in_cells(no_row),
        unit("book/test_notebooks.py::test_no_chapter_has[no_summary_row-2-waves/formula]"),
    ),
    Break(
        "an index that leads nowhere",
        "_ext/book_index.py",
        swap('            bold["ids"].append(name)\n', ""),
        unit("book/test_extensions.py::test_a_link_of_the_index_leads_to_its_word"),
    ),
    Break(
        "motion for who asked for none",
        "_static/book.css",
        swap("animation: none !important; transition: none !important;", ""),
        (BUILD, (*TESTS, "tests/site/test_site.py", "-k", "less_motion and formula")),
    ),
    Break(
        "printed before its pages were known",
        "_ext/printing/press.py",
        swap("if places == known:", "if places:"),
        (ONE_PAGE, (*TESTS, "tests/site/test_pdf_finds.py", "-k", "sound_book")),
    ),
    Break(
        "contents that fall into letters",
        "_ext/printing/paper.css",
        swap(".leader::before { content", ".leader::before { visibility: hidden; content"),
        (ONE_PAGE, (*TESTS, "tests/site/test_pdf.py", "-k", "copying")),
    ),
    Break(
        "a label without a test",
        FORMULA,
        in_cells(a_label_more),
        unit("book/test_equations.py::test_no_edge_dangles"),
    ),
    Break(
        "bias cast to 16 bits",
        "posenc/lab/attention.py",
        swap("= _cast(bias, dtype, xp)", "= _cast(bias.to(x.dtype), dtype, xp)"),
        unit("test_bias.py::test_narrow_scores_and_the_bias_are_added_in_float32"),
    ),
)
