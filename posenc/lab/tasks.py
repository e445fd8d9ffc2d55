"""Synthetic tasks: random symbols, and an answer that only positions can give."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc._door import whole_number

__all__ = ["UNSCORED", "half_back", "say_previous"]

UNSCORED = -100
"""Target of a place that is not scored, as torch's cross entropy has it."""


def say_previous(
    batch: int, length: int, generator: torch.Generator, *, symbols: int = 16
) -> tuple[Tensor, Tensor]:
    """Draw texts whose answer at each place is the symbol one place before.

    Parameters
    ----------
    batch, length : int
        Texts B and their tokens T, at least 2.
    generator : torch.Generator
        Of the CPU: the same texts on every device.
    symbols : int
        How many there are; a guess is right once in so many times.

    Returns
    -------
    x, y : int64 tensors, shape [B, T]
        Symbols and answers, on the CPU; the first place is `UNSCORED`.

    Raises
    ------
    TypeError, ValueError
        If a size is not an integer, or too small.
    """
    return _said(batch, whole_number("length", length, at_least=2), generator, symbols, 1)


def half_back(
    batch: int, length: int, generator: torch.Generator, *, symbols: int = 16
) -> tuple[Tensor, Tensor]:
    """Draw texts whose answer is the symbol half the text before; the first half is not scored.

    Parameters, returns and errors are those of `say_previous`.
    """
    length = whole_number("length", length, at_least=2)
    return _said(batch, length, generator, symbols, length // 2)


def _said(
    batch: int, length: int, generator: torch.Generator, symbols: int, back: int
) -> tuple[Tensor, Tensor]:
    size = (whole_number("batch", batch, at_least=1), length)
    x = torch.randint(whole_number("symbols", symbols, at_least=2), size, generator=generator)
    y = torch.full_like(x, UNSCORED)
    y[:, back:] = x[:, :-back]
    return x, y
