"""What pages without cells show holds too: the front page's listings, the API's signature."""

import inspect
import re

import mpmath
import numpy as np
import pytest
import torch
from reading import ROOT

from posenc import modules

LISTING = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FRONT = (ROOT / "book/index.md").read_text(encoding="utf-8")
API = (ROOT / "book/appendix/api.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def after_the_listings():
    """Return the names that the front page's listings define, run in order."""
    names = {}
    for listing in LISTING.findall(FRONT):
        exec(compile(listing, "book/index.md", "exec"), names)
    return names


def test_the_front_page_gets_a_table_right_at_a_large_position(after_the_listings):
    """Catches a listing that no longer runs, or whose rows are those of other positions."""
    table = after_the_listings["table"]
    assert (table.shape, table.dtype) == ((4096, 512), np.float32)
    with mpmath.workprec(200):
        for row, pair in [(0, 0), (1, 0), (4095, 17), (2048, 255)]:
            angle = (10**9 + row) * mpmath.power(10000, -mpmath.mpf(2 * pair) / 512)
            for column, exact in enumerate([mpmath.sin(angle), mpmath.cos(angle)]):
                assert abs(table[row, 2 * pair + column] - exact) <= 2**-24


def test_the_front_page_gets_rows_of_any_shape_from_torch(after_the_listings):
    """Catches a torch listing whose rows differ from the table of the first one."""
    rows, table = after_the_listings["rows"], after_the_listings["table"]
    assert (rows.shape, rows.dtype) == ((2, 2, 512), torch.bfloat16)
    assert torch.equal(rows[0], torch.from_numpy(table[:2]).bfloat16())


def test_the_front_page_turns_queries_and_keys(after_the_listings):
    """Catches a rotary listing that no longer runs, or turns by other angles than its positions."""
    names = after_the_listings
    for before, after in (("q", "q_turned"), ("k", "k_turned")):
        x, y = names[before].double(), names[after].double()
        for row, column, pair in [(0, 0, 0), (0, 1, 33), (1, 0, 63), (1, 1, 5)]:
            position = int(names["positions"][row, column])
            with mpmath.workprec(200):
                angle = position * mpmath.power(500000, -mpmath.mpf(2 * pair) / 128)
                turn = complex(mpmath.expj(angle))
            a, b = x[row, :, column, pair], x[row, :, column, pair + 64]
            turned = torch.complex(a, b) * turn
            assert torch.allclose(turned.real, y[row, :, column, pair], rtol=0, atol=2e-6)
            assert torch.allclose(turned.imag, y[row, :, column, pair + 64], rtol=0, atol=2e-6)


def test_float32_merges_the_positions_that_the_front_page_names():
    """Catches a wrong example of why positions are integers."""
    assert np.float32(10**9) == np.float32(10**9 + 32) != np.float32(10**9 + 33)


def test_a_signature_written_by_hand_is_the_codes():
    """Catches the one signature that the API page states itself, since the build mocks torch."""
    (written,) = re.findall(r"autoclass:: SinusoidalEncoding\((.*)\)", API)
    real = inspect.signature(modules.SinusoidalEncoding)
    bare = real.replace(
        parameters=[p.replace(annotation=p.empty) for p in real.parameters.values()],
        return_annotation=real.empty,
    )
    assert f"({written})".replace('"', "'") == str(bare)
