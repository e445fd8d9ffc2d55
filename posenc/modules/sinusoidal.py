"""The sinusoidal encoding as a module: it is added to embeddings."""

from __future__ import annotations

import torch

from posenc._door import choice, offset_number
from posenc.sinusoidal import Layout, encode
from posenc.spectrum import frequencies


class SinusoidalEncoding(torch.nn.Module):
    """Add the sinusoidal encoding to token embeddings.

    Parameters
    ----------
    dim : int
        Channels d, even.
    base : float, default 10000.0
        Base of the frequencies.
    layout : {"interleaved", "concatenated"}
        As in `posenc.sinusoidal_encoding`.

    Raises
    ------
    TypeError, ValueError
        As `posenc.sinusoidal_encoding` does, at construction.

    Notes
    -----
    The module has no buffer and no parameter: its state_dict is empty, it has no maximal length,
    and ``.to(torch.bfloat16)``, ``.half()`` or a construction on the meta device leave its angles
    as they are. The time axis is the last but one, whatever stands before it.
    Equation ``eq-sinusoidal`` of the book.

    Examples
    --------
    >>> import torch
    >>> from posenc.modules import SinusoidalEncoding
    >>> encode = SinusoidalEncoding(4)
    >>> encode(torch.zeros(2, 3, 4), offset=7).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> None:
        super().__init__()
        choice("layout", layout, ("interleaved", "concatenated"))
        self.frequencies = frequencies(dim, base)
        self.dim, self.base, self.layout = int(dim), float(base), layout

    def forward(self, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
        """Add the rows of positions offset, offset + 1, ... to x.

        Parameters
        ----------
        x : tensor of a floating dtype, shape [..., T, d]
            Embeddings; batch first, or any leading axes.
        offset : int, default 0
            Position of the first row: the number of tokens already in the cache.

        Returns
        -------
        tensor, shape [..., T, d]
            The sum, formed in float32 (float64 for a float64 x) and rounded once to x's dtype.

        Raises
        ------
        TypeError
            If ``x`` is not floating or ``offset`` not an integer.
        ValueError
            If the last axis of ``x`` has not d channels, or a position leaves int64.
        """
        if not x.is_floating_point():
            raise TypeError(f"x must be of a floating dtype, got {x.dtype}")
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(f"x must have shape [..., T, {self.dim}], got {list(x.shape)}")
        length = x.shape[-2]
        positions: range | torch.Tensor
        if torch.compiler.is_compiling():
            positions = torch.arange(length, device=x.device) + offset
        else:
            start = offset_number("offset", offset)
            positions = range(start, start + length)
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        table: torch.Tensor = encode(
            positions, self.frequencies, self.dim, self.layout, dtype=wide, device=x.device
        )
        return (x.to(wide) + table).to(x.dtype)

    def extra_repr(self) -> str:
        """What printing the module shows."""
        return f"dim={self.dim}, base={self.base:g}, layout={self.layout!r}"
