"""Rules that stretch all hands alike, or the base."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from posenc._door import whole_number
from posenc._frequencies import Frequencies
from posenc.context._numbers import geometric, spectrum, stretch


def linear(dim: int, *, base: float, factor: float) -> Frequencies:
    """Position interpolation: every hand slowed down by the factor.

    Parameters
    ----------
    dim : int
        Rotated channels d, even.
    base : float
        Base b of the unscaled frequencies (``rope_theta``), greater than 1.
    factor : float
        Factor s >= 1 by which the texts are longer than those of the training.

    Returns
    -------
    Frequencies
        [d/2] values omega_i / s in radians per token: position s p has the phase that p had.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer, or another parameter not a real number.
    ValueError
        If ``dim`` is odd or less than 2, ``base`` not greater than 1 or ``factor`` less than 1, or
        one of them is not finite.

    See Also
    --------
    ntk : the fast hands keep their speed.

    Notes
    -----
    Equation ``eq-linear`` of the book. With ``factor=1`` it equals `posenc.frequencies`.
    Source: Chen et al. (2023), section 2. Elsewhere: ``rope_type: "linear"`` (transformers),
    ``interpolation_factor`` (x-transformers), ``interpolate_factor`` (rotary-embedding-torch),
    ``seq_len_interpolation_factor`` (TransformerEngine); llama.cpp's ``freq_scale`` and MLX's
    ``scale`` are 1/s.

    Examples
    --------
    >>> from posenc import context
    >>> context.linear(4, base=10000.0, factor=4.0).omega
    array([0.25  , 0.0025])
    """
    omega = spectrum(dim, base)
    s = stretch(factor)
    return Frequencies.exact([w / s for w in omega])


def ntk(dim: int, *, base: float, factor: float) -> Frequencies:
    """NTK-aware scaling: a larger base, so that the fastest hand keeps its speed.

    Parameters
    ----------
    dim : int
        Rotated channels d, even, at least 4.
    base : float
        Base b of the unscaled frequencies (``rope_theta``), greater than 1.
    factor : float
        Factor s >= 1.

    Returns
    -------
    Frequencies
        [d/2] frequencies of base ``b * s**(d/(d-2))`` in radians per token: the first is 1, the
        last is slowed down by s exactly.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer, or another parameter not a real number.
    ValueError
        If ``dim`` is odd or less than 4 (the exponent d/(d-2) has no value at 2), ``base`` not
        greater than 1 or ``factor`` less than 1, or one of them is not finite.

    See Also
    --------
    dynamic : the factor grows with the text.

    Notes
    -----
    Equation ``eq-ntk`` of the book. It is computed as omega_i s**(-2i/(d-2)), which is the same.
    With ``factor=1`` it equals `posenc.frequencies`. Source: bloc97 (2023), written down by Peng
    et al. (2024), equation 16. Elsewhere: ``alpha`` (Hunyuan; the YaRN repository),
    ``base_rescale_factor`` (x-transformers), ``theta_rescale_factor`` (rotary-embedding-torch).
    vLLM's ``mixed_b`` is another rule.

    Examples
    --------
    >>> from posenc import context
    >>> context.ntk(4, base=10000.0, factor=4.0).omega
    array([1.    , 0.0025])
    """
    omega = spectrum(dim, base, at_least=4)
    return _larger_base(omega, Fraction(stretch(factor)))


def dynamic(
    dim: int,
    *,
    base: float,
    factor: float,
    original_max_position_embeddings: int,
    seq_len: int,
) -> Frequencies:
    """Dynamic NTK scaling: the base grows with the text, once it is longer than those trained on.

    Parameters
    ----------
    dim : int
        Rotated channels d, even, at least 4.
    base : float
        Base b of the unscaled frequencies (``rope_theta``), greater than 1.
    factor : float
        Factor s >= 1: how fast the base grows.
    original_max_position_embeddings : int
        Length L0 of the training, in tokens.
    seq_len : int
        Length L of the whole text, in tokens: one more than the largest position. Below L0 it
        counts as L0.

    Returns
    -------
    Frequencies
        [d/2] frequencies of base ``b * (s L/L0 - (s-1))**(d/(d-2))`` in radians per token; up to
        L0 they are those of `posenc.frequencies`.

    Raises
    ------
    TypeError
        If ``dim`` or a length is not an integer, or another parameter not a real number.
    ValueError
        If ``dim`` is odd or less than 4, ``base`` not greater than 1, ``factor`` or a length less
        than 1, or one of them is not finite.

    Notes
    -----
    Equation ``eq-dynamic`` of the book.
    Keys that were rotated when the text was shorter belong to other frequencies: cache keys before
    their rotation, or keep ``seq_len`` for the whole text. Nothing is remembered between calls.
    Source: emozilla (2023). This is the reading of transformers (``rope_type: "dynamic"``, where
    L0 is ``max_position_embeddings``). Others differ: vLLM computes it once, with its largest
    length as L; the dynamic scaling of Peng et al. (2024) uses max(1, L/L0) in place of the
    factor, which is this function at ``factor=1``; Qwen rounds up to powers of two.

    Examples
    --------
    >>> from posenc import context
    >>> rule = {"base": 10000.0, "factor": 2.0, "original_max_position_embeddings": 2048}
    >>> context.dynamic(4, **rule, seq_len=2048).omega
    array([1.  , 0.01])
    >>> context.dynamic(4, **rule, seq_len=5120).omega
    array([1.    , 0.0025])
    """
    omega = spectrum(dim, base, at_least=4)
    s = Fraction(stretch(factor))
    name = "original_max_position_embeddings"
    trained = whole_number(name, original_max_position_embeddings, at_least=1)
    length = max(trained, whole_number("seq_len", seq_len, at_least=1))
    return _larger_base(omega, s * length / trained - (s - 1))


def _larger_base(omega: list[Any], factor: Fraction) -> Frequencies:
    """Frequencies of the base ``b * factor**(d/(d-2))``, as omega_i times factor**(-2i/(d-2))."""
    pairs = len(omega)
    h = geometric(pairs, factor, Fraction(1, pairs - 1))
    return Frequencies.exact([w * h_i for w, h_i in zip(omega, h, strict=True)])
