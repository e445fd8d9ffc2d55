"""The gallery of broken encodings: every exhibit is complete, and its test is there."""

import ast
import re
from functools import cache

import pytest
import torch
from reading import BOOK, ROOT, Page, shown

from tests.breaks import BREAKS

PAGE = Page(BOOK / "appendix" / "debug.ipynb")
LINK = re.compile(
    r"\[([\w.-]+/[\w.-]+)#(\d+)\]\(https://github\.com/([\w./-]+)/(issues|pull)/(\d+)\)"
)
TEST = re.compile(r"`(tests/(?:\w+/)*test_\w+\.py::test_\w+)`")
VERDICT = re.compile(r'^verdict\((\d+), "([a-z ]+)"', re.MULTILINE)
ROW = re.compile(
    r"^\| \{ref\}`(\d+) <exhibit-(\d+)>` \|.*\| ([a-z ]+) \| (`\S+`) \|$", re.MULTILINE
)
SAYS = "{}: fails on the exhibit, holds on posenc"


def exhibits(page):
    """Return, by number, what each exhibit is made of, in order: pairs of kind and cell or text."""
    found, number = {}, None
    for cell in page.cells:
        if cell.cell_type == "code":
            if number is not None:
                found[number].append(("code", cell))
            continue
        for piece in re.split(
            r"(?m)^(?=\(exhibit-\d+\)=$|## |`{3,}\{(?:exercise|solution-(?:start|end))\})",
            cell.source,
        ):
            heading = re.match(r"\(exhibit-(\d+)\)=\n### Exhibit (\d+): \S", piece)
            if heading:
                number = int(heading[1]) if heading[1] == heading[2] else None
                assert number is not None, piece
                assert number not in found, piece
                found[number] = []
            elif piece.startswith("## "):
                number = None
            if number is not None:
                found[number].append(("text", piece))
    return found


def faults(number, parts):
    """Return what an exhibit lacks, one sentence for each thing."""
    marks = {"exercise": None, "solution-start": None, "solution-end": None}
    for at, (kind, piece) in enumerate(parts):
        directive = kind == "text" and re.match(r"`{3,}\{([\w-]+)\}", piece)
        if directive and directive[1] in marks:
            marks[directive[1]] = at
    if None in marks.values():
        return [f"{name} is missing" for name, at in marks.items() if at is None]
    question, solution, end = marks.values()
    wrong = [] if question < solution < end else ["the solution does not follow its question"]
    intro, shows = parts[:question], [c for kind, c in parts[:question] if kind == "code"]
    story = "\n".join(piece for kind, piece in intro if kind == "text")
    links = LINK.findall(story)
    if not links or story.count("https://") != len(links):
        wrong.append("no report, or an address of another form")
    wrong += [f"{a}#{n} leads elsewhere" for a, n, b, _, m in links if (a, n) != (b, m)]
    if len(shows) < 2 or any(shown(cell) for cell in shows[:1]):
        wrong.append("the broken code does not stand first, in a cell that shows nothing")
    if not shown(shows[-1]) if shows else True:
        wrong.append("no symptom stands above the question")
    if any("verdict" in cell.source for cell in shows):
        wrong.append("the verdict stands above the question")
    if f":label: ex-debug-{number}\n" not in parts[question][1]:
        wrong.append("the label of the question has another number")
    opening = parts[solution][1]
    if f"{{solution-start}} ex-debug-{number}\n:class: dropdown\n" not in opening:
        wrong.append("the solution is of another question, or lies open")
    answer = parts[solution:end]
    cells = [cell for kind, cell in answer if kind == "code"]
    prose = "\n".join(piece for kind, piece in answer if kind == "text")
    verdicts = [hit for cell in cells for hit in VERDICT.findall(cell.source)]
    if [int(n) for n, _ in verdicts] != [number]:
        wrong.append("not one verdict with its number")
    elif not any(SAYS.format(verdicts[0][1]) in shown(cell) for cell in cells):
        wrong.append("the verdict has not been printed")
    if "The fault is" not in prose or f"*{verdicts[0][1] if verdicts else ''}*" not in prose:
        wrong.append("the solution names no fault, or no property")
    named = TEST.findall(prose)
    if "Caught by `tests/" not in prose or not named:
        wrong.append("no test is named")
    return wrong + [f"{test} is no test" for test in named if test not in known()]


@cache
def known():
    """Return the ids of all tests of the repository, read and not imported."""
    found = set()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add(f"{path.relative_to(ROOT).as_posix()}::{node.name}")
    return found


def of_solution(parts):
    """Return the property and the first test that a solution names."""
    sources = [p.source if kind == "code" else p for kind, p in parts]
    (verdict,) = VERDICT.findall("\n".join(sources))
    return verdict[1], TEST.findall("\n".join(sources))[0]


def test_there_are_at_least_fifteen_exhibits_numbered_without_a_gap():
    """Catches an exhibit that was taken out and left a hole, or two of one number."""
    numbers = list(exhibits(PAGE))
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 15


@pytest.mark.parametrize("number", exhibits(PAGE))
def test_an_exhibit_has_report_symptom_question_solution_and_test(number):
    """Catches an exhibit without one of its parts, and a test that was renamed."""
    assert not faults(number, exhibits(PAGE)[number])


def test_the_table_says_what_the_solutions_say():
    """Catches a row left out, and a property or a test that was changed in one place only."""
    rows = {int(n): (name, test.strip("`")) for n, m, name, test in ROW.findall(PAGE.prose)}
    assert rows == {number: of_solution(parts) for number, parts in exhibits(PAGE).items()}
    assert all(n == m for n, m, _, _ in ROW.findall(PAGE.prose))


