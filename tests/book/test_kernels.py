"""What the chapter on kernels counts and derives, held to counting by other means."""

import json

import mpmath
import numpy as np
import pytest
import torch
from reading import BOOK, Page

from posenc import Frequencies, apply_rope, rope_tables

CHAPTER = Page(BOOK / "6-machines" / "kernels.ipynb")
PAIRINGS = pytest.mark.parametrize("interleaved", (True, False))


@pytest.fixture(autouse=True)
def where_the_chapter_runs(monkeypatch):
    monkeypatch.chdir(CHAPTER.path.parent)


def cells(*words):
    """Run the chapter's first cell, and those that hold one of the words, in order."""
    space = {"display": print}
    first, *others = (cell.source for cell in CHAPTER.code)
    for source in (first, *(s for s in others if any(word in s for word in words))):
        exec(source, space)
    return space


class Counted(float):
    """A number that counts what is done with it."""

    flops = 0

    def _done(self, value):
        Counted.flops += 1
        return Counted(value)

    def __add__(self, other):
        return self._done(float(self) + float(other))

    def __sub__(self, other):
        return self._done(float(self) - float(other))

    def __mul__(self, other):
        return self._done(float(self) * float(other))


@pytest.mark.equation("eq-intensity")
@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
@pytest.mark.parametrize("n", (1, 5, 160))
def test_flops_and_bytes_of_a_rotation_are_counted_one_by_one(dtype, n):
    """Catches a wrong intensity: each operation is counted, and the arrays say their size."""
    space = cells("def turned", "def intensity")
    x, (c, s) = np.ones((n, 2), dtype), np.ones((2, 1), np.float32)
    Counted.flops = 0
    for a, b in x:
        space["turned"](*map(Counted, (a, b, c[0], s[0])))
    moved = 2 * x.nbytes + c.nbytes + s.nbytes
    assert space["intensity"](x.itemsize, n) == pytest.approx(Counted.flops / moved, rel=1e-12)


@pytest.mark.equation("eq-roofline")
@pytest.mark.parametrize(("moved", "flops"), ((1e9, 1e9), (1e9, 15e9), (1e9, 1e12), (1e9, 0)))
def test_no_schedule_is_faster_than_the_roofline_and_a_pipeline_comes_near(moved, flops):
    """Catches a sum, or the wrong one of the two, in place of the maximum."""
    bandwidth, peak = 4e12, 60e12
    bound = cells("def intensity", "def least")["least"](moved, flops, bandwidth, peak)
    for parts in (1, 2, 100, 10000):
        load, work = moved / bandwidth / parts, flops / peak / parts
        loaded = done = 0.0
        for _ in range(parts):  # a part is worked on while the next one is loaded
            loaded += load
            done = max(done, loaded) + work
        assert done >= bound * (1 - 1e-9)
    assert done < 1.001 * bound


@pytest.mark.equation("eq-rope-backward")
@PAIRINGS
@pytest.mark.parametrize("position", (0, 5, -7, 2**40 + 3))
def test_the_gradient_is_the_rotation_by_minus_the_angle(interleaved, position):
    """Catches a backward pass that rotates forwards, or by the angles of other pairs."""
    rng = np.random.default_rng(67)
    omega = rng.uniform(0.01, 3, size=4)
    x, g = torch.tensor(rng.normal(size=(2, 1, 8)))
    tables = rope_tables(torch.tensor([position]), Frequencies(omega), dtype=torch.float64)
    y = apply_rope(x.requires_grad_(), *tables, interleaved=interleaved)
    (gradient,) = torch.autograd.grad(y, x, g)
    right = np.empty(8)
    for i, w in enumerate(omega):
        one, two = (2 * i, 2 * i + 1) if interleaved else (i, i + 4)
        with mpmath.workdps(60):
            turn = complex(mpmath.expj(-mpmath.mpf(float(w)) * position))
        z = complex(g[0, one], g[0, two]) * turn
        right[one], right[two] = z.real, z.imag
    assert abs(gradient[0].numpy() - right).max() < 1e-14
    back = apply_rope(g, *tables, interleaved=interleaved, inverse=True)
    assert torch.allclose(back, gradient, rtol=0, atol=1e-15)


MACHINE = ("path = Path", "class Tile", "class Pointer", "def live", "def store", "def grid")


