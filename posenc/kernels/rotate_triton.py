"""The rotation as one Triton kernel: queries and keys are read once, turned, and written once.

Only what runs on the GPU is here. `posenc.kernels.launch_triton` chooses the sizes and launches
the kernel; nothing else imports this file, which imports triton.

A program turns a tile of TOKENS tokens times HEADS heads, and then LOOP - 1 more such tiles of the
next heads by the same cosines and sines. Strides are in elements; what is written in capitals is
known when the kernel is compiled.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["tokens", "q_heads", "k_heads", "q_groups", "groups", "length"])
def rotate(
    q, q_out, k, k_out, cos, sin, rows,
    q_batch, q_head, q_token, q_channel,
    q_out_batch, q_out_head, q_out_token, q_out_channel,
    k_batch, k_head, k_token, k_channel,
    k_out_batch, k_out_head, k_out_token, k_out_channel,
    table_batch, table_head, table_token, table_pair,
    rows_batch, rows_head, rows_token,
    tokens, q_heads, k_heads, q_groups, groups, length,
    HALF: tl.constexpr, PAIRS: tl.constexpr, Q_REST: tl.constexpr, K_REST: tl.constexpr,
    TOKENS: tl.constexpr, HEADS: tl.constexpr, LOOP: tl.constexpr,
    GATHER: tl.constexpr, PER_HEAD: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr,
):  # fmt: skip
    """Turn one program's share of q or of k."""
    program = tl.program_id(0)  # blocks of tokens run fastest, then groups of heads, then the batch
    blocks = (tokens + TOKENS - 1) // TOKENS
    group = program // blocks % groups  # the groups of q, then those of k
    batch = (program // blocks // groups).to(tl.int64)
    tile = tl.arange(0, TOKENS * HEADS)
    token = (program % blocks * TOKENS + tile % TOKENS).to(tl.int64)
    head = (group * HEADS * LOOP + tile // TOKENS).to(tl.int64)
    if group < q_groups:
        turn(
            q + batch * q_batch, q_head, q_token, q_channel,
            q_out + batch * q_out_batch, q_out_head, q_out_token, q_out_channel,
            cos + batch * table_batch, sin + batch * table_batch,
            table_head, table_token, table_pair, length,
            rows + batch * rows_batch, rows_head, rows_token,
            token, tokens, head, q_heads,
            HALF, PAIRS, Q_REST, HEADS, LOOP, GATHER, PER_HEAD, INTERLEAVED, INVERSE,
        )  # fmt: skip
    else:
        turn(
            k + batch * k_batch, k_head, k_token, k_channel,
            k_out + batch * k_out_batch, k_out_head, k_out_token, k_out_channel,
            cos + batch * table_batch, sin + batch * table_batch,
            table_head, table_token, table_pair, length,
            rows + batch * rows_batch, rows_head, rows_token,
            token, tokens, head - q_groups * HEADS * LOOP, k_heads,
            HALF, PAIRS, K_REST, HEADS, LOOP, GATHER, PER_HEAD, INTERLEAVED, INVERSE,
        )  # fmt: skip


@triton.jit
def turn(
    x, x_head, x_token, x_channel,
    y, y_head, y_token, y_channel,
    cos, sin, table_head, table_token, table_pair, length,
    rows, rows_head, rows_token,
    token, tokens, head, heads,
    HALF: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr,
    HEADS: tl.constexpr, LOOP: tl.constexpr, GATHER: tl.constexpr, PER_HEAD: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr,
):  # fmt: skip
    """Read the pairs (a, b) of tokens and heads, write (a c - b s, b c + a s)."""
    if not PER_HEAD:  # all heads turn by the same row: it is read once
        c, s = table(
            cos, sin, table_head, table_token, table_pair, length, rows, rows_head, rows_token,
            head, token, token < tokens, HALF, PAIRS, GATHER, INVERSE,
        )  # fmt: skip
    for _ in range(LOOP):
        live = (token < tokens) & (head < heads)  # [TOKENS * HEADS]
        if PER_HEAD:
            c, s = table(
                cos, sin, table_head, table_token, table_pair, length, rows, rows_head, rows_token,
                head, token, live, HALF, PAIRS, GATHER, INVERSE,
            )  # fmt: skip
        source = x + (head * x_head + token * x_token)[:, None]
        target = y + (head * y_head + token * y_token)[:, None]
        if INTERLEAVED:  # pairs (2i, 2i + 1): neighbours are read together, then split
            channel = tl.arange(0, 2 * PAIRS).to(tl.int64)[None, :]
            mask = live[:, None] & (channel < 2 * HALF)
            both = tl.load(source + channel * x_channel, mask=mask, other=0.0)
            a, b = tl.split(tl.reshape(both, (both.shape[0], PAIRS, 2)))
            a, b = a.to(c.dtype), b.to(c.dtype)  # float32, or float64 as the tables
            both = tl.reshape(tl.join(a * c - b * s, b * c + a * s), both.shape)
            tl.store(target + channel * y_channel, both.to(y.dtype.element_ty), mask=mask)
        else:  # pairs (i, i + HALF)
            channel = tl.arange(0, PAIRS).to(tl.int64)[None, :]
            mask = live[:, None] & (channel < HALF)
            a = tl.load(source + channel * x_channel, mask=mask, other=0.0).to(c.dtype)
            b = tl.load(source + (channel + HALF) * x_channel, mask=mask, other=0.0).to(c.dtype)
            first, second = a * c - b * s, b * c + a * s
            tl.store(target + channel * y_channel, first.to(y.dtype.element_ty), mask=mask)
            second = second.to(y.dtype.element_ty)
            tl.store(target + (channel + HALF) * y_channel, second, mask=mask)
        for start in tl.static_range(0, REST, PAIRS):  # channels that pass; none in place
            channel = tl.arange(0, PAIRS).to(tl.int64)[None, :] + start
            mask = live[:, None] & (channel < REST)
            kept = tl.load(source + (channel + 2 * HALF) * x_channel, mask=mask, other=0.0)
            tl.store(target + (channel + 2 * HALF) * y_channel, kept, mask=mask)
        head += HEADS


@triton.jit
def table(
    cos, sin, table_head, table_token, table_pair, length, rows, rows_head, rows_token,
    head, token, live,
    HALF: tl.constexpr, PAIRS: tl.constexpr, GATHER: tl.constexpr, INVERSE: tl.constexpr,
):  # fmt: skip
    """Cosines and sines of a tile, [TOKENS * HEADS, PAIRS]; NaN where a position has no row."""
    if GATHER:
        at = tl.load(rows + head * rows_head + token * rows_token, mask=live, other=0)
        live = live & (at >= 0) & (at < length)  # outside the tables nothing is read
        at = at.to(tl.int64) * table_token
    else:
        at = head * table_head + token * table_token
    pair = tl.arange(0, PAIRS).to(tl.int64)[None, :]
    mask = live[:, None] & (pair < HALF)
    at = at[:, None] + pair * table_pair
    c = tl.load(cos + at, mask=mask, other=float("nan"))
    s = tl.load(sin + at, mask=mask, other=float("nan"))
    if INVERSE:  # by minus the angle: the transpose, and so the gradient
        s = -s
    return c, s