def test_six_properties_are_named_and_each_is_needed():
    """Catches a property of the checklist that no exhibit needs, and one that is not on it."""
    heads = re.findall(r"(?m)^\d\. \*\*([A-Z][a-z ]+)\.\*\*", PAGE.prose)
    assert len(heads) == 6
    used = {of_solution(parts)[0] for parts in exhibits(PAGE).values()}
    assert used == {head.lower() for head in heads}


def test_every_named_test_is_seen_to_fail_by_the_breaks():
    """Catches a test that the page praises and that nobody has seen fail."""
    seen = {word for each in BREAKS for command in each.check for word in command}
    named = {of_solution(parts)[1] for parts in exhibits(PAGE).values()}
    assert not named - seen


def test_every_break_finds_its_place():
    """Catches a fault of the breaks that can no longer be put in, so that the run of them stops."""
    for each in BREAKS:
        text = (ROOT / each.file).read_text(encoding="utf-8")
        assert each.put(text) != text, each.name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("](https://github.com/zju3dv/LoFTR/issues/41)", "](https://example.org/41)"),
        ("zju3dv/LoFTR/issues/41", "zju3dv/LoFTR/issues/42"),
        (
            "Caught by `tests/test_spectrum.py::test_every",
            "Caught by `tests/test_spectrum.py::test_no",
        ),
        ("Caught by `tests/test_spectrum.py", "See `tests/test_spectrum.py"),
        (":label: ex-debug-2\n", ":label: ex-debug-20\n"),
        ("{solution-start} ex-debug-2\n:class: dropdown", "{solution-start} ex-debug-2\n:label: x"),
        ('verdict(2, "values"', 'verdict(3, "values"'),
        ('verdict(2, "values"', 'verdict(2, "shift"'),
        ("The fault is a missing", "There is a missing"),
        ('print(f"d = {d}:", *', 'verdict(2, "values", *'),
    ],
)
def test_a_planted_gap_is_found(old, new, tmp_path):
    """Catches a check that passes an exhibit which lacks one of its parts."""
    parts = exhibits(PAGE)[2]
    for at, (kind, piece) in enumerate(parts):
        text = piece.source if kind == "code" else piece
        if old in text:
            changed = text.replace(old, new)
            copy = type(piece)(piece) if kind == "code" else changed
            if kind == "code":
                copy["source"] = changed
            assert faults(2, [*parts[:at], (kind, copy), *parts[at + 1 :]])
            return
    raise AssertionError(f"nothing to break: {old!r}")


@cache
def page_functions():
    """Return what the cells of the checklist define, with what they stand on."""
    names, wanted = {}, ("import numpy", "def close", "def reference", "def drawn", "def values")
    wanted = (*wanted, "def parts", "def width", "def by_hand")
    for cell in PAGE.code:
        if any(word in cell.source for word in wanted) and "verdict(" not in cell.source:
            exec(cell.source, names)
    return names


def in_the_place_of_mine(kind):
    """Return a rotation with a fault that is no exhibit, as ``turn(x, at)``."""
    names = page_functions()
    by_hand, omega = names["by_hand"], names["omega"]

    def tables_in_the_narrow_format(x, at):
        angle = at[:, None, :, None].double() * omega
        cos, sin = angle.cos().to(x.dtype).double(), angle.sin().to(x.dtype).double()
        a, b = x.double().chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)

    def base_by_the_longest_position(x, at):
        base = 10000.0 * max(1.0, (float(at.max()) + 1) / 2048) ** (16 / 14)
        return by_hand(x, at, omega=base ** (-torch.arange(8, device=at.device).double() / 8))

    return {
        "nothing": by_hand,
        "the result in a wider format": lambda x, at: by_hand(x.to(torch.float64), at),
        "tables in the narrow format": tables_in_the_narrow_format,
        "positions of the caller ignored": lambda x, at: by_hand(
            x, torch.arange(at.shape[1], device=at.device).expand(at.shape)
        ),
        "positions of the first text for all": lambda x, at: by_hand(x, at[:1].expand(at.shape)),
        "positions clamped to 4096 rows": lambda x, at: by_hand(x, at.clamp(max=4095)),
        "nothing done for one head": lambda x, at: x * 1 if x.shape[1] == 1 else by_hand(x, at),
        "a step one too far": lambda x, at: by_hand(x, at + (at.shape[1] == 1)),
        "another base": lambda x, at: by_hand(x, at, omega=omega**1.5),
        "a base that grows with the positions": base_by_the_longest_position,
        "no gradient": lambda x, at: by_hand(x.detach(), at) + 0 * x,
    }[kind]


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        ("nothing", ""),
        ("the result in a wider format", "width"),
        ("tables in the narrow format", "width"),
        ("positions of the caller ignored", "values parts width"),
        ("positions of the first text for all", "values company"),
        ("positions clamped to 4096 rows", "shift width"),
        ("nothing done for one head", "company"),
        ("a step one too far", "parts"),
        ("another base", "values width way_back"),
        ("a base that grows with the positions", "shift width"),
        ("no gradient", "way_back"),
    ],
)
def test_the_checklist_catches_faults_that_are_no_exhibits(kind, broken):
    """Catches a checklist that was cut to the exhibits of the page."""
    names, turn = page_functions(), in_the_place_of_mine(kind)
    properties = ("values", "shift", "parts", "company", "width", "way_back")
    assert {name for name in properties if not names[name](turn)} == set(broken.split())
