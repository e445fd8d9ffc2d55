"""Tables made on a CUDA device are those made on the CPU."""

import numpy as np
import pytest
import torch

from posenc import frequencies, phases, shift, sinusoidal_encoding
from posenc.modules import SinusoidalEncoding

EDGES = [0, 1, -1, 2**24 + 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]


@pytest.mark.equation("eq-turns")
def test_float64_phases_keep_their_bound():
    """Catches 64-bit integer arithmetic that does not wrap on the device."""
    right = phases(torch.tensor(EDGES), frequencies(512), dtype=torch.float64)
    found = phases(torch.tensor(EDGES, device="cuda"), frequencies(512), dtype=torch.float64)
    for there, here in zip(found, right, strict=True):
        assert there.device.type == "cuda"
        assert (there.cpu() - here).abs().max() <= 4.5e-16


@pytest.mark.equation("eq-coarse-fine")
@pytest.mark.parametrize("start", (0, 2**40 + 7))
def test_float32_tables_are_the_same_bits(start):
    """Catches another formula on the device: at most one entry in 10**7 may differ."""
    span = range(start, start + 65536)
    here = sinusoidal_encoding(span, 512, device="cpu")
    there = sinusoidal_encoding(span, 512, device="cuda")
    assert int((there.cpu() != here).sum()) <= 3  # of 33.5 million


def test_modules_and_shifts_stay_on_the_device():
    """Catches a table left on the CPU."""
    x = torch.zeros(2, 100, 64, device="cuda", dtype=torch.bfloat16)
    out = SinusoidalEncoding(64).cuda()(x, offset=9)
    right = SinusoidalEncoding(64)(x.cpu(), offset=9)
    assert torch.equal(out.cpu(), right)
    rows = sinusoidal_encoding(torch.arange(100, device="cuda"), 64)
    moved = shift(rows, 5).cpu().numpy()
    assert np.abs(moved - sinusoidal_encoding(range(5, 105), 64)).max() < 3e-7
