"""The trials of the appendix: each has both sides and a cell that decides; the table is whole."""

import json
import math
import re

import mpmath
import numpy as np
import pytest
import torch
from reading import BOOK, NOTEBOOKS, PAGES, figure, tags

from posenc import alibi_slopes, frequencies

PAGE = next(page for page in NOTEBOOKS if page.name == "appendix/debates")
VERDICTS = {"right", "imprecise", "wrong", "contested"}
ROW = re.compile(r"^\| (\d+) \| (.+?) \| \*(.+?)\*: (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\{(ref|doc|eq|numref)\}`([^`]+)`")


def target(text):
    """Return what a link names: ``words <label>`` names the label."""
    named = re.fullmatch(r".*<([^<>]+)>", text, re.DOTALL)
    return named[1] if named else text


def known():
    """Return every label of the book, for a reference, an equation and a number."""
    prose = "\n".join(page.prose for page in PAGES)
    options = set(re.findall(r":label: *(\S+)", prose))
    equations = {label for label in options if label.startswith("eq-")}
    figures = {figure(cell)[2] for page in NOTEBOOKS for cell in page.code} - {""}
    sections = set(re.findall(r"^\(([\w-]+)\)=$", prose, re.MULTILINE))
    return {
        "ref": sections,
        "eq": equations,
        "numref": figures | {label for label in options if label.startswith("ex-")},
    }


def faults_of_links(text):
    """Return each link of the text that leads nowhere."""
    labels, faults = known(), []
    for kind, words in LINK.findall(text):
        label = target(words)
        if kind == "doc":
            path = BOOK / label.removeprefix("/book/")
            found = any(path.with_suffix(end).exists() for end in (".ipynb", ".md"))
        else:
            found = label in labels[kind]
        faults += [] if found else [f"{kind} {label}"]
    return faults


def faults_of_table(text):
    """Return what is wrong with the table of claims: numbers, verdicts, places."""
    rows, faults = ROW.findall(text), []
    if [int(number) for number, *_ in rows] != list(range(1, 71)):
        faults.append("not the claims 1 to 70, each once and in order")
    for number, _, verdict, where in rows:
        planned = re.findall(r"planned: (\w+)", where)
        if verdict not in VERDICTS:
            faults.append(f"{number}: verdict {verdict}")
        if not LINK.search(where) and not planned:
            faults.append(f"{number}: no place")
        exists = [name for name in planned if (BOOK / f"7-further/{name.lower()}.ipynb").exists()]
        faults += [f"{number}: {name} is no longer planned, link it" for name in exists]
    return faults


def debates(page):
    """Return each trial by its label: its prose and its cells."""
    found, current = {}, None
    for cell in page.cells:
        if cell.cell_type == "markdown":
            for part in re.split(r"^(?=\([\w-]+\)=$|## )", cell.source, flags=re.MULTILINE):
                label = re.match(r"\((debate-[\w-]+)\)=", part)
                if label:
                    current = found.setdefault(label[1], {"prose": "", "cells": []})
                    current["prose"] += part
                elif re.match(r"\(\w+\)=|## ", part) and not (
                    current and current["prose"].strip().endswith(")=")
                ):
                    current = None
                elif current:
                    current["prose"] += "\n\n" + part
        elif current:
            current["cells"].append(cell)
    return found


TRIALS = debates(PAGE)


def test_there_are_trials():
    """Catches a page whose trials the checks below no longer find."""
    assert len(TRIALS) >= 9


@pytest.mark.parametrize("label", TRIALS)
def test_a_trial_hears_both_sides_and_says_what_remains(label):
    """Catches a side, a prediction, a verdict or the open question left out, or out of turn."""
    prose = TRIALS[label]["prose"]
    sides = re.findall(r"^\*(?:For|Against|One side|The other)[\w ]*\.\*", prose, re.MULTILINE)
    assert len(sides) == 2
    turns = [prose.find(word) for word in (sides[1], "**Predict.**", "*Verdict.*", "*Open.*")]
    assert turns == sorted(turns)
    assert turns[0] > 0
    assert re.search(r"^## .+\?$", prose, re.MULTILINE), "the heading asks"


@pytest.mark.parametrize("label", TRIALS)
def test_a_trial_has_a_folded_cell_that_decides(label):
    """Catches a verdict that stands on no assertion, or is given away before it is asked for."""
    folded = [cell for cell in TRIALS[label]["cells"] if "hide-output" in tags(cell)]
    assert any(re.search(r"^\s*assert ", cell.source, re.MULTILINE) for cell in folded)


