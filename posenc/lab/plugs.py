"""The encodings of the book as plugs of the decoder: each calls `posenc`, none computes a wave.

An encoding enters a decoder in one of three ways: added to the embeddings, as a turn of queries
and keys, or as a bias on the scores.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from posenc import context
from posenc._door import choice
from posenc._frequencies import Frequencies
from posenc.modules import ALiBi, LearnedEncoding, SinusoidalEncoding
from posenc.rotary import apply_rope_qk, rope_tables
from posenc.spectrum import frequencies

__all__ = ["ENCODINGS", "RULES", "Encoding", "encoding", "rescaled"]

ENCODINGS = ("none", "index", "normalised", "sinusoidal", "learned", "alibi", "rope")
RULES = ("plain", "linear", "ntk", "yarn")


class Encoding(nn.Module):
    """No position at all; each encoding overrides one of the three ways in."""

    def embed(self, x: Tensor, positions: range) -> Tensor:
        """Add to the embeddings, [B, T, d]."""
        return x

    def tables(self, positions: range, x: Tensor) -> Any:
        """Make what `rotate` needs, once for all layers."""
        return None

    def rotate(self, q: Tensor, k: Tensor, tables: Any) -> tuple[Tensor, Tensor]:
        """Turn queries and keys, [B, H, T, d_k]."""
        return q, k

    def bias(self, queries: range, keys: range, device: torch.device) -> Tensor | None:
        """Return what is added to the scores, [H, Tq, Tk]."""
        return None

    def draw(self, generator: torch.Generator) -> None:
        """Draw what is learned."""


class Index(Encoding):
    """The position itself, times one learned direction: counting badly, kept for comparison."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.empty(dim))

    def draw(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.direction, generator=generator)

    def embed(self, x: Tensor, positions: range) -> Tensor:
        steps = torch.arange(positions.start, positions.stop, dtype=x.dtype, device=x.device)
        return x + self.scaled(steps)[:, None] * self.direction

    def scaled(self, steps: Tensor) -> Tensor:
        """Return what stands for the position: here itself."""
        return steps


class Normalised(Index):
    """The position divided by the last one: from 0 to 1 at every length."""

    def scaled(self, steps: Tensor) -> Tensor:
        return steps / steps[-1].clamp(min=1)


class Sinusoidal(Encoding):
    """Waves, added to the embeddings."""

    def __init__(self, dim: int, base: float) -> None:
        super().__init__()
        self.waves = SinusoidalEncoding(dim, base=base)

    def embed(self, x: Tensor, positions: range) -> Tensor:
        added: Tensor = self.waves(x, positions.start)
        return added


class Learned(Encoding):
    """A row for each position, drawn as large as the embeddings and added to them."""

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        self.table = LearnedEncoding(rows, dim)

    def draw(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.table.weight, generator=generator)

    def embed(self, x: Tensor, positions: range) -> Tensor:
        rows: Tensor = self.table(positions)
        return x + rows  # [B, T, d] + [T, d]


class Slopes(Encoding):
    """ALiBi, a bias on the scores."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.alibi = ALiBi(n_heads)

    def bias(self, queries: range, keys: range, device: torch.device) -> Tensor:
        q, k = (torch.arange(each.start, each.stop, device=device) for each in (queries, keys))
        bias: Tensor = self.alibi(q, k)
        return bias


class Rotary(Encoding):
    """RoPE: give it other ``frequencies`` to rescale a model after its training."""

    def __init__(self, head_dim: int, base: float) -> None:
        super().__init__()
        self.frequencies: Frequencies = frequencies(head_dim, base)

    def tables(self, positions: range, x: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = rope_tables(positions, self.frequencies, dtype=x.dtype, device=x.device)
        return cos, sin

    def rotate(self, q: Tensor, k: Tensor, tables: Any) -> tuple[Tensor, Tensor]:
        return apply_rope_qk(q, k, *tables, interleaved=False)


def encoding(name: str, *, dim: int, n_heads: int, rows: int, base: float = 10000.0) -> Encoding:
    """Return an encoding by its name, to be drawn.

    Parameters
    ----------
    name : str
        One of `ENCODINGS`.
    dim, n_heads : int
        Channels d and heads of the decoder.
    rows : int
        Rows of a learned table, which refuses a longer text.
    base : float
        Of the waves and of RoPE.

    Raises
    ------
    ValueError
        If the name is another.
    """
    choice("encoding", name, ENCODINGS)
    made: dict[str, Any] = {
        "none": Encoding,
        "index": lambda: Index(dim),
        "normalised": lambda: Normalised(dim),
        "sinusoidal": lambda: Sinusoidal(dim, base),
        "learned": lambda: Learned(rows, dim),
        "alibi": lambda: Slopes(n_heads),
        "rope": lambda: Rotary(dim // n_heads, base),
    }
    plug: Encoding = made[name]()
    return plug


def rescaled(
    rule: str, head_dim: int, *, factor: float, trained: int, beta: float = 4.0
) -> Frequencies:
    """Return RoPE's frequencies of base 10000, re-geared for texts ``factor`` times as long.

    Parameters
    ----------
    rule : {"plain", "linear", "ntk", "yarn"}
        ``linear`` divides all frequencies by the factor (position interpolation). ``ntk`` raises
        the base so that the slowest hand alone is divided by it. ``yarn``, as its paper prints it,
        leaves hands alone that make ``beta`` turns in the trained length, divides those that make
        less than one, and blends between; it also has an attention factor.
    head_dim : int
        Channels of a head.
    factor : float
        At least 1; at 1 every rule leaves the frequencies as they are.
    trained : int
        Trained length L, in tokens.
    beta : float
        Turns from which ``yarn`` leaves a hand alone, at least 1. The usual 32 presumes a trained
        length of 202 tokens or more, in which the fastest hand makes 32 turns.

    Returns
    -------
    Frequencies

    Raises
    ------
    TypeError, ValueError
        If the rule is another, or `posenc.context` refuses its parameters.

    Notes
    -----
    Sources: Chen et al. (2023) for ``linear``; Peng et al. (2024), sections 3.1 to 3.4, for ``ntk``
    and ``yarn``.
    """
    choice("rule", rule, RULES)
    how = {"base": 10000.0, "factor": factor}
    if rule == "linear":
        return context.linear(head_dim, **how)
    if rule == "ntk":
        return context.ntk(head_dim, **how)
    if rule == "yarn":
        return context.yarn_paper(
            head_dim, **how, original_max_position_embeddings=trained, beta_fast=beta
        )
    return frequencies(head_dim)
