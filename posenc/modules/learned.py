"""A learned table as a module: a row for each position."""

from __future__ import annotations

from typing import Any

import torch

from posenc._backend import common_place
from posenc._door import integer_positions, whole_number


class LearnedEncoding(torch.nn.Module):
    """Look up a learned row for each position.

    Parameters
    ----------
    rows : int
        Rows of the table.
    dim : int
        Channels d.
    offset : int, default 0
        Row of position 0: `posenc.learned.row_offset` knows it for published families. The table
        serves ``rows - offset`` positions.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If ``rows`` or ``dim`` is not positive, or ``offset`` leaves no row.

    Notes
    -----
    Equation ``eq-learned`` of the book. The parameter ``weight``, shape [rows, d], is drawn with
    standard deviation 0.02, as in BERT and GPT-2, and loads a checkpoint's ``nn.Embedding``.

    Examples
    --------
    >>> from posenc.modules import LearnedEncoding
    >>> table = LearnedEncoding(514, 8, offset=2)
    >>> table(range(512)).shape
    torch.Size([512, 8])
    """

    def __init__(self, rows: int, dim: int, *, offset: int = 0) -> None:
        super().__init__()
        self.rows = whole_number("rows", rows, at_least=1)
        self.dim = whole_number("dim", dim, at_least=1)
        self.offset = whole_number("offset", offset, at_least=0)
        if self.offset >= self.rows:
            raise ValueError(f"offset must be less than the {self.rows} rows, got {self.offset}")
        self.weight = torch.nn.Parameter(torch.empty(self.rows, self.dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        torch.nn.init.normal_(self.weight, std=0.02)

    def forward(self, positions: Any) -> torch.Tensor:
        """Return the row of each position.

        Parameters
        ----------
        positions : int, range, (nested) list of int, or tensor of an integer dtype
            Positions in tokens, from 0 to ``rows - offset - 1``. With an offset, -1 is allowed
            too and stands for padding: it has row ``offset - 1``
            (`posenc.learned.positions_from_mask`). In ``torch.compile(fullgraph=True)`` a range
            or a tensor.

        Returns
        -------
        tensor, shape ``[*positions.shape, d]``
            Rows ``positions + offset`` of the table, in its dtype and on its device.

        Raises
        ------
        TypeError
            If positions are not integers, or NumPy's.
        ValueError
            If a position lies outside the table, or positions on another device.
        RuntimeError
            Under ``torch.compile`` and in a CUDA graph, if a position lies outside the table.
            Elsewhere the check waits for a GPU that still computes the positions, and
            ``torch.vmap`` refuses it: give positions as a batch instead.
        """
        common_place(weight=self.weight, positions=positions)
        index = torch.as_tensor(integer_positions(positions), device=self.weight.device)
        first, usable = -1 if self.offset else 0, self.rows - self.offset
        outside = (index < first) | (index >= usable)
        says = (
            f"positions must lie in {first} ... {usable - 1}: the table has {self.rows} rows and "
            f"offset {self.offset}, which serve {usable} positions"
        )
        if torch.compiler.is_compiling() or (
            index.is_cuda and torch.cuda.is_current_stream_capturing()
        ):
            torch._assert_async(~outside.any(), says)
        elif not index.is_meta and bool(outside.any()):
            raise ValueError(f"{says}; got {int(index[outside][0])}")
        return torch.nn.functional.embedding(index + self.offset, self.weight)

    def extra_repr(self) -> str:
        """What printing the module shows."""
        return f"rows={self.rows}, dim={self.dim}, offset={self.offset}"
