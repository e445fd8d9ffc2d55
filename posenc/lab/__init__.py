"""The book's laboratory: what notebooks need and the package does not.

Nothing in ``posenc`` outside this folder imports it, and importing it loads neither torch nor
matplotlib: `posenc.lab.figures` brings the one, `device` the other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["device"]


def device() -> torch.device:
    """Return the device on which a chapter's torch cells run.

    The environment variable ``POSENC_DEVICE`` names it, the CPU is the default; no cell of the
    book names a device itself, so one variable moves every chapter.

    Returns
    -------
    torch.device
        For example ``torch.device("cpu")``; random numbers are drawn on the CPU and then moved.

    Raises
    ------
    RuntimeError
        If the name is no device of this torch, or that device is not here.

    Examples
    --------
    >>> device()
    device(type='cpu')
    """
    import torch

    name = os.environ.get("POSENC_DEVICE", "cpu")
    try:
        chosen = torch.device(name)
        torch.empty(0, device=chosen)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise RuntimeError(
            f"POSENC_DEVICE must name a device that is here, got {name!r}: {reason}"
        ) from error
    return chosen