@PAIRINGS
@pytest.mark.parametrize("inverse", (False, True))
@pytest.mark.parametrize("dtype", (np.float16, np.float32))
@pytest.mark.parametrize(("width", "tokens", "heads", "T"), ((12, 8, 2, 21), (8, 16, 4, 33)))
@pytest.mark.parametrize("in_place", (False, True))
def test_the_kernels_own_text_turns_every_vector_once(
    interleaved, inverse, dtype, width, tokens, heads, T, in_place
):
    """Catches an emulation, or a kernel, that misses a tile, a tail or a sign."""
    space = cells(*MACHINE)
    rng = np.random.default_rng(3)
    q, k = (rng.normal(size=(2, h, T, 12)).astype(dtype) for h in (5, 3))
    cos, sin = rope_tables(range(T), Frequencies(rng.uniform(0.01, 3, size=width // 2)))
    right = [
        apply_rope(x.astype(float), *(t.astype(float) for t in (cos, sin)),
                   interleaved=interleaved, inverse=inverse)
        for x in (q, k)
    ]  # fmt: skip
    outs = (q, k) if in_place else (np.empty_like(q), np.empty_like(k))
    space["bytes_of"].clear()
    programs, run = space["grid"](
        q, k, outs, cos, sin, tokens=tokens, heads=heads, INTERLEAVED=interleaved, INVERSE=inverse
    )
    for program in reversed(programs):  # in any order
        run(program)
    for found, each in zip(outs, right, strict=True):
        assert abs(found - each).max() < (2e-3 if dtype is np.float16 else 1e-6)
    moved = space["bytes_of"]
    if not in_place:
        assert (moved["q"], moved["q out"]) == (q.nbytes, q.nbytes)
        assert (moved["k"], moved["k out"]) == (k.nbytes, k.nbytes)
    assert moved["cos"] == moved["sin"] >= cos.nbytes


def test_bytes_of_eager_operations_are_counted():
    """Catches a counter that charges for views or allocations, or forgets what is read."""
    space = cells("class Traffic", "def usual", "def counted")
    x, y = torch.ones(4, 8), torch.ones(4, 8)
    n = x.numel() * 4
    for way, moved in (
        (lambda: torch.empty_like(x), []),
        (lambda: x.view(8, 4).T[1:], []),
        (lambda: y.copy_(x), [2 * n]),
        (lambda: x + y, [3 * n]),
        (lambda: x.neg(), [2 * n]),
        (lambda: torch.mul(x, x, out=y), [3 * n]),
        (lambda: y.add_(x), [3 * n]),
        (lambda: torch.cat((x, y)), [4 * n]),
        (lambda: x * torch.ones(1), [4, 2 * n + 4]),
    ):
        assert [each for _, each in space["counted"](way)] == moved


def test_a_gpus_table_appears_with_its_file(tmp_path):
    """Catches a chapter that goes on saying `not measured` when it was."""
    space = cells("def table(", "def brief", "def gpu(")
    assert space["gpu"](tmp_path) == ["GPU: not measured yet"]
    record = {
        "date": "2026-12-01",
        "device": "A Device",
        "versions": {"torch": "2.13.0"},
        "unit": {"ratio": "time of copy_"},
        "rows": {"forward half": {"copy": {"ratio": 1.0}, "posenc": {"ratio": 1.031}}},
    }
    (tmp_path / "gpu-a-device.json").write_text(json.dumps(record))
    (part,) = space["gpu"](tmp_path)
    for word in ("A Device", "2026-12-01", "forward half", "posenc", "1.03"):
        assert word in part.data


def test_a_bound_that_does_not_hold_is_said_to_fail():
    """Catches a table of bounds that says `holds` whatever was measured."""
    before = ("def turned", "class Traffic", "def usual", "def counted", "def stacked", "cpu = {")
    space = cells(*before, "path = Path", "def brief", "def constant")
    verdicts = [row[-1] for row in space["verdicts"]]
    assert set(verdicts) == {"holds"}
    space["cpu"]["CPU, cold"].rows["decode float32 half"]["posenc"] *= 10
    (cell,) = (c.source for c in CHAPTER.code if "def constant" in c.source)
    exec(cell, space)
    changed = [row for row in space["verdicts"] if row[-1] == "fails"]
    assert [row[0] for row in changed] == ["decode f32 half, posenc"]
