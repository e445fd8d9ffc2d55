"""The sinusoidal encoding as a module: it is added to embeddings."""

from __future__ import annotations

import torch

from posenc._door import choice, offset_number
from posenc.sinusoidal import Layout, encode
from posenc.spectrum import Spacing, frequencies


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
    spacing : {"paper", "endpoint"}
        As in `posenc.frequencies`; a tensor2tensor or fairseq model needs ``"endpoint"`` and
        ``"concatenated"``.

    Raises
    ------
    TypeError, ValueError
        As `posenc.sinusoidal_encoding` does, at construction.

    Notes
    -----
    The module has no buffer and no parameter: its state_dict is empty, a table in an older
    checkpoint is passed over, it has no maximal length, and ``.to(torch.bfloat16)``, ``.half()``
    or a construction on the meta device leave its angles as they are. The time axis is the last
    but one, whatever stands before it.
    Equation ``eq-sinusoidal`` of the book.

    Examples
    --------
    >>> import torch
    >>> from posenc.modules import SinusoidalEncoding
    >>> encode = SinusoidalEncoding(4)
    >>> encode(torch.zeros(2, 3, 4), offset=7).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        dim: int,
        *,
        base: float = 10000.0,
        layout: Layout = "interleaved",
        spacing: Spacing = "paper",
    ) -> None:
        super().__init__()
        choice("layout", layout, ("interleaved", "concatenated"))
        self.frequencies = frequencies(dim, base, spacing=spacing)
        self.dim, self.base, self.layout, self.spacing = int(dim), float(base), layout, spacing
        self.register_load_state_dict_pre_hook(_pass_over_tables)  # type: ignore[no-untyped-call]

    def forward(self, x: torch.Tensor, offset: int | torch.Tensor = 0) -> torch.Tensor:
        """Add the rows of positions offset, offset + 1, ... to x.

        Parameters
        ----------
        x : tensor of a floating dtype, shape [..., T, d]
            Embeddings; batch first, or any leading axes.
        offset : int or integer tensor without axes, default 0
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
            If the last axis of ``x`` has not d channels, or a position leaves int64 (a compiled
            module does not look for that).
        """
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"x must be a tensor, got {type(x).__name__}")
        if not x.is_floating_point():
            raise TypeError(f"x must be of a floating dtype, got {x.dtype}")
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(f"x must have shape [..., T, {self.dim}], got {list(x.shape)}")
        length = x.shape[-2]
        positions: range | torch.Tensor
        if torch.compiler.is_compiling():
            positions = torch.arange(length, device=x.device) + _without_axes(offset)
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
        rest = f"layout={self.layout!r}, spacing={self.spacing!r}"
        return f"dim={self.dim}, base={self.base:g}, {rest}"


def _without_axes(offset: int | torch.Tensor) -> int | torch.Tensor:
    """An offset as a graph may hold it: what `offset_number` checks, but for its value."""
    if isinstance(offset, torch.Tensor):
        whole = not (offset.is_floating_point() or offset.is_complex())
        good = whole and offset.dtype != torch.bool and offset.ndim == 0
    else:
        good = isinstance(offset, int | torch.SymInt) and not isinstance(offset, bool)
    if not good:
        raise TypeError("offset must be an integer, or an integer tensor without axes")
    return offset


def _pass_over_tables(
    module: torch.nn.Module, state_dict: dict[str, object], prefix: str, *_: object
) -> None:
    """Take tables that other implementations stored out of what is loaded."""
    for name in [name for name in state_dict if name.startswith(prefix)]:
        del state_dict[name]
