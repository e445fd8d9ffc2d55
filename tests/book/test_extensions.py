"""The book's own extensions of Sphinx, tried on a book of three pages."""

import importlib
import json
import os
import subprocess
import sys

import pytest
import yaml
from bs4 import BeautifulSoup
from reading import CHAPTERS, NOTEBOOKS, ROOT

sys.path.insert(0, str(ROOT / "_ext"))
run_line, slim = map(importlib.import_module, ("run_line", "slim"))

OURS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
HEADS = "| step | what it adds | what it guarantees | cost | where it breaks | who uses it |"
ONE = f"""# One

A **shift matrix** turns **pairs**; a **shift matrix** again, **Stress.**

```{{index}} RoBERTa; offset of its rows
```

It is {{glue:text}}`share`.

{HEADS}
| --- | --- | --- | --- | --- | --- |
| one $M_k$ | {{glue:text}}`share` of {{doc}}`/book/2-waves/two` | `code` | $2d$ | never | all |
"""
TWO = f"""# Two

A **pair** and a **pear**.

{HEADS}
| --- | --- | --- | --- | --- | --- |
| two | a **shift matrix** | b | c | d | e |
"""
APPENDIX = {
    "glossary": "# Words\n\n```{glossary}\npair, couple\n  Two.\n\nshift matrix\n  One.\n```\n",
    "summary": "# Table\n\n```{summary-table}\n```\n",
    "general-index": "# Index\n\n```{general-index}\n```\n",
}
PAGES = ["book/1-order/one", "book/2-waves/two", *(f"book/appendix/{name}" for name in APPENDIX)]


def notebook(text):
    """Return a notebook with this prose and one glued number."""
    record = {"scrapbook": {"name": "share", "mime_prefix": "application/papermill.record/"}}
    kind = "application/papermill.record/text/plain"
    output = {"output_type": "display_data", "data": {kind: "'0.5'"}, "metadata": record}
    code = {"cell_type": "code", "source": 'glue("share", 0.5)', "outputs": [output]}
    cells = [{**code, "execution_count": 1}, {"cell_type": "markdown", "source": text}]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    about["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    cells = [{"id": f"c{n}", "metadata": {}, **cell} for n, cell in enumerate(cells)]
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the three pages and the appendix both ways, and return the folder."""
    root = tmp_path_factory.mktemp("small")
    toc = "".join(f"- file: {page}\n" for page in PAGES)
    files = {
        "_toc.yml": f"format: jb-book\nroot: index\nchapters:\n{toc}",
        "index.md": "# Small\n",
        "book/1-order/one.ipynb": notebook(ONE),
        "book/2-waves/two.ipynb": notebook(TWO),
        **{f"book/appendix/{name}.md": text for name, text in APPENDIX.items()},
    }
    for name, text in files.items():
        (root / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "source" / name).write_text(text, encoding="utf-8")
    address = "https://github.com/OWNER/NAME"
    for builder, url in (
        ("html", OURS["repository"]["url"]),
        ("singlehtml", ""),
        ("html", address),
    ):
        own = ["myst_nb", "sphinx_external_toc", "summary_table", "book_index", "run_line"]
        out = "launch" if url == address else builder
        theme = {"launch_buttons": OURS["launch_buttons"], "repository_url": url}
        config = {
            "html_theme_options": theme,
            "extensions": own,
            "html_theme": "sphinx_book_theme",
            "html_sourcelink_suffix": "",
            "html_use_index": False,
            "nb_execution_mode": "off",
            "myst_enable_extensions": ["dollarmath"],
            "mathjax_path": "mathjax.js",
        }
        folder = root / f"config-{out}"
        folder.mkdir()
        (folder / "conf.py").write_text(f"globals().update({config!r})\n", encoding="utf-8")
        # In a process of its own: an extension looks at every object that this one has loaded.
        places = ["-c", folder, "-d", root / f"doctrees-{out}", root / "source", root / out]
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-b", builder, "-W", "-q", *places],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "_ext")])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return root


def soup(built, page):
    """Return a page of the small book."""
    return BeautifulSoup((built / "html" / f"{page}.html").read_text("utf-8"), "html.parser")


def leads(built, page, link):
    """Return the element that a link of a page leads to."""
    file, _, anchor = link["href"].partition("#")
    target = (built / "html" / page).parent / file
    text = (target if file else built / "html" / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").find(id=anchor) if anchor else target


def test_the_rows_stand_in_the_order_of_the_book_each_with_its_chapter(built):
    """Catches a lost row, another order, a dead link, or MyST that stays unread in a cell."""
    table = soup(built, "book/appendix/summary").select_one("table.summary")
    first, second = table.select("tbody tr")
    assert [first.a["href"], second.a["href"]] == ["../1-order/one.html", "../2-waves/two.html"]
    assert first.a.select_one(".math")
    assert first.select("td")[1].get_text(strip=True) == "0.5 ofTwo"
    assert first.select("td")[1].a["href"] == "../2-waves/two.html"
    assert first.select_one("td code")
    assert len(first.select("td")) == len(table.select("th")) == 6


def entries(built):
    """Return the entries of the small book's index: words, and the links that follow them."""
    items = soup(built, "book/appendix/general-index").select(".index-entries li > p")
    return {item.contents[0].strip().rstrip(","): item.select("a") for item in items}


def test_the_index_knows_terms_in_bold_the_glossary_and_what_a_page_asks_for(built):
    """Catches a term that is not entered, or twice, a lost directive, a head taken for a term."""
    found = entries(built)
    places = {words: [link.text for link in links] for words, links in found.items()}
    assert places == {
        "couple": ["Words"],
        "pair": ["Words", "One", "Two"],
        "RoBERTa": [],
        "offset of its rows": ["One"],
        "shift matrix": ["Words", "One"],
    }


def test_a_link_of_the_index_leads_to_its_word(built):
    """Catches an entry that leads to the head of a page only, or nowhere."""
    page = "book/appendix/general-index"
    words, one, two = (leads(built, page, link) for link in entries(built)["pair"])
    assert (words.name, one.text, two.text) == ("dt", "pairs", "pair")
    assert (one.name, two.name) == ("strong", "strong")
    assert leads(built, page, entries(built)["offset of its rows"][0])
    for jump in soup(built, page).select(".index-letters a"):
        assert leads(built, page, jump).find(["h2", "h3"]).text.startswith(jump.text)


def test_the_whole_book_on_one_page_keeps_table_and_index(built):
    """Catches an index whose links lead out of the one page, and a line that nobody can press."""
    page = BeautifulSoup((built / "singlehtml/index.html").read_text("utf-8"), "html.parser")
    links = page.select(".index-entries a")
    assert len(links) == 7
    assert all(page.find(id=link["href"].partition("#")[2]) for link in links)
    assert page.select_one("table.summary tbody tr")
    assert not page.select(".run-line")


def test_a_notebook_says_how_to_run_it(built):
    """Catches a line without its download, or on a page that cannot run."""
    line = soup(built, PAGES[0]).select_one("h1 ~ .run-line")
    assert leads(built, PAGES[0], line.a).is_file()
    codes = [code.text for code in line.select("code")]
    assert codes == ["book/1-order/one.ipynb", "make lab", "POSENC_DEVICE=cuda make lab"]
    assert line.a["download"] == "one.ipynb"
    assert not soup(built, "book/appendix/summary").select(".run-line")


def test_what_is_downloaded_has_no_outputs(built):
    """Catches a download with the pictures that the page shows already."""
    stored = json.loads((built / "html/_sources/book/1-order/one.ipynb").read_text("utf-8"))
    assert [cell.get("outputs", []) for cell in stored["cells"]] == [[], []]


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.name)
def test_a_download_is_the_notebook_before_its_first_run(page):
    """Catches a download that lost a cell, changed one, or is no valid notebook."""
    before, after = page.text, run_line.without_outputs(page.text)
    same = [
        [(cell["id"], cell["cell_type"], cell["source"], cell["metadata"]) for cell in cells]
        for cells in (json.loads(before)["cells"], json.loads(after)["cells"])
    ]
    assert same[0] == same[1]
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads(after, as_version=4))
    assert len(after) < 100_000
    assert run_line.without_outputs(after) == after


