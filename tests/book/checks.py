"""What nbval does not look at: each check takes a page and returns its faults, one a line."""

import ast
import re

from reading import GLOSSARY, figure, kinds, lines, shown, tags

from posenc.lab import notebooks, summary, terms

MOST_LINES, MOST_COLUMNS, MOST_PRINTED = 15, 88, 8
MOST_SLIDER = 60_000  # bytes
MOST_ROWS, MOST_WORDS = 2, 16  # of a chapter in the table through the book, and of a cell of it
ALLOWED_IGNORED = {}  # page name: how many of its cells print a time and are not compared

IGNORING = re.compile(r"nbval[-_](?:ignore|skip|raises|check)\w*|raises-exception", re.IGNORECASE)
MACHINE = {
    "an address": re.compile(r"\b0x[0-9a-f]{5,}", re.IGNORECASE),
    "a device": re.compile(r"\bdevice\s*[=(:]\s*\(?(?:type=)?['\"]?\w+|\b(?:cuda|mps|xpu):\d"),
    "NumPy's own spelling of a number": re.compile(
        r"\bnp\.(?:float|int|bool|complex|str)\w*\(|\bnp\.(?:True|False)_"
    ),
    "a negative zero": re.compile(r"(?<![\w.])[-−]0(?:\.0*)?(?![\d.]|e)"),
    "a path of this machine": re.compile(r"(?<![\w/.])/(?:home|root|tmp|usr|Users|work)/"),
}
NETWORK = re.compile(
    r"""(?:src|href|action|poster|data)\s*=\s*["']?\s*(?:\w+:)?//|url\(\s*["']?(?:\w+:)?//"""
    r"""|@import|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(|sendBeacon""",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(r"\b(?:simply|obviously|just|clearly|of course|powerful)\b", re.IGNORECASE)


def not_run_in_order(page):
    """Catch a cell that was never run, or run out of turn: its output may be of another source."""
    counts = [cell.execution_count for cell in page.code]
    return [] if counts == list(range(1, len(counts) + 1)) else [f"run in the order {counts}"]


def not_canonical(page):
    """Catch a notebook stored by an editor: timestamps, lost ids, foreign metadata."""
    canonical = notebooks.text(notebooks.canonical(notebooks.read(page.path)))
    return [] if page.text == canonical else ["run it: python -m posenc.lab.notebooks PATH"]


def semicolons(page):
    """Catch a trailing semicolon: it silences a cell in Jupyter, and not in the comparison."""
    return [cell.source for cell in page.code if cell.source.rstrip().endswith(";")]


def stored_errors(page):
    """Catch a stored traceback, warning or progress bar."""
    bad = [o for cell in page.code for o in cell.outputs if o.output_type == "error"]
    loud = [o for cell in page.code for o in cell.outputs if o.get("name") == "stderr"]
    return [str(output) for output in bad + loud]


def long_cells(page):
    """Catch a cell that does more than one thing, or a line that a page cannot hold."""
    faults = []
    for cell in page.code:
        lines = cell.source.splitlines()
        faults += [cell.source] * (len(lines) > MOST_LINES)
        faults += [line for line in lines if len(line) > MOST_COLUMNS]
    return faults


def first_cell_not_imports(page):
    """Catch a chapter whose first cell does anything but import, set the style and the device."""
    allowed = {"figures.use()", "device = lab.device()"}
    faults = []
    for statement in ast.parse(page.code[0].source).body if page.code else []:
        words = ast.unparse(statement)
        if not isinstance(statement, ast.Import | ast.ImportFrom) and words not in allowed:
            faults.append(words)
    return faults


def ignored_outputs(page):
    """Catch a cell that asks not to be compared: only one that prints a time may."""
    asking = [c.id for c in page.code if IGNORING.search(" ".join([*tags(c), c.source]))]
    return [] if len(asking) == ALLOWED_IGNORED.get(page.name, 0) else asking


def machine_words(page):
    """Catch an output that another machine would write otherwise."""
    faults = []
    for cell in page.code:
        for what, pattern in MACHINE.items():
            faults += [f"{what}: {hit[0]}" for hit in pattern.finditer(shown(cell))]
    return faults


def long_prints(page):
    """Catch a print of more lines than a reader reads."""
    faults = []
    for cell in page.code:
        printed = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if len(printed.splitlines()) > MOST_PRINTED:
            faults.append(printed)
    return faults


def mute_pictures(page):
    """Catch a picture without alt text, caption or name, or whose alt text repeats its caption."""
    faults = []
    for cell in page.code:
        if not any(kind.startswith("image/") for kind in kinds(cell)):
            continue
        alt, caption, name = figure(cell)
        if not (alt and caption and name):
            faults.append(f"alt {alt!r}, caption {caption!r}, name {name!r}")
        if alt.strip() == caption.strip():
            faults.append(f"the alt text repeats the caption: {alt}")
        if name and not re.fullmatch(r"fig-[a-z0-9]+(-[a-z0-9]+)*", name):
            faults.append(f"the name is not fig- and kebab case: {name}")
    return faults


def uncompared_pictures(page):
    """Catch a picture that nbval does not compare: anything but SVG, drawn by plt.show()."""
    faults = []
    for cell in page.code:
        pictures = {kind for kind in kinds(cell) if kind.startswith("image/")}
        faults += sorted(pictures - {"image/svg+xml"})
        if pictures and cell.source.rstrip().splitlines()[-1] != "plt.show()":
            faults.append(f"must end with plt.show(): {cell.source}")
    return faults


def network_requests(page):
    """Catch HTML that asks the network for something when the page is opened."""
    html = [o.get("data", {}).get("text/html", "") for cell in page.code for o in cell.outputs]
    return [hit[0] for text in html for hit in NETWORK.finditer(text)]


def repeated_sliders(page):
    """Catch two sliders of one name on a page: the second would move the first."""
    names = re.findall(r'class="posenc-slider" id="([^"]+)"', "\n".join(map(shown, page.code)))
    return sorted({name for name in names if names.count(name) > 1})


def heavy_sliders(page):
    """Catch a slider of 60 KB or more: its frames are stored in the notebook and in the page."""
    html = [o.get("data", {}).get("text/html", "") for cell in page.code for o in cell.outputs]
    sizes = [len(text.encode()) for text in html if 'class="posenc-slider"' in text]
    return [f"a slider of {size} bytes" for size in sizes if size >= MOST_SLIDER]


def forbidden_words(page):
    """Catch the words and the exclamation marks that STYLE.md forbids, in prose and captions."""
    captions = [" ".join(figure(cell)[:2]) for cell in page.code]
    prose = plain("\n\n".join([page.prose, *captions]))
    faults = [hit[0] for hit in FORBIDDEN.finditer(prose)]
    return faults + re.findall(r"\S+!(?![\[=])", prose)


def plain(text):
    """Return prose without code, formulas, addresses, labels and the heads of directives."""
    text = "\n".join(line if kind == "prose" else "" for kind, line in lines(text))
    return re.sub(
        r"\$\$.*?\$\$|\$[^$]*\$|`+[^`]*`+|<[^>]*>|\]\([^)]*\)", " ", text, flags=re.DOTALL
    )


def few_predictions(page):
    """Catch a chapter with fewer than two questions whose answer is folded until asked for."""
    folded = sum("hide-output" in tags(cell) for cell in page.code)
    return [] if folded >= 2 else [f"{folded} cells are tagged hide-output"]


def unsolved_exercises(page):
    """Catch a chapter with fewer than three exercises, or an exercise without a solution."""
    blocks = re.findall(r"\{exercise(?:-start)?\}.*\n(?:\s*:.*\n)*?\s*:label: *(\S+)", page.prose)
    solved = re.findall(r"\{solution(?:-start)?\} *(\S+)", page.prose)
    faults = [f"{len(blocks)} labelled exercises"] if len(blocks) < 3 else []
    return faults + [f"{label} has no solution" for label in blocks if label not in solved]


def untitled_exercises(page):
    """Catch an exercise that does not say what it is, and a chapter that nobody is to extend."""
    titles = re.findall(r"\{exercise(?:-start)?\} *(.*)", page.prose)
    faults = [title for title in titles if not re.match(r"(Check|Try|Extend): \S", title)]
    extending = any(title.startswith("Extend: ") for title in titles)
    return faults if extending else [*faults, "no exercise is titled Extend: ..."]


def no_summary_row(page):
    """Catch a chapter without its row in the table through the book, or a row that is no row."""
    tables = list(summary.tables(page.prose))
    if len(tables) != 1:
        return [f"{len(tables)} tables with the columns {' | '.join(summary.COLUMNS)}"]
    (rows,) = tables
    faults = [] if 1 <= len(rows) <= MOST_ROWS else [f"{len(rows)} rows"]
    for row in rows:
        if len(row) != len(summary.COLUMNS) or not all(row):
            faults.append(f"not {len(summary.COLUMNS)} cells with something in them: {row}")
        faults += [f"longer than {MOST_WORDS} words: {c}" for c in row if words(c) > MOST_WORDS]
        if row and re.search(r"[\[{<]", re.sub(r"\$[^$]*\$", "", row[0])):
            faults.append(f"the step becomes a link, and holds no link itself: {row[0]}")
    return faults


def words(cell):
    """Count the words of a table's cell; a formula or a role is one."""
    return len(re.sub(r"\$[^$]*\$|\{[\w:]+\}`[^`]*`", "x", cell).split())


def no_index_entry(page):
    """Catch a chapter of which the index knows nothing but the terms in bold."""
    return [] if re.search(r"\{index\}", page.prose) else ["no {index} entry"]


def terms_without_an_entry(page):
    """Catch a term in bold that the glossary lacks: bold is for definitions, italics stress."""
    return [term for term in bold_terms(page) if terms.defined(term, GLOSSARY) is None]


def bold_terms(page):
    """Return what a page sets in bold, without the heads that open a paragraph, item or cell.

    A head ends in a mark or begins with a capital; "Predict" is one wherever it stands.
    """
    text = re.sub(
        r"`[^`]*`", "x", "\n".join(line for kind, line in lines(page.prose) if kind == "prose")
    )
    found = []
    for hit in re.finditer(r"(^[\s>*+|\d.-]*|\| *)?(?<!\*)\*\*([^*]+)\*\*", text, re.MULTILINE):
        head = hit[2] == "Predict" or (hit[1] is not None and hit[2][0].isupper())
        if not head and hit[2][-1] not in ".:?":
            found.append(" ".join(hit[2].split()))
    return found


def code_that_is_not_run(page):
    """Catch Python that stands in the prose of a chapter, where nothing executes it."""
    return re.findall(r"^ *[`~]{3,} *(?:python|py|ipython3?)\b.*$", page.prose, re.MULTILINE)


OF_ALL = [
    not_run_in_order,
    not_canonical,
    semicolons,
    stored_errors,
    long_cells,
    first_cell_not_imports,
    ignored_outputs,
    machine_words,
    long_prints,
    mute_pictures,
    uncompared_pictures,
    network_requests,
    repeated_sliders,
    heavy_sliders,
]
OF_CHAPTERS = [
    few_predictions,
    unsolved_exercises,
    untitled_exercises,
    no_summary_row,
    no_index_entry,
    terms_without_an_entry,
    code_that_is_not_run,
]
