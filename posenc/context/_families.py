"""Rules that came with one family of models: Phi's lists, Llama's bands, Gemma's zeros."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from posenc._door import is_tensor, kind, positive_float, unmasked, whole_number
from posenc._frequencies import Frequencies
from posenc.context._numbers import (
    MP,
    band,
    blended,
    log,
    slowed_by_turns,
    spectrum,
    stretch,
)


def longrope(
    dim: int,
    *,
    base: float,
    short_factor: Sequence[float],
    long_factor: Sequence[float],
    original_max_position_embeddings: int,
    seq_len: int,
    factor: float | None = None,
    attention_factor: float | None = None,
) -> Frequencies:
    """LongRoPE: a factor of its own for each pair, from one of two lists.

    Parameters
    ----------
    dim : int
        Rotated channels d, even.
    base : float
        Base b of the unscaled frequencies (``rope_theta``), greater than 1.
    short_factor, long_factor : sequence of float, length d/2
        What divides each frequency, in texts of at most and of more than L0 tokens. Positive;
        published lists hold values below 1 too.
    original_max_position_embeddings : int
        Length L0 of the training, in tokens, at least 2.
    seq_len : int
        Length of the whole text, in tokens: one more than the largest position. One list serves
        all its positions.
    factor : float, optional
        Factor s >= 1 that gives the attention factor sqrt(1 + ln s / ln L0). It does not change
        the frequencies.
    attention_factor : float, optional
        If given, this number as it is. One of the two must be given.

    Returns
    -------
    Frequencies
        [d/2] frequencies in radians per token, with the attention factor.

    Raises
    ------
    TypeError
        If ``dim`` or a length is not an integer, a list not a list of real numbers, or another
        parameter not a real number.
    ValueError
        If ``dim`` is odd or less than 2, ``base`` not greater than 1, a list not of length d/2, a
        number not positive and finite, ``factor`` or a length too small, or both factors missing.

    Notes
    -----
    Equation ``eq-longrope`` of the book.
    The attention factor is the same for both lists, as in transformers; Phi-3-small and vLLM know
    one for each (``short_mscale``, ``long_mscale``): give the one that applies. Keys that were
    rotated with the short list do not fit the long one: choose by the length of the whole text.
    The ratio of the lengths, which takes the place of a missing ``factor`` in configurations, is
    for the caller to form. Source: Ding et al. (2024), and the code of Phi-3. Elsewhere:
    ``rope_type: "longrope"`` (transformers), ``su`` (its old name).

    Examples
    --------
    >>> from posenc import context
    >>> rule = {"base": 10000.0, "short_factor": [1.0, 1.0], "long_factor": [2.0, 32.0],
    ...         "original_max_position_embeddings": 4096, "factor": 32.0}
    >>> context.longrope(4, **rule, seq_len=4096).omega
    array([1.  , 0.01])
    >>> context.longrope(4, **rule, seq_len=4097)
    <Frequencies: 2 pairs, 0.5 ... 0.0003125 radians per token, attention_factor=1.1902380714238083>
    """
    omega = spectrum(dim, base)
    short = _divisors("short_factor", short_factor, len(omega))
    long = _divisors("long_factor", long_factor, len(omega))
    name = "original_max_position_embeddings"
    trained = whole_number(name, original_max_position_embeddings, at_least=2)
    divisors = long if whole_number("seq_len", seq_len, at_least=1) > trained else short
    s = None if factor is None else stretch(factor)
    if attention_factor is not None:
        scale = positive_float("attention_factor", attention_factor)
    elif s is not None:
        scale = float(MP.sqrt(1 + log(MP.mpf(s)) / log(MP.mpf(trained))))
    else:
        raise ValueError("factor or attention_factor must be given, got neither")
    scaled = [w / divisor for w, divisor in zip(omega, divisors, strict=True)]
    return Frequencies.exact(scaled, attention_factor=scale)


def llama3(
    dim: int,
    *,
    base: float,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: int,
) -> Frequencies:
    """Llama 3.1's rule: fast hands kept, slow hands slowed down, a ramp over turns between.

    Parameters
    ----------
    dim : int
        Rotated channels d, even.
    base : float
        Base b of the unscaled frequencies (``rope_theta``), greater than 1.
    factor : float
        Factor s >= 1.
    low_freq_factor, high_freq_factor : float
        Turns within L0: below the first a hand is slowed down by s, from the second on it keeps
        its speed. Equal, they leave no pairs between (Llama 4).
    original_max_position_embeddings : int
        Length L0 of the training, in tokens.

    Returns
    -------
    Frequencies
        [d/2] frequencies in radians per token.

    Raises
    ------
    TypeError
        If ``dim`` or the length is not an integer, or another parameter not a real number.
    ValueError
        If ``dim`` is odd or less than 2, ``base`` not greater than 1, ``factor`` or the length
        less than 1, ``low_freq_factor`` not positive or greater than ``high_freq_factor``, or one
        of them is not finite.

    See Also
    --------
    yarn_paper : the same ramp; it sets the attention factor too.

    Notes
    -----
    Equations ``eq-llama3`` and ``eq-rescaling`` of the book.
    A hand that makes r = L0 omega / 2 pi turns keeps (r - low) / (high - low) of its speed, at
    most all and at least nothing, and the rest is divided by s.
    Source: the reference code of Llama 3.1 (Llama team, 2024); its report prints no formula.
    Elsewhere: ``rope_type: "llama3"`` (transformers); llama.cpp stores the quotients of the
    frequencies as ``rope_freqs``.

    Examples
    --------
    >>> from posenc import context
    >>> rule = {"low_freq_factor": 1.0, "high_freq_factor": 4.0,
    ...         "original_max_position_embeddings": 64}
    >>> context.llama3(8, base=10000.0, factor=8.0, **rule).omega.round(6)
    array([1.0000e+00, 1.3042e-02, 1.2500e-03, 1.2500e-04])
    """
    omega = spectrum(dim, base)
    s = stretch(factor)
    few, many = band("low_freq_factor", low_freq_factor, "high_freq_factor", high_freq_factor)
    name = "original_max_position_embeddings"
    length = whole_number(name, original_max_position_embeddings, at_least=1)
    return blended(omega, slowed_by_turns(omega, length, few, many), s)


def proportional(
    head_dim: int, *, base: float, partial_rotary_factor: float, factor: float = 1.0
) -> Frequencies:
    """p-RoPE: the fastest pairs of the whole head keep turning, the others stand still.

    Parameters
    ----------
    head_dim : int
        Channels d of the head, even: all of them, not the rotated ones.
    base : float
        Base b of the frequencies (``rope_theta``), greater than 1.
    partial_rotary_factor : float
        Proportion p of the pairs that turn, at most 1.
    factor : float, default 1.0
        Factor s >= 1 by which those are slowed down.

    Returns
    -------
    Frequencies
        [d/2] frequencies in radians per token: ``b**(-2i/d) / s`` for i < n, then zeros, with n
        the whole number of pairs in p d channels.

    Raises
    ------
    TypeError
        If ``head_dim`` is not an integer, or another parameter not a real number.
    ValueError
        If ``head_dim`` is odd or less than 2, ``base`` not greater than 1, ``factor`` less than 1,
        ``partial_rotary_factor`` greater than 1 or too small for one pair, or one of them is not
        finite.

    Notes
    -----
    Equation ``eq-proportional`` of the book.
    Partial rotary embeddings are something else: there the exponent is divided by the rotated
    width p d, the pairs of the half-split pairing lie p d / 2 apart, and the other channels have
    no frequency. Here they lie d / 2 apart.
    A product p d that floating point leaves up to 1e-6 short of a whole number counts as that
    number; transformers cuts it off and may keep one pair less (d = 100, p = .58).
    Source: Barbero et al. (2025). Elsewhere: ``rope_type: "proportional"`` (transformers, Gemma
    4).

    Examples
    --------
    >>> from posenc import context
    >>> context.proportional(8, base=10000.0, partial_rotary_factor=0.5).omega
    array([1. , 0.1, 0. , 0. ])
    """
    omega = spectrum(head_dim, base, name="head_dim")
    proportion = positive_float("partial_rotary_factor", partial_rotary_factor)
    if proportion > 1:
        raise ValueError(f"partial_rotary_factor must be at most 1, got {partial_rotary_factor}")
    turning = int((Fraction(proportion) * 2 * len(omega) + Fraction(1, 10**6)) / 2)
    if not turning:
        raise ValueError(
            f"partial_rotary_factor must leave a pair of {2 * len(omega)} channels turning, "
            f"got {partial_rotary_factor}"
        )
    s = stretch(factor)
    still = [MP.zero] * (len(omega) - turning)
    return Frequencies.exact([*(w / s for w in omega[:turning]), *still])


def _divisors(name: str, values: Any, pairs: int) -> list[float]:
    """Take a list of one positive number for each pair."""
    unmasked(name, values)
    if is_tensor(values) or isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} must be a list of {pairs} numbers, got {kind(values)}")
    if len(values) != pairs:
        raise ValueError(f"{name} must hold {pairs} numbers, one for each pair, got {len(values)}")
    return [positive_float(f"{name}[{i}]", value) for i, value in enumerate(values)]