class Book:
    """What the theme's options are, once the configuration has been read."""

    def __init__(self, **options):
        self.html_theme_options = {"launch_buttons": {"binderhub_url": "https://a.b"}, **options}


@pytest.mark.parametrize(
    ("options", "buttons"),
    [
        ({}, False),
        ({"repository_url": ""}, False),
        ({"repository_url": "https://github.com/OWNER/NAME"}, True),
    ],
)
def test_launch_buttons_need_an_address(options, buttons):
    """Catches a button that would launch somebody else's repository, or none."""
    config = Book(**options)
    run_line.launch_only_from_an_address(None, config)
    assert bool(config.html_theme_options["launch_buttons"]) is buttons


def test_launch_buttons_come_with_an_address(built):
    """Catches buttons that our configuration shows without one, or does not show with one."""
    for folder, shown in (("html", False), ("launch", True)):
        page = (built / folder / f"{PAGES[0]}.html").read_text("utf-8")
        assert ("https://mybinder.org/v2/gh/OWNER/NAME" in page) is shown
        assert ("mybinder" in page) is shown


ICONS = (
    'var a={"arrow-up":[384,512,["up"],"f062","M1z"],moon:[384,512,[127769,9214],"f186","M2z"],'
    'house:[576,512,["home"],"f015",["M3","M4"]],sun:[5,5,[],"f185","M5z"]};b()'
)


def test_only_named_icons_stay():
    """Catches a cut that takes an icon in use, one called by another name, or what is no icon."""
    left = slim.only({"moon", "home"}, ICONS)
    assert left == (
        'var a={moon:[384,512,[127769,9214],"f186","M2z"],'
        'house:[576,512,["home"],"f015",["M3","M4"]],};b()'
    )


def test_a_script_written_in_another_way_stops_the_build():
    """Catches a new theme whose script is not understood: icons would stay, or vanish."""
    with pytest.raises(slim.ExtensionError, match=r"slim\.py"):
        slim.only({"moon"}, "var a=1")


def test_the_chapters_of_the_table_are_those_of_the_checks():
    """Catches a chapter that has a row and is not in the table, or the reverse."""
    from posenc.lab import summary

    assert {path for path in summary.chapters(ROOT)} == {page.path for page in CHAPTERS}
