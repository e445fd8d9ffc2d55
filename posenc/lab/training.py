"""How every model of the book is trained: one recipe, fixed seeds, one thread."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from posenc._door import whole_number
from posenc.lab.tasks import UNSCORED

__all__ = ["loss_of", "one_thread", "progress", "train"]

Batch = Callable[[torch.Generator], tuple[Tensor, Tensor]]
T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread inside: sums then have one order, and outputs repeat."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def progress(items: Iterable[T], label: str) -> Iterable[T]:
    """Show a bar where a person watches a terminal and tqdm is installed; elsewhere nothing."""
    if not sys.stderr.isatty():
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    shown: Iterable[T] = tqdm(items, desc=label, leave=False)
    return shown


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean surprise over the places that are scored, in nats.

    Parameters
    ----------
    logits : tensor, shape [..., T, symbols]
        Scores of the next symbol.
    targets : int64 tensor, shape [..., T]
        Symbols that came; `UNSCORED` where nothing is asked.

    Notes
    -----
    Equation ``eq-cross-entropy`` of the book. Elsewhere: ``cross_entropy`` (torch).
    """
    return cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=UNSCORED)


def train(
    model: nn.Module,
    batch: Batch,
    *,
    steps: int,
    seed: int,
    lr: float = 3e-3,
    seconds: float = math.inf,
    label: str = "training",
) -> list[float]:
    """Train a model where it lies; return its loss at each step.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    batch : function of a generator
        Draws x and y, [B, T] each, on the CPU; they are moved to the model's device.
    steps : int
        Steps of AdamW: 20 of warm-up to ``lr``, then a cosine to a twentieth of it.
    seed : int
        Of the texts. They are the same for every model and device.
    lr : float
        Largest learning rate.
    seconds : float
        A cap on the time: no step begins later. What it cuts off does not repeat elsewhere.
    label : str
        What a progress bar says, for who watches.

    Returns
    -------
    list of float
        Nats, one a step; as many as were taken.

    Raises
    ------
    TypeError, ValueError
        If ``steps`` is not a positive integer.

    Notes
    -----
    Betas 0.9 and 0.98, no weight decay, gradients clipped to norm 1.
    """
    whole_number("steps", steps, at_least=1)
    device = next(model.parameters()).device
    texts = torch.Generator().manual_seed(seed)
    adam = torch.optim.AdamW(
        model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True
    )
    losses: list[Tensor] = []
    end = time.monotonic() + seconds
    model.train()
    with one_thread():
        for step in progress(range(steps), label):
            if time.monotonic() > end:
                break
            for group in adam.param_groups:
                group["lr"] = lr * schedule(step, steps)
            x, y = batch(texts)
            loss = loss_of(model(x.to(device)), y.to(device))
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            losses.append(loss.detach())
    model.eval()
    return [float(loss) for loss in losses]


def schedule(step: int, steps: int, *, warm_up: int = 20, last: float = 0.05) -> float:
    """Share of the largest learning rate at a step: a ramp, then half a cosine."""
    if step < warm_up:
        return (step + 1) / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)
    return last + (1 - last) * (1 + math.cos(math.pi * done)) / 2
