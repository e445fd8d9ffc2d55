"""The rules for longer texts, pair by pair as each is published: mpmath numbers of 80 digits.

Made without posenc, and each along another way than posenc goes: a new base where posenc scales
frequencies, wavelengths where it counts turns, branches where it blends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
from oracle import DIGITS, paper_omega

mpf = mpmath.mpf


def linear(dim: int, *, base: float, factor: float) -> list[Any]:
    """Positions divided by the factor."""
    with mpmath.workdps(DIGITS):
        return [w / mpf(factor) for w in paper_omega(dim, base)]


def of_another_base(dim: int, base: float, stretch: Any) -> list[Any]:
    """Powers of b' = b * stretch**(d/(d-2))."""
    new = mpf(base) * stretch ** (mpf(dim) / (dim - 2))
    return [new ** (-mpf(2 * i) / dim) for i in range(dim // 2)]


def ntk(dim: int, *, base: float, factor: float) -> list[Any]:
    """A larger base."""
    with mpmath.workdps(DIGITS):
        return of_another_base(dim, base, mpf(factor))


def dynamic(
    dim: int, *, base: float, factor: float, original_max_position_embeddings: int, seq_len: int
) -> list[Any]:
    """A base that grows with the text."""
    if seq_len <= original_max_position_embeddings:
        return paper_omega(dim, base)
    with mpmath.workdps(DIGITS):
        s, ratio = mpf(factor), mpf(seq_len) / original_max_position_embeddings
        return of_another_base(dim, base, s * ratio - (s - 1))


def yarn_range(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[Any, Any]:
    """Where the ramp begins and ends, before any clamp: `find_correction_dim` of the authors."""
    with mpmath.workdps(DIGITS):
        low, high = (
            dim * mpmath.log(length / (mpf(n) * 2 * mpmath.pi)) / (2 * mpmath.log(base))
            for n in (fast, slow)
        )
        return (mpmath.floor(low), mpmath.ceil(high)) if truncate else (low, high)


def yarn(
    dim: int,
    *,
    base: float,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
    **_: Any,
) -> list[Any]:
    """Interpolated and extrapolated frequencies, mixed by a ramp over the index."""
    fixed = (original_max_position_embeddings, beta_fast, beta_slow, truncate)
    low, high = yarn_range(dim, base, *fixed)
    with mpmath.workdps(DIGITS):
        if high >= 0 and low <= dim - 1:
            low, high = max(low, mpf(0)), min(high, mpf(dim - 1))
        if low == high:
            high = low + mpf("0.001")
        result = []
        for i, w in enumerate(paper_omega(dim, base)):
            if i <= low:
                result.append(w)
            elif i >= high:
                result.append(w / mpf(factor))
            else:
                ramp = (i - low) / (high - low)
                result.append(w / mpf(factor) * ramp + w * (1 - ramp))
        return result


def yarn_paper(
    dim: int,
    *,
    base: float,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> list[Any]:
    """Gamma of the paper, linear in r = L / lambda."""
    alpha, beta = mpf(beta_slow), mpf(beta_fast)
    with mpmath.workdps(DIGITS):
        result = []
        for w in paper_omega(dim, base):
            r = original_max_position_embeddings / (2 * mpmath.pi / w)
            if r < alpha:
                gamma = mpf(0)
            elif r > beta:
                gamma = mpf(1)
            else:
                gamma = (r - alpha) / (beta - alpha)
            result.append((1 - gamma) * w / mpf(factor) + gamma * w)
        return result


def longrope(
    dim: int,
    *,
    base: float,
    short_factor: Sequence[float],
    long_factor: Sequence[float],
    original_max_position_embeddings: int,
    seq_len: int,
    **_: Any,
) -> list[Any]:
    """1 / (lambda_i * b**(2i/d)), of the list that the length of the text selects."""
    chosen = long_factor if seq_len > original_max_position_embeddings else short_factor
    with mpmath.workdps(DIGITS):
        return [1 / (mpf(float(e)) * mpf(base) ** (mpf(2 * i) / dim)) for i, e in enumerate(chosen)]


def llama3(
    dim: int,
    *,
    base: float,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: int,
) -> list[Any]:
    """`apply_scaling` of Llama 3.1, by wavelengths."""
    with mpmath.workdps(DIGITS):
        longest = original_max_position_embeddings / mpf(low_freq_factor)
        shortest = original_max_position_embeddings / mpf(high_freq_factor)
        result = []
        for w in paper_omega(dim, base):
            wavelength = 2 * mpmath.pi / w
            if wavelength < shortest:
                result.append(w)
            elif wavelength > longest:
                result.append(w / mpf(factor))
            else:
                smooth = original_max_position_embeddings / wavelength - mpf(low_freq_factor)
                smooth /= mpf(high_freq_factor) - mpf(low_freq_factor)
                result.append((1 - smooth) * w / mpf(factor) + smooth * w)
        return result


def proportional(
    head_dim: int, *, base: float, partial_rotary_factor: float, factor: float = 1.0
) -> list[Any]:
    """The first pairs of the whole head, then zeros."""
    turning = int((head_dim * partial_rotary_factor + 1e-6) // 2)
    with mpmath.workdps(DIGITS):
        kept = [w / mpf(factor) for w in paper_omega(head_dim, base)[:turning]]
        return kept + [mpf(0)] * (head_dim // 2 - turning)


def temperature(factor: float, coefficient: float = 1.0) -> Any:
    """YaRN's g(s, m) = 0.1 m ln s + 1, which DeepSeek calls mscale."""
    with mpmath.workdps(DIGITS):
        return mpf("0.1") * mpf(coefficient) * mpmath.log(factor) + 1
