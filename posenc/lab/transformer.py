"""A small decoder on one page, into which every encoding of the book can be plugged.

Pre-LN blocks, no dropout: what differs between two models of one shape and one seed is the
encoding. Source of the shape: Radford et al. (2019), GPT-2, without biases.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from posenc._door import whole_number
from posenc.lab.plugs import encoding

__all__ = ["Cache", "Decoder", "Trace"]

Cache = list[tuple[Tensor, Tensor]]
"""Keys, already turned, and values of each layer, [B, H, T, d_k] each; an empty list to begin."""

Trace = list[tuple[Tensor, Tensor]]
"""Stream [B, T, d] before each layer and its scores [B, H, Tq, Tk]; an empty list to fill."""


class Block(nn.Module):
    """Attention and a two-layer network, each behind a LayerNorm and added to the stream."""

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm, self.norm_mlp = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.up, self.down = (
            nn.Linear(dim, 4 * dim, bias=False),
            nn.Linear(4 * dim, dim, bias=False),
        )

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        parts = self.qkv(self.norm(x)).unflatten(-1, (3, self.n_heads, -1))  # [B, T, 3, H, d_k]
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # [B, H, T, d_k] each
        return q, k, v

    def forward(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add to the stream what attention found, then what the network makes of it."""
        x = x + self.out(attended.transpose(1, 2).flatten(2))  # [B, H, T, d_k] -> [B, T, d]
        mixed: Tensor = x + self.down(gelu(self.up(self.norm_mlp(x))))
        return mixed


class Decoder(nn.Module):
    """A causal language model: symbols in, scores of the next symbol out.

    Parameters
    ----------
    symbols : int
        Size of the vocabulary.
    name : str
        Encoding, one of `posenc.lab.plugs.ENCODINGS`.
    dim, n_heads, n_layers : int
        Channels d, heads H, blocks.
    rows : int
        Rows of a learned table: the longest text that it will take.
    base : float
        Of the waves and of RoPE.
    seed : int
        Draws the weights on the CPU, from a generator of its own: models of one shape and one seed
        start alike, whatever their encoding.

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer, d not a multiple of 2H, or the encoding unknown.
    """

    def __init__(
        self,
        symbols: int,
        name: str,
        *,
        dim: int = 64,
        n_heads: int = 4,
        n_layers: int = 2,
        rows: int = 256,
        base: float = 10000.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        sizes = {"symbols": symbols, "dim": dim, "n_heads": n_heads, "n_layers": n_layers}
        for word, size in {**sizes, "rows": rows}.items():
            whole_number(word, size, at_least=1)
        if dim % (2 * n_heads):
            raise ValueError(f"dim must be a multiple of 2 n_heads = {2 * n_heads}, got {dim}")
        with torch.random.fork_rng(devices=[]):  # torch's layers draw when they are made
            self.embedding = nn.Embedding(symbols, dim)
            self.blocks = nn.ModuleList(Block(dim, n_heads) for _ in range(n_layers))
            self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, symbols, bias=False)
            self.encoding = encoding(name, dim=dim, n_heads=n_heads, rows=rows, base=base)
        drawn = torch.Generator().manual_seed(seed)
        nn.init.normal_(self.embedding.weight, generator=drawn)
        for linear in (module for module in self.modules() if isinstance(module, nn.Linear)):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5, generator=drawn)
        self.encoding.draw(drawn)

    def forward(
        self,
        tokens: Tensor,
        *,
        offset: int = 0,
        cache: Cache | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Return the scores of the symbol that follows each token.

        Parameters
        ----------
        tokens : int64 tensor, shape [B, T]
            Symbols.
        offset : int
            Position of the first of them. With a cache of n rows it should be n; nothing here
            makes it so, because the chapter shows what else happens.
        cache : list, optional
            Of earlier calls; it grows by these T tokens.
        trace : list, optional
            Filled for a probe: the stream before each layer and its scores, then the last stream.

        Returns
        -------
        tensor, shape [B, T, symbols]

        Raises
        ------
        ValueError
            If a learned table has no row for a position.
        """
        length = tokens.shape[-1]
        before = cache[0][0].shape[-2] if cache else 0
        positions = range(offset, offset + length)
        x = self.encoding.embed(self.embedding(tokens), positions)  # [B, T, d]
        tables = self.encoding.tables(positions, x)
        bias = self.encoding.bias(positions, range(before + length), x.device)
        seen = torch.ones(length, before + length, dtype=torch.bool, device=x.device).tril(before)
        mask = seen if bias is None else bias.masked_fill(~seen, -math.inf)
        for layer, block in enumerate(self.blocks):
            q, k, v = block.heads(x)  # type: ignore[operator]
            q, k = self.encoding.rotate(q, k, tables)
            if cache is not None:
                if before:
                    k, v = (
                        torch.cat([*each], dim=-2)
                        for each in zip(cache[layer], (k, v), strict=True)
                    )
                cache[layer : layer + 1] = [(k, v)]
            if trace is not None:
                scores = q @ k.mT / math.sqrt(q.shape[-1])
                trace.append((x, scores if bias is None else scores + bias))
            x = block(x, scaled_dot_product_attention(q, k, v, attn_mask=mask))
        if trace is not None:
            trace.append((x, x.new_empty(0)))
        logits: Tensor = self.head(self.norm(x))
        return logits
