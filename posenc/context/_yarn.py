"""YaRN as it is deployed, and as its paper prints it."""

from __future__ import annotations

from typing import Any

from posenc._door import flag, positive_float, real_number, whole_number
from posenc._frequencies import Frequencies
from posenc.context._numbers import (
    MP,
    band,
    blended,
    log,
    slowed_by_turns,
    spectrum,
    stretch,
    turns,
)


def yarn(
    dim: int,
    *,
    base: float,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
    attention_factor: float | None = None,
    truncate: bool = True,
) -> Frequencies:
    """YaRN as deployed: fast hands kept, slow hands slowed down, a ramp over the pairs between.

    Parameters
    ----------
    dim : int
        Rotated channels d, even.
    base : float
        Base b of the unscaled frequencies (``rope_theta``), greater than 1.
    factor : float
        Factor s >= 1.
    original_max_position_embeddings : int
        Length L0 of the training, in tokens.
    beta_fast, beta_slow : float, default 32.0 and 1.0
        Turns within L0. The ramp begins at the pair that makes ``beta_fast`` of them and ends at
        the pair that makes ``beta_slow``.
    mscale, mscale_all_dim : float, optional
        Coefficients of DeepSeek's models, see below. None and 0 are the same.
    attention_factor : float, optional
        If given, this number as it is.
    truncate : bool, default True
        Whether the ramp begins and ends at whole pairs: rounded down, and up.

    Returns
    -------
    Frequencies
        [d/2] frequencies in radians per token, with the attention factor.

    Raises
    ------
    TypeError
        If ``dim`` or the length is not an integer, ``truncate`` not a bool, or another parameter
        not a real number.
    ValueError
        If ``dim`` is odd or less than 2, ``base`` not greater than 1, ``factor`` or the length
        less than 1, a beta not positive, ``beta_slow`` greater than ``beta_fast``, a coefficient
        negative, ``attention_factor`` not positive, or one of them is not finite.

    See Also
    --------
    yarn_paper : the ramp that the paper prints.

    Notes
    -----
    Equations ``eq-yarn`` (with ``eq-yarn-ramp``), ``eq-rescaling`` and ``eq-yarn-temperature`` of
    the book.
    The pair that makes n turns has the index c(n) = d ln(L0 / (2 pi n)) / (2 ln b), a real number.
    From low = max(c(beta_fast), 0) to high = min(c(beta_slow), d - 1) a pair's share of the factor
    rises from 0 to 1, linearly in the index. The bound is d - 1, as deployed, although the last
    pair is d/2 - 1. Where low passes high, transformers turns the ramp round; here the bounds are
    left as they are: no pair makes ``beta_slow`` turns and all are slowed down, or all pairs make
    ``beta_fast`` and none is.

    The attention factor is g(s, 1) with g(s, m) = 0.1 m ln s + 1; with both coefficients it is
    g(s, mscale) / g(s, mscale_all_dim). This is the reading of transformers; with ``mscale`` alone
    DeepSeek's own code takes g(s, mscale). That some models also multiply the softmax scale by
    g(s, mscale_all_dim)**2 is not part of the frequencies.
    Source: Peng et al. (2024), and its authors' code. Elsewhere: ``rope_type: "yarn"``
    (transformers); llama.cpp's and vLLM's ``attn_factor`` multiplies 0.1 ln s + 1.

    Examples
    --------
    >>> from posenc import context
    >>> context.yarn(128, base=10000.0, factor=16.0, original_max_position_embeddings=4096)
    <Frequencies: 64 pairs, 1 ... 7.217e-06 radians per token, attention_factor=1.2772588722239782>
    """
    omega = spectrum(dim, base)
    s = stretch(factor)
    name = "original_max_position_embeddings"
    length = whole_number(name, original_max_position_embeddings, at_least=1)
    few, many = band("beta_slow", beta_slow, "beta_fast", beta_fast)
    low, high = (
        len(omega) * log(turns(length, 1) / n) / log(MP.mpf(float(base))) for n in (many, few)
    )
    if flag("truncate", truncate):
        low, high = MP.floor(low), MP.ceil(high)
    slowed = _slowed_by_index(low, high, len(omega))
    numerator, denominator = (
        _coefficient(name, value)
        for name, value in (("mscale", mscale), ("mscale_all_dim", mscale_all_dim))
    )
    if attention_factor is not None:
        scale = positive_float("attention_factor", attention_factor)
    elif numerator and denominator:
        scale = float(_temperature(s, numerator) / _temperature(s, denominator))
    else:
        scale = float(_temperature(s))
    return blended(omega, slowed, s, attention_factor=scale)


