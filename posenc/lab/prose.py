"""Numbers in sentences: each comes from a cell, so that no sentence can disagree with it."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any, SupportsFloat

from myst_nb import glue as _glue

__all__ = ["glue", "written"]

SMALLEST = 1e-9  # below it only rounding noise is left: compare with a bound, print the comparison
MOST_DIGITS = 7
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(value: str | SupportsFloat, spec: str = ".4g") -> str:
    """Return the value as the sentence shows it.

    Parameters
    ----------
    value
        A number, or a string, which is taken as it is. NumPy's and torch's scalars count.
    spec
        A format of Python's for a number, such as ``".2f"`` or ``",d"``. An integer under the
        default is written in full. A power of ten is written as one: ``1.5 × 10⁻⁵``.

    Returns
    -------
    str
        With a true minus sign; never a negative zero.

    Raises
    ------
    TypeError
        If the value is neither a number nor a string.
    ValueError
        If the number is not finite, is rounding noise (below 1e-9 but not 0), or the format
        shows more than 7 significant digits of it or nothing but zeros.

    Examples
    --------
    >>> written(0.97312), written(-3.7138, ".3f"), written(1.5e-5), written(262144, ",d")
    ('0.9731', '−3.714', '1.5 × 10⁻⁵', '262,144')
    """
    plain: Any = value.item() if hasattr(value, "item") else value
    if isinstance(plain, str):
        return plain
    if isinstance(plain, bool) or not isinstance(plain, numbers.Real):
        raise TypeError(f"value must be a number or a string, got {plain!r}")
    if isinstance(plain, numbers.Integral) and spec == ".4g":
        spec = "d"
    if not math.isfinite(plain):
        raise ValueError(f"value must be finite, got {plain}")
    if 0 < abs(plain) < SMALLEST:
        raise ValueError(f"value is rounding noise below {SMALLEST}: print a comparison instead")
    words = format(plain, spec)
    mantissa, _, power = words.partition("e")
    digits = re.sub(r"\D", "", mantissa).lstrip("0")
    if not isinstance(plain, numbers.Integral) and len(digits) > MOST_DIGITS:
        raise ValueError(f"spec must show at most {MOST_DIGITS} digits, got {words}")
    if plain != 0 and not digits:
        raise ValueError(f"spec {spec!r} shows nothing of {plain}: {words}")
    if plain == 0:
        mantissa = mantissa.lstrip("-")
    words = mantissa.replace("-", "−")
    return f"{words} × 10{str(int(power)).translate(RAISED)}" if power else words


def glue(name: str, value: str | SupportsFloat, spec: str = ".4g") -> None:
    """Store a number for the sentence that shows it as ``{glue:text}`name` ``; show nothing.

    Parameters
    ----------
    name
        Kebab case, one of its kind in the notebook.
    value, spec
        As for `written`.

    Raises
    ------
    TypeError, ValueError
        As `written`, and if the name is not kebab case.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be in kebab case, got {name!r}")
    _glue(name, written(value, spec), display=False)
