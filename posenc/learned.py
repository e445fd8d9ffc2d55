"""Learned tables: which row is a position's, and how a table is resized."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc._backend import common_place, dtype_name
from posenc._door import choice, is_tensor, unmasked, whole_number
from posenc._integers import tokens

_FIXED = {
    "albert": 0,
    "bart": 2,
    "bert": 0,
    "biogpt": 2,
    "distilbert": 0,
    "electra": 0,
    "gpt2": 0,
    "mbart": 2,
    "opt": 2,
    "plbart": 2,
}
_AFTER_PADDING = ("camembert", "longformer", "roberta", "xlm-roberta")


def row_offset(family: str, *, padding_idx: int | None = None) -> int:
    """Row of a family's table that belongs to position 0.

    Parameters
    ----------
    family : str
        As transformers spells it: ``"bert"``, ``"gpt2"``, ``"roberta"``, ``"opt"``, ``"bart"``
        and their kin.
    padding_idx : int, optional
        Vocabulary index of the padding token, 1 unless given. For the RoBERTa family only, whose
        positions start behind it.

    Returns
    -------
    int
        Position p has row ``p + row_offset(family)``; a table of so many rows serves
        ``rows - row_offset(family)`` tokens.

    Raises
    ------
    TypeError
        If ``padding_idx`` is not an integer.
    ValueError
        If the family is unknown, or a padding index is given for one that does not use it.

    Notes
    -----
    Equation ``eq-learned`` of the book. BERT, GPT-2 and their kin: 0. RoBERTa (fairseq):
    ``padding_idx + 1``, so that 512 tokens need 514 rows. BART and OPT: 2, whatever the padding
    index is.

    Examples
    --------
    >>> from posenc import learned
    >>> 514 - learned.row_offset("roberta")
    512
    """
    families = sorted([*_FIXED, *_AFTER_PADDING])
    choice("family", family, families)
    if family in _AFTER_PADDING:
        return 1 + (
            1 if padding_idx is None else whole_number("padding_idx", padding_idx, at_least=0)
        )
    if padding_idx is not None:
        raise ValueError(f"padding_idx must be left out: positions of {family!r} do not use it")
    return _FIXED[family]


def positions_from_mask(mask: Any) -> Any:
    """Positions that count the tokens of a padded batch; -1 stands for padding.

    Parameters
    ----------
    mask : ndarray or tensor of bool or of an integer dtype, shape [..., T]
        Not 0 where there is a token. For RoBERTa, ``ids != padding_idx``.

    Returns
    -------
    ndarray or tensor of int64, shape [..., T]
        0, 1, 2 ... at the tokens, -1 elsewhere. With `row_offset` added these are the rows of
        RoBERTa (padding has row ``padding_idx``), and of OPT (padding has row 1).

    Raises
    ------
    TypeError
        If the mask is of another dtype (in additive masks, floating, 0 means a token), a masked
        array, or no array or tensor.
    ValueError
        If it has no axis.

    Notes
    -----
    Equation ``eq-learned`` of the book, its positions. Elsewhere:
    ``create_position_ids_from_input_ids`` (transformers), ``make_positions`` (fairseq), both with
    the offset added.

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import learned
    >>> learned.positions_from_mask(np.array([0, 0, 1, 1, 1])) + learned.row_offset("opt")
    array([1, 1, 2, 3, 4])
    """
    token = tokens(mask)
    return token.cumsum(-1) * token - 1


def resize(table: Any, size: Any, *, grid: tuple[int, int] | None = None, prefix: int = 0) -> Any:
    """Stretch or shrink a learned table to another number of positions, by linear interpolation.

    Parameters
    ----------
    table : ndarray or tensor of bfloat16, float16, float32 or float64, [..., prefix + T, d]
        One row for each position, or for each patch of a picture, row by row (T = H W).
    size : int, or pair of int
        How many positions the result shall have; for pictures (H', W'). A size, never a factor:
        in floating point 11 rows times 60 / 11 are 59.
    grid : pair of int, optional
        H and W of the table, for pictures; a square unless given.
    prefix : int, default 0
        Rows in front that are no positions (class token, offset rows): kept as they are.

    Returns
    -------
    ndarray or tensor, shape [..., prefix + T', d] with T' = size or H' W'
        In the table's dtype, computed in float32 (float64) and rounded once. Gradients pass
        through. At the table's own size, the table.

    Raises
    ------
    TypeError
        If ``table`` is of another dtype or masked, or a size is not an integer.
    ValueError
        If a size is not positive, or ``grid`` and ``prefix`` do not give the table's rows.

    Notes
    -----
    Equation ``eq-resize`` of the book. A row is the middle of a cell of width 1, and the cells
    of the result fill the same length: new row j lies at the old ``(j + 1/2) T/T' - 1/2``, moved
    to the nearest row if outside. It is ``interpolate(mode="linear" or "bilinear",
    align_corners=False)`` of torch, without antialiasing. Elsewhere: ``interpolate_pos_encoding``
    (DINO, ViT; bicubic).

    Examples
    --------
    >>> import numpy as np
    >>> from posenc import learned
    >>> learned.resize(np.array([[0.0], [1.0]]), 4).ravel()
    array([0.  , 0.25, 0.75, 1.  ])
    """
    unmasked("table", table)
    given = dtype_name(table.dtype) if is_tensor(table) or isinstance(table, np.ndarray) else None
    if given not in ("bfloat16", "float16", "float32", "float64"):
        raise TypeError(
            "table must be an array or tensor of bfloat16, float16, float32 or float64, "
            f"got {given or type(table).__name__}"
        )
    if table.ndim < 2:
        raise ValueError(f"table must have shape [..., T, d], got {list(table.shape)}")
    prefix = whole_number("prefix", prefix, at_least=0)
    rows = table.shape[-2] - prefix
    if rows < 1:
        raise ValueError(f"prefix must leave a row, got {prefix} of {table.shape[-2]} rows")
    new = _sizes("size", size)
    old = _grid(grid, rows, prefix) if len(new) == 2 else (rows,)
    if len(new) == 1 and grid is not None:
        raise ValueError(f"size must be a pair (H, W) if grid is given, got {size}")

    xp, device = common_place(table=table)
    wide = xp.float64 if given == "float64" else xp.float32
    *batch, _, dim = table.shape
    body = xp.astype(table[..., prefix:, :], wide).reshape(*batch, *old, dim)
    for axis, (before, after) in enumerate(zip(old, new, strict=True), len(batch)):
        if before != after:
            body = _resized(body, axis, before, after, xp, device)
    body = xp.astype(body, table.dtype).reshape(*batch, math.prod(new), dim)
    return xp.concat([table[..., :prefix, :], body], axis=-2)


def _resized(table: Any, axis: int, before: int, after: int, xp: Any, device: Any) -> Any:
    """One axis of a table by linear interpolation: old coordinates are exact fractions."""
    j = np.arange(after)
    place = np.clip((2 * j + 1) * before - after, 0, 2 * after * (before - 1))  # times 2 * after
    low, part = place // (2 * after), place % (2 * after) / (2 * after)
    high = np.minimum(low + 1, before - 1)
    share: Any = part.reshape(-1, *[1] * (table.ndim - 1 - axis))
    low, high, share = (
        xp.asarray(each) if device is None else xp.asarray(each, device=device)
        for each in (low, high, share)
    )
    share = xp.astype(share, table.dtype)
    return xp.take(table, low, axis=axis) * (1 - share) + xp.take(table, high, axis=axis) * share


def _sizes(name: str, size: Any) -> tuple[int, ...]:
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ValueError(f"{name} must be a number or a pair (H, W), got {size}")
        return tuple(whole_number(name, each, at_least=1) for each in size)
    return (whole_number(name, size, at_least=1),)


def _grid(grid: Any, rows: int, prefix: int) -> tuple[int, ...]:
    if grid is None:
        side = math.isqrt(rows)
        if side * side != rows:
            raise ValueError(
                f"grid must be given: {rows} rows behind a prefix of {prefix} make no square"
            )
        return (side, side)
    if not isinstance(grid, (tuple, list)):
        raise TypeError(f"grid must be a pair (H, W), got {type(grid).__name__}")
    sides = _sizes("grid", grid)
    if math.prod(sides) != rows:
        raise ValueError(f"grid must hold the {rows} rows behind a prefix of {prefix}, got {grid}")
    return sides