def yarn_paper(
    dim: int,
    *,
    base: float,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> Frequencies:
    """YaRN as its paper prints it: a ramp over turns, where `yarn` has one over pairs.

    Parameters
    ----------
    dim : int
        Rotated channels d, even.
    base : float
        Base b of the unscaled frequencies, greater than 1.
    factor : float
        Factor s >= 1.
    original_max_position_embeddings : int
        Length L of the training, in tokens.
    beta_fast, beta_slow : float, default 32.0 and 1.0
        Turns within L: the paper's beta, from which on a hand keeps its speed, and its alpha,
        below which it is slowed down by s.

    Returns
    -------
    Frequencies
        [d/2] frequencies in radians per token, with the attention factor 0.1 ln s + 1.

    Raises
    ------
    TypeError
        If ``dim`` or the length is not an integer, or another parameter not a real number.
    ValueError
        If ``dim`` is odd or less than 2, ``base`` not greater than 1, ``factor`` or the length
        less than 1, a beta not positive, ``beta_slow`` greater than ``beta_fast``, or one of them
        is not finite.

    See Also
    --------
    yarn : what is deployed, up to 3.04 times as fast for Llama 2 at 16 times its length.
    llama3 : the same ramp.

    Notes
    -----
    Equation ``eq-yarn-paper`` of the book.
    A hand that makes r = L omega / 2 pi turns keeps (r - alpha) / (beta - alpha) of its speed,
    at most all and at least nothing, and the rest is divided by s.
    Source: Peng et al. (2024), section 3; its authors' own code computes `yarn`.

    Examples
    --------
    >>> from posenc import context
    >>> rule = {"base": 10000.0, "factor": 16.0, "original_max_position_embeddings": 4096}
    >>> paper, deployed = context.yarn_paper(128, **rule), context.yarn(128, **rule)
    >>> float((deployed.omega / paper.omega).max().round(2))
    3.04
    """
    omega = spectrum(dim, base)
    s = stretch(factor)
    name = "original_max_position_embeddings"
    length = whole_number(name, original_max_position_embeddings, at_least=1)
    few, many = band("beta_slow", beta_slow, "beta_fast", beta_fast)
    slowed = slowed_by_turns(omega, length, few, many)
    return blended(omega, slowed, s, attention_factor=float(_temperature(s)))


def _slowed_by_index(low: Any, high: Any, pairs: int) -> list[Any]:
    """Share of the factor that each pair takes: 0 up to pair low, 1 from pair high on."""
    last = MP.mpf(2 * pairs - 1)
    if high < 0:  # every pair lies behind the ramp
        return [1] * pairs
    if low > last:  # and here before it
        return [0] * pairs
    low, high = max(low, MP.zero), min(high, last)
    if low == high:
        high += MP.mpf(1) / 1000  # a step, as deployed
    return [min(max((i - low) / (high - low), 0), 1) for i in range(pairs)]


def _coefficient(name: str, value: object) -> float:
    """Take a coefficient that may be missing: None and 0 are the same."""
    if value is None or real_number(name, value) == 0:
        return 0.0
    return positive_float(name, value)


def _temperature(factor: float, coefficient: float = 1.0) -> Any:
    """Return g(s, m) = 0.1 m ln s + 1."""
    return coefficient * log(MP.mpf(factor)) / 10 + 1
