"""Rotary position embedding as a module: it turns queries and keys."""

from __future__ import annotations

from typing import Any

import torch

from posenc._backend import common_place
from posenc._frequencies import Frequencies
from posenc._rotation import check_words
from posenc.rotary import PositionAxis, apply_rope_qk, rope_tables


class RotaryEmbedding(torch.nn.Module):
    """Turn queries and keys by the phases of their positions.

    Parameters
    ----------
    frequencies : Frequencies
        The r/2 frequencies in radians per token, and the attention factor: such as
        `posenc.frequencies` gives for r = head_dim, or for fewer channels (partial rotary).
    interleaved : bool
        True: pairs (2i, 2i + 1). False: pairs (i, i + r/2).
    position_axis : {-2, -3}
        As in `posenc.apply_rope`.

    Raises
    ------
    TypeError, ValueError
        If ``frequencies`` are no `posenc.Frequencies`, the pairing is not said, or the axis is
        none of the two.

    Notes
    -----
    Equations ``eq-rope`` and ``eq-rope-relative`` of the book.
    No buffer and no parameter: the state_dict is empty, an ``inv_freq`` or ``cos_cached`` of an
    older checkpoint is passed over, there is no maximal length, and ``.half()``,
    ``.to(torch.bfloat16)`` or a construction on the meta device leave the angles as they are.
    Each call makes its tables: a model of many layers makes them once with `posenc.rope_tables`
    and hands them to `posenc.apply_rope_qk`.

    Examples
    --------
    >>> import torch
    >>> from posenc import frequencies
    >>> from posenc.modules import RotaryEmbedding
    >>> rope = RotaryEmbedding(frequencies(64), interleaved=False)
    >>> q, k = torch.randn(2, 8, 5, 64), torch.randn(2, 2, 5, 64)
    >>> [x.shape[1] for x in rope(q, k, torch.arange(5))]
    [8, 2]
    """

    def __init__(
        self, frequencies: Frequencies, *, interleaved: bool, position_axis: PositionAxis = -2
    ) -> None:
        super().__init__()
        if not isinstance(frequencies, Frequencies):
            raise TypeError(f"frequencies must be Frequencies, got {type(frequencies).__name__}")
        check_words(interleaved, False, position_axis)
        self.frequencies = frequencies
        self.interleaved = interleaved
        self.position_axis: PositionAxis = position_axis

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, positions: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return queries and keys, turned.

        Parameters
        ----------
        q, k : tensor of a floating dtype, shape [..., T, head_dim]
            Of one dtype and device; they may differ in their numbers of heads.
        positions : range, list of int, or tensor of an integer dtype, [T] or ``[*batch, T]``
            Positions in tokens, any int64; their batch axes are the first axes of q and k.

        Returns
        -------
        q, k : tensors, shape [..., T, head_dim]
            As `posenc.apply_rope_qk` returns them.

        Raises
        ------
        TypeError, ValueError
            As `posenc.rope_tables` and `posenc.apply_rope_qk` do.
        """
        common_place(q=q, k=k, positions=positions)
        for name, x in (("q", q), ("k", k)):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        cos, sin = rope_tables(positions, self.frequencies, dtype=wide, device=q.device)
        how = {"interleaved": self.interleaved, "position_axis": self.position_axis}
        q, k = apply_rope_qk(q, k, cos, sin, **how)  # type: ignore[arg-type]
        return q, k

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Pass over the tables that other implementations stored under this name."""
        for name in ("inv_freq", "original_inv_freq", "cos_cached", "sin_cached"):
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """What printing the module shows."""
        return (
            f"{self.frequencies}, interleaved={self.interleaved}, "
            f"position_axis={self.position_axis}"
        )
