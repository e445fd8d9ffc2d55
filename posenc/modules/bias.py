"""Biases on attention scores as modules: ALiBi, which learns nothing, and T5's buckets."""

from __future__ import annotations

from typing import Any

import torch

from posenc._backend import common_place
from posenc._door import flag, whole_number
from posenc.bias import alibi_bias, alibi_slopes, differences
from posenc.relative import bucket_edges, bucket_of


class ALiBi(torch.nn.Module):
    """Bias that falls with distance, at a fixed slope for each head.

    Parameters
    ----------
    n_heads : int
        Heads H.
    bidirectional : bool, default False
        As in `posenc.alibi_bias`.

    Raises
    ------
    TypeError, ValueError
        As `posenc.alibi_slopes` does, at construction, and if ``bidirectional`` is neither True
        nor False.

    Notes
    -----
    Equations ``eq-alibi`` and ``eq-slopes`` of the book. No buffer and no parameter: the
    state_dict is empty, and ``.half()``, ``.to(torch.bfloat16)`` or a construction on the meta
    device leave the slopes as they are.

    Examples
    --------
    >>> from posenc.modules import ALiBi
    >>> ALiBi(8)([9], range(10))[0]  # the tenth token's query, head 0
    tensor([[-4.5000, -4.0000, -3.5000, -3.0000, -2.5000, -2.0000, -1.5000, -1.0000,
             -0.5000,  0.0000]])
    """

    def __init__(self, n_heads: int, *, bidirectional: bool = False) -> None:
        super().__init__()
        self.slopes: tuple[float, ...] = tuple(alibi_slopes(n_heads).tolist())
        self.bidirectional = flag("bidirectional", bidirectional)

    def forward(self, query_positions: Any, key_positions: Any) -> torch.Tensor:
        """Return the bias of every query and key.

        Parameters
        ----------
        query_positions, key_positions : range, list of int, or tensor of an integer dtype
            Shapes [Tq] or [B, Tq], and [Tk] or [B, Tk], as `posenc.alibi_bias` takes them. No
            lists in ``torch.compile(fullgraph=True)``.

        Returns
        -------
        float32 tensor, shape [H, Tq, Tk] or [B, H, Tq, Tk]
            On the positions' device. Give it as it is to ``scaled_dot_product_attention``: on the
            CPU that adds it in float32 to scores of float16 and bfloat16 queries. A kernel that
            wants a mask in the queries' dtype would round it; `posenc.alibi_score_mod` does not.

        Raises
        ------
        TypeError, ValueError
            As `posenc.alibi_bias` does.
        """
        device = _device(query_positions, key_positions)
        slopes = torch.tensor(self.slopes, dtype=torch.float32, device=device)
        bias: torch.Tensor = alibi_bias(
            slopes, query_positions, key_positions, bidirectional=self.bidirectional
        )
        return bias

    def extra_repr(self) -> str:
        """What printing the module shows."""
        return f"n_heads={len(self.slopes)}, bidirectional={self.bidirectional}"


class T5Bias(torch.nn.Module):
    """Bias that is learned for each bucket of distances and each head.

    Parameters
    ----------
    n_heads : int
        Heads H.
    bidirectional : bool
        True in encoders, False in decoders, as in `posenc.t5_bucket`.
    num_buckets, max_distance : int, default 32 and 128
        As in `posenc.t5_bucket`.

    Raises
    ------
    TypeError, ValueError
        As `posenc.t5_bucket` does, at construction, and if ``n_heads`` is not a positive integer.

    Notes
    -----
    Equation ``eq-t5-bucket`` of the book. The parameter ``weight``, shape [num_buckets, H],
    starts at zero and loads ``relative_attention_bias`` of a checkpoint. T5 makes one such table
    for a stack, used in every layer and never in cross-attention, and does not divide its scores
    by sqrt(d).

    Examples
    --------
    >>> from posenc.modules import T5Bias
    >>> bias = T5Bias(2, bidirectional=False)
    >>> bias([9], range(10)).shape  # decoding: one query, ten keys
    torch.Size([2, 1, 10])
    """

    def __init__(
        self,
        n_heads: int,
        *,
        bidirectional: bool,
        num_buckets: int = 32,
        max_distance: int = 128,
    ) -> None:
        super().__init__()
        self.n_heads = whole_number("n_heads", n_heads, at_least=1)
        self.bidirectional = flag("bidirectional", bidirectional)
        self.edges = bucket_edges(self.bidirectional, num_buckets, max_distance)
        self.num_buckets, self.max_distance = int(num_buckets), int(max_distance)
        self.weight = torch.nn.Parameter(torch.zeros(self.num_buckets, self.n_heads))

    def forward(self, query_positions: Any, key_positions: Any) -> torch.Tensor:
        """Return the bias of every query and key.

        Parameters
        ----------
        query_positions, key_positions : range, list of int, or tensor of an integer dtype
            Shapes [Tq] or [B, Tq], and [Tk] or [B, Tk]. In decoding the query has its true
            position, not 0. No lists in ``torch.compile(fullgraph=True)``.

        Returns
        -------
        tensor, shape [H, Tq, Tk] or [B, H, Tq, Tk]
            float32 (float64 if the table is), on the table's device. A causal mask must hide keys
            after the query.

        Raises
        ------
        TypeError
            If positions are not integers, or NumPy's.
        ValueError
            If shapes do not fit, devices differ, or a causal query has no key of its own.
        """
        places = {"query_positions": query_positions, "key_positions": key_positions}
        common_place(weight=self.weight, **places)
        half, rest = differences(
            query_positions, key_positions, self.weight.device, causal=not self.bidirectional
        )
        far = self.edges[-1]  # all beyond share a bucket
        bucket = bucket_of(2 * half.clip(-far, far) + rest, self.edges, self.bidirectional)
        wide = torch.promote_types(self.weight.dtype, torch.float32)
        values = self.weight.to(wide)[bucket]  # [..., Tq, Tk, H]
        return values.movedim(-1, -3)  # [..., H, Tq, Tk]

    def extra_repr(self) -> str:
        """What printing the module shows."""
        return (
            f"n_heads={self.n_heads}, bidirectional={self.bidirectional}, "
            f"num_buckets={self.num_buckets}, max_distance={self.max_distance}"
        )


def _device(query_positions: Any, key_positions: Any) -> torch.device:
    """Where positions lie: the CPU for Python's and NumPy's."""
    places = {"query_positions": query_positions, "key_positions": key_positions}
    device: torch.device | None = common_place(**places)[1]
    return torch.device("cpu") if device is None else device