def test_every_claim_stands_in_the_table_with_a_verdict_and_a_place():
    """Catches a claim lost or doubled, a verdict of no kind, a claim that leads nowhere."""
    assert not faults_of_table(PAGE.prose)


def test_every_link_of_the_page_leads_somewhere():
    """Catches a label or a page that has been renamed since."""
    assert not faults_of_links(PAGE.prose)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| 17 |", "| 18 |"),
        ("*right*: {ref}", "{ref}"),
        ("| *right*:", "| *true*:"),
        ("{eq}`eq-sinusoidal` |", "{eq}`eq-cosinusoidal` |"),
        ("<debate-alibi>", "<debate-alibis>"),
        ("<formula-speeds>", "<formula-speed>"),
        ("{numref}`fig-wavelengths-wheels`", "{numref}`fig-wheels`"),
        ("planned: Without", "planned: Conventions"),
    ],
)
def test_a_planted_fault_of_the_table_is_found(old, new, tmp_path, monkeypatch):
    """Catches a check of the table that is blind to one kind of fault."""
    text = PAGE.prose.replace(old, new, 1)
    assert text != PAGE.prose
    if "planned" in new:
        (tmp_path / "7-further").mkdir()
        (tmp_path / "7-further/conventions.ipynb").touch()
        monkeypatch.setitem(globals(), "BOOK", tmp_path)
        assert faults_of_table(text)
    else:
        assert faults_of_table(text) + faults_of_links(text)


def test_no_content_makes_the_deviation_larger_than_the_page_says():
    """Catches a quotient of interpolation that some content exceeds, or that none reaches."""
    with mpmath.workdps(30):
        speeds = [mpmath.power(10000, -mpmath.mpf(i) / 64) for i in range(64)]
        worst = mpmath.fsum(1 - mpmath.cos(w / 2) for w in speeds)
    assert mpmath.nstr(64 / worst, 4) == "129.6"
    omega = frequencies(128).omega
    x = np.linspace(0, 1, 101)[:, None]
    gap = np.exp(1j * omega * x) - ((1 - x) + x * np.exp(1j * omega))  # [101, 64]
    contents = np.exp(2j * np.pi * np.random.default_rng(0).random((64, 500)))
    assert abs((gap @ contents).real).max() < worst
    aligned = gap[50].conj() / abs(gap[50])
    assert abs((gap @ aligned).real.max() - float(worst)) < 1e-12


def test_alibi_shares_are_those_of_a_geometric_sum():
    """Catches a share of far keys that counts the edge at 512 on the wrong side."""
    for slope in alibi_slopes(8):
        r = math.exp(-slope)
        closed = (r**512 - r**15512) / (1 - r**15512)
        weights = np.exp(-slope * np.arange(15512))
        assert abs(weights[512:].sum() / weights.sum() - closed) < 1e-12
    assert f"{100 * closed:.1f}" == "13.5"


