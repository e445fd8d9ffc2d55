"""Inputs, tables, and a float64 oracle for the tests of the kernel."""

import numpy as np
import pytest
import torch

from posenc import frequencies, rope_tables

PAIRINGS = pytest.mark.parametrize("interleaved", (False, True), ids=("half", "interleaved"))


def draw(*shape, dtype=torch.float32, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def tables(positions, width, dtype=torch.float32):
    """Tables with an attention factor that is no 1, so that a lost one is seen."""
    f = frequencies(width)
    f = type(f)(f.omega, attention_factor=1.25)
    dtype = dtype if dtype == torch.float64 else torch.float32
    return rope_tables(torch.as_tensor(positions), f, dtype=dtype)


def oracle(x, cos, sin, interleaved, inverse=False, axis=-2):
    """Pair by pair in float64, as complex numbers; tables [*batch, T, r/2] given by row."""
    x = x.detach().double().numpy()
    x = x if axis == -2 else x.swapaxes(-2, -3)
    turn = cos.double().numpy() + 1j * sin.double().numpy()
    turn = np.conj(turn) if inverse else turn
    half = turn.shape[-1]
    between = x.ndim - turn.ndim
    turn = turn.reshape(*turn.shape[:-2], *[1] * between, *turn.shape[-2:])
    y = x.copy()
    for i in range(half):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        z = (x[..., first] + 1j * x[..., second]) * turn[..., i]
        y[..., first], y[..., second] = z.real, z.imag
    return y if axis == -2 else y.swapaxes(-2, -3)


def close(found, right, x):
    """Float32 arithmetic and one rounding to the dtype of x; truncation, for bfloat16."""
    found = found.detach()
    assert found.dtype == x.dtype
    assert found.shape == right.shape
    error = np.abs(found.double().numpy() - right)
    wide = 4e-16 if x.dtype == torch.float64 else 2e-7
    size = float(x.detach().abs().max()) if x.numel() else 0.0
    bound = 2 * wide * size
    if x.dtype in (torch.bfloat16, torch.float16):
        info = torch.finfo(x.dtype)
        steps = np.maximum(2.0 ** np.floor(np.log2(np.abs(right) + 1e-300)), info.tiny) * info.eps
        bound = bound + steps * (1.0 if x.dtype == torch.bfloat16 else 0.5)
    assert (error <= bound).all(), (error - bound).max()
