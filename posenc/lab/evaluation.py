"""What trained models are asked: at lengths they know and do not know, in pieces, and inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc._door import choice
from posenc.lab.tasks import UNSCORED
from posenc.lab.training import loss_of, one_thread
from posenc.lab.transformer import Cache, Decoder, Trace

__all__ = [
    "accuracy",
    "decoded",
    "loss_with_context",
    "offset_share",
    "position_r2",
    "position_share",
]

CHUNK = 8192  # tokens a call, so that long texts do not need long memories


def _device(model: Decoder) -> torch.device:
    return next(model.parameters()).device


@torch.no_grad()
def logits(model: Decoder, x: Tensor, *, offset: int = 0) -> Tensor:
    """Scores of all texts, [B, T, symbols], on the CPU: a few texts a call, on one thread."""
    rows = max(1, CHUNK // x.shape[-1])
    few = [x[at : at + rows].to(_device(model)) for at in range(0, len(x), rows)]
    with one_thread():
        return torch.cat([model(part, offset=offset).cpu() for part in few])


def accuracy(model: Decoder, x: Tensor, y: Tensor, *, first: int = 0) -> float:
    """Share of scored places, from ``first`` on, whose likeliest symbol is the right one."""
    scored = y[:, first:] != UNSCORED
    right = logits(model, x)[:, first:].argmax(-1) == y[:, first:]
    return float(right[scored].double().mean())


def loss_with_context(
    model: Decoder, x: Tensor, y: Tensor, lengths: Sequence[int], *, scored: int = 32
) -> dict[int, float]:
    """Loss on the same last targets, with more or less text before them.

    Parameters
    ----------
    model : Decoder
        Trained.
    x, y : int64 tensors, shape [B, T]
        Texts and next symbols.
    lengths : sequence of int
        How many of the last tokens the model is given, from ``scored`` to T. Positions start
        from 0 in each.
    scored : int
        How many of the last targets are scored: the same for all lengths, so that the text's own
        difficulty cancels between them.

    Returns
    -------
    dict of int to float
        Nats a symbol, for each length.

    Raises
    ------
    ValueError
        If a length is outside.
    """
    losses = {}
    for length in lengths:
        if not scored <= length <= x.shape[-1]:
            raise ValueError(f"lengths must lie in {scored} ... {x.shape[-1]}, got {length}")
        tail = logits(model, x[:, -length:])[:, -scored:]
        losses[length] = float(loss_of(tail, y[:, -scored:]))
    return losses


@torch.no_grad()
def decoded(model: Decoder, x: Tensor, prefill: int, *, offsets: str = "right") -> Tensor:
    """Scores of the tokens after the prompt, read one by one from a cache.

    Parameters
    ----------
    model : Decoder
        Trained.
    x : int64 tensor, shape [B, T]
        Texts.
    prefill : int
        Tokens of the prompt, read at once.
    offsets : {"right", "zero", "restart"}
        Position of a token read alone: its own, always 0, or counted from 0 after the prompt.

    Returns
    -------
    tensor, shape [B, T - prefill, symbols]
        On the CPU.

    Raises
    ------
    ValueError
        If ``offsets`` is another word.
    """
    places: dict[str, Callable[[int], int]] = {
        "right": lambda t: t,
        "zero": lambda t: 0,
        "restart": lambda t: t - prefill,
    }
    choice("offsets", offsets, list(places))
    cache: Cache = []
    x = x.to(_device(model))
    with one_thread():
        model(x[:, :prefill], cache=cache)
        steps = [
            model(x[:, t : t + 1], offset=places[offsets](t), cache=cache)
            for t in range(prefill, x.shape[-1])
        ]
    return torch.cat(steps, dim=1).cpu()


@torch.no_grad()
def traced(model: Decoder, x: Tensor) -> Trace:
    """What `Decoder` writes into a trace, in float64 on the CPU."""
    trace: Trace = []
    with one_thread():
        model(x.to(_device(model)), trace=trace)
    return [(stream.double().cpu(), scores.double().cpu()) for stream, scores in trace]


def position_r2(streams: Tensor, *, ridge: float = 1.0, first: int = 0) -> float:
    """How well a line through the stream reads off the position, on texts it was not fitted to.

    Parameters
    ----------
    streams : tensor, shape [B, T, d]
        Of a layer. The first half of the texts is fitted, the second tested.
    ridge : float
        Penalty on the squared weights.
    first : int
        Positions before it are left out.

    Returns
    -------
    float
        R squared: 1 if exactly, 0 or less if not at all.
    """
    half, length = len(streams) // 2, streams.shape[1]
    place = torch.arange(first, length, dtype=streams.dtype).expand(half, -1).reshape(-1)
    fitted, tested = (part[:half, first:].flatten(0, 1) for part in (streams, streams[half:]))
    mean, middle = fitted.mean(0), place.mean()
    centred = fitted - mean
    gram = centred.T @ centred + ridge * torch.eye(centred.shape[1], dtype=streams.dtype)
    weights = torch.linalg.solve(gram, centred.T @ (place - middle))
    left = place - middle - (tested - mean) @ weights
    return float(1 - left.square().mean() / place.var(correction=0))


def position_share(streams: Tensor) -> float:
    """Share of the stream's variance that its mean at each position explains, [B, T, d]."""
    centred = streams - streams.mean((0, 1))
    return float(centred.mean(0).square().mean() / centred.square().mean())


def offset_share(scores: Tensor, *, first: int = 8) -> float:
    """Share of the variance of causal scores that the distance alone explains.

    Parameters
    ----------
    scores : tensor, shape [B, H, T, T]
        Of a layer. Each row is centred over the keys it may see, because a softmax ignores a
        number that all of them share.
    first : int
        Rows before it, which see few keys, are left out.

    Returns
    -------
    float
        Mean over the heads.
    """
    length = scores.shape[-1]
    q, k = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    seen = (k <= q) & (q >= first)
    count = seen.sum(-1).clamp(min=1)
    mean = (scores * seen).sum(-1) / count  # [B, H, T]
    centred = (scores - mean[..., None]) * seen
    distance = (q - k)[seen]  # [pairs]
    picked = centred[..., seen]  # [B, H, pairs]
    sums = torch.zeros(*picked.shape[:2], length, dtype=scores.dtype)
    sums.index_add_(-1, distance, picked)
    pairs = torch.bincount(distance, minlength=length).clamp(min=1)
    curve = sums.sum(0) / (pairs * len(scores))  # [H, T]: a mean score for each distance
    explained = (curve.square() * pairs).sum(-1) * len(scores)
    return float((explained / picked.square().sum((0, 2))).mean())