@pytest.mark.parametrize("dim", (4, 8, 16))
def test_the_sieve_of_the_page_finds_what_a_full_search_finds(dim):
    """Catches a sieve that drops a position too early."""
    omega, reach = frequencies(dim).omega, 20_000
    full = (4 * np.sin(np.multiply.outer(np.arange(2, reach + 1), omega) / 2) ** 2).sum(axis=1)
    neighbour = (4 * np.sin(omega / 2) ** 2).sum()
    names = {"np": np, "omega": omega}
    source = next(c.source for c in TRIALS["debate-unique"]["cells"] if "neighbour" in c.source)
    source = source.replace("3_000_001", str(reach + 1)).replace("256", str(dim // 2))
    exec(source.partition("print(")[0], names)
    assert np.array_equal(names["k"], 2 + np.flatnonzero(full < neighbour))


def test_the_study_still_has_the_runs_that_are_called_as_witnesses():
    """Catches a study stored anew without an encoding or a part that the page reads."""
    runs = json.loads((BOOK / "data/study-cpu.json").read_text(encoding="utf-8"))["runs"]
    for part, name, seeds in (
        ("shift", "sinusoidal", 5),
        ("shift", "learned", 5),
        ("shift", "rope", 5),
        ("fast-shift", "sinusoidal", 5),
        ("fast-shift", "rope", 5),
        ("text", "alibi", 3),
        ("long", "sinusoidal", 3),
        ("long", "learned", 3),
    ):
        assert sum(key.startswith(f"{part}/{name}/") for key in runs) >= seeds


def trained_head(dim, window, seed, step=0.01, offset=1, width=64, init=None):
    """Return the product of a head trained to look back, by other means than the page's."""
    x = bare_rows(np.arange(window), dim)
    rng = np.random.default_rng(1000 + seed)
    draw = rng.normal(size=(2, dim, width)) * (init or dim**-0.5)
    a, b = (torch.tensor(w, requires_grad=True) for w in draw)
    adam, query = torch.optim.AdamW([a, b], lr=step, weight_decay=0.0), torch.arange(offset, window)
    at = torch.tensor(x)
    for _ in range(100):
        scores = (at @ a) @ (at @ b).T / width**0.5
        adam.zero_grad()
        torch.nn.functional.cross_entropy(scores[query], query - offset).backward()
        adam.step()
    return (a @ b.T / width**0.5).detach().numpy()


def bare_rows(positions, dim):
    """Return the rows of waves as pairs of sine and cosine, from complex numbers."""
    turn = np.exp(1j * np.outer(positions, 10000.0 ** (-np.arange(0, dim, 2) / dim)))
    return np.stack([turn.imag, turn.real], axis=-1).reshape(len(positions), dim)


def relative(product):
    """Return the nearest member of the commutant, as the mean over the turns of every hand."""
    half = len(product) // 2
    blocks = product.reshape(half, 2, half, 2)[np.arange(half), :, np.arange(half)]  # [half, 2, 2]
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    turned = (blocks + quarter @ blocks @ quarter.T) / 2
    full = np.zeros((half, 2, half, 2))
    full[np.arange(half), :, np.arange(half)] = turned
    return full.reshape(product.shape)


def looks_back(scores, offset=1):
    """Return the mean weight on the key that a query shall find."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.diagonal(weights, -offset).mean()


def weight_if_moved(product, terms, window):
    """Return the weight when the given terms of the scores go on to the next window."""
    old, new = (bare_rows(start + np.arange(window), len(product)) for start in (0, window))
    moving = np.where(np.kron(terms, np.ones((2, 2))), product, 0)
    return looks_back(old @ (product - moving) @ old.T + new @ moving @ new.T)


@pytest.mark.parametrize(
    "how",
    [{"seed": 0}, {"seed": 1, "offset": 5}, {"seed": 2, "init": 0.01}, {"seed": 3, "width": 16}],
)
def test_the_verdict_on_heads_does_not_hang_on_the_seeds_of_the_page(how):
    """Catches a relative part, a rest or a cause that three seeds show and others do not."""
    product, offset = trained_head(512, 128, **how), how.get("offset", 1)
    rest = product - relative(product)
    windows = [bare_rows(start + np.arange(128), 512) for start in (0, 128, 10**6)]
    assert min(looks_back(x @ relative(product) @ x.T, offset) for x in windows) > 0.8
    assert looks_back(windows[0] @ rest @ windows[0].T, offset) > 0.75
    assert max(looks_back(x @ rest @ x.T, offset) for x in windows[1:]) < 0.1
    if offset > 1:
        return
    omega = frequencies(512).omega
    fast, drift = omega >= 2 * np.pi / 128, abs(np.subtract.outer(omega, omega))
    together, beats = np.add.outer(1 * fast, fast), (drift > 0) & (drift < 2 * np.pi / 128)
    assert weight_if_moved(product, together == 2, 128) < 0.3
    assert min(weight_if_moved(product, together == n, 128) for n in (0, 1)) > 0.75
    assert weight_if_moved(product, beats, 128) < 0.45
    assert weight_if_moved(product, drift >= 2 * np.pi / 128, 128) > 0.7


def test_the_limits_of_the_verdict_on_heads_are_where_the_page_says():
    """Catches a verdict that is said of all windows, widths and rates of training."""
    x = bare_rows(np.arange(32), 512)
    for seed in range(2):
        assert looks_back(x @ relative(trained_head(512, 32, seed)) @ x.T) < 0.5
        narrow = trained_head(128, 128, seed)
        assert 0.4 < (relative(narrow) ** 2).sum() / (narrow**2).sum() < 0.6
        assert weight_if_moved(narrow, np.ones((64, 64), dtype=bool), 128) > 0.6
        slow = np.outer(*[frequencies(512).omega < 2 * np.pi / 128] * 2)
        assert weight_if_moved(trained_head(512, 128, seed, step=0.1), slow, 128) < 0.75


def test_a_fast_hand_shows_no_new_phase_beyond_twelve_degrees():
    """Catches a fast hand of the page that meets phases after 128 tokens which it had not met."""
    omega = frequencies(512).omega
    fast = omega[omega >= 2 * np.pi / 128]
    seen, new = (np.exp(1j * np.outer(fast, start + np.arange(128))) for start in (0, 128))
    apart = abs(new[:, :, None] - seen[:, None, :]).min(axis=2).max()  # chords
    assert len(fast) == 84
    assert 11 < np.degrees(2 * np.arcsin(apart / 2)) < 12
