"""Positions: padding, packing, shards, decoding and eviction, each against rotated scores."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from posenc import apply_rope, frequencies, phases, positions, rope_tables

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())
PAIRINGS = pytest.mark.parametrize("interleaved", (False, True))
WIDTHS = pytest.mark.parametrize("rotary_dim", (16, 8))


def draw(*shape, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape)).float()


def rotated(x, at, interleaved, rotary_dim):
    """Turn x [..., T, 16] by int64 positions."""
    cos, sin = rope_tables(at, frequencies(rotary_dim))
    return apply_rope(x, cos, sin, interleaved=interleaved)


@pytest.mark.parametrize("golden", GOLDEN["positions"], ids=lambda golden: golden["id"])
@pytest.mark.parametrize("library", ("numpy", "torch"))
def test_golden_positions(golden, library):
    """Golden values T6, T9, T10. Catches an arange over padding, and documents counted on."""
    make = np.array if library == "numpy" else torch.tensor
    found = getattr(positions, golden["call"])(make(golden["argument"]))
    assert isinstance(found, np.ndarray if library == "numpy" else torch.Tensor)
    assert found.tolist() == golden["positions"]
    assert str(found.dtype).removeprefix("torch.") == "int64"


@PAIRINGS
@WIDTHS
def test_left_padded_rows_equal_unpadded_ones(interleaved, rotary_dim):
    """Kind D. Golden value T9: catches positions that count padding, in prefill and decoding."""
    x, pads = draw(1, 2, 6, 16), 3
    mask = torch.tensor([[0] * pads + [1] * 6, [1] * 9])
    at = positions.from_attention_mask(mask)
    padded = torch.cat([draw(1, 2, pads, 16, seed=1), x], 2).expand(2, 2, 9, 16)
    y = rotated(padded, at, interleaved, rotary_dim)
    alone = rotated(x, torch.arange(6), interleaved, rotary_dim)
    assert torch.equal(y[:1, :, pads:], alone)
    assert not torch.equal(y[1:, :, pads:], alone)  # a mask-blind arange
    following = positions.decode(mask=mask)
    assert following.tolist() == [[6], [9]]
    assert positions.decode(at[:, -1] + 1).tolist() == following.tolist()
    new = draw(2, 2, 1, 16, seed=2)
    decoded = rotated(new, following, interleaved, rotary_dim)
    assert torch.equal(decoded[0], rotated(new[0], torch.tensor([6]), interleaved, rotary_dim))


@PAIRINGS
@WIDTHS
def test_packed_documents_equal_separate_ones(interleaved, rotary_dim):
    """Kind D. Golden value T10: catches a second document that starts at the first one's end."""
    cu_seqlens = torch.tensor([0, 5, 9, 9, 14])
    x = draw(2, 14, 16)
    x[:, 9:14] = x[:, :5]  # the last document is the first once more
    y = rotated(x, positions.packed(cu_seqlens), interleaved, rotary_dim)
    for start, stop in ((0, 5), (5, 9), (9, 14)):
        alone = rotated(x[:, start:stop], torch.arange(stop - start), interleaved, rotary_dim)
        assert torch.equal(y[:, start:stop], alone)
    assert torch.equal(y[:, :5], y[:, 9:])


def test_positions_alone_do_not_keep_documents_apart():
    """Kind D. Golden value T10: the last document, with a mask and without one."""
    cu_seqlens = np.array([0, 5, 9])
    at = positions.packed(cu_seqlens)
    x, v = draw(9, 16).double().numpy(), draw(9, 4, seed=1).double().numpy()
    cos, sin = rope_tables(at, frequencies(16), dtype=np.float64)
    turned = apply_rope(x, cos, sin, interleaved=False)
    document = np.searchsorted(cu_seqlens, np.arange(9), side="right")
    causal = np.tri(9, dtype=bool)

    def attended(values, mask):
        scores = np.where(mask, turned @ turned.T / 4, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        return shares / shares.sum(-1, keepdims=True) @ values

    changed = v.copy()
    changed[:5] += 1  # the first document says something else
    apart = causal & (document[:, None] == document[None, :])
    assert (attended(v, apart)[5:] == attended(changed, apart)[5:]).all()
    assert np.abs(attended(v, causal)[5:] - attended(changed, causal)[5:]).max() > 0.1


@PAIRINGS
@WIDTHS
@pytest.mark.parametrize("world_size", (1, 2, 4))
def test_shards_equal_the_whole(interleaved, rotary_dim, world_size):
    """Kind D. Catches ranks that start again at 0, and chunks given to another rank."""
    x = draw(2, 16, 16)
    whole = rotated(x, torch.arange(16), interleaved, rotary_dim)
    shards = [positions.zigzag(16, world_size, r, device="cpu") for r in range(world_size)]
    assert sorted(torch.cat(shards).tolist()) == list(range(16))
    for at in shards:
        assert torch.equal(rotated(x[:, at], at, interleaved, rotary_dim), whole[:, at])
    work = [int(at.sum()) for at in shards]  # keys that causal queries see
    assert len(set(work)) == 1
    both = [positions.zigzag(8, 2, 1), positions.zigzag(4, 2, 1)]  # two documents, each zigzag
    assert np.concatenate(both).tolist() == [2, 3, 4, 5, 1, 2]


def test_decoding_goes_on_where_the_prompt_ended():
    """Kind C. Golden value T6: catches n - 1, n + 1, 0, and one length for a whole batch."""
    assert positions.decode(10).tolist() == [10]
    assert positions.decode([3, 5], new_tokens=3).tolist() == [[3, 4, 5], [5, 6, 7]]
    assert positions.decode(np.uint8(200), new_tokens=100)[-1] == 299
    far = positions.decode(torch.tensor([2**53]), new_tokens=2)
    assert far.tolist() == [[2**53, 2**53 + 1]]
    here = positions.decode(3, device="cpu")
    assert isinstance(here, torch.Tensor)
    assert here.tolist() == [3]
    empty = positions.decode(mask=np.zeros((2, 0), bool))
    assert empty.tolist() == [[0], [0]]


@PAIRINGS
@WIDTHS
def test_evicted_caches_read_either_way(interleaved, rotary_dim):
    """Kind C. Catches an offset that counts retained rows, and keys not rotated to new places."""
    n, sinks, window, f = 20, 2, 5, frequencies(rotary_dim)
    raw = draw(2, 21, 16)
    keys = rotated(raw[:, :n], torch.arange(n), interleaved, rotary_dim)
    gone = positions.evict(n, sinks=sinks, window=window, device="cpu")
    assert gone.kept.tolist() == gone.true.tolist() == [0, 1, 15, 16, 17, 18, 19]
    assert gone.close.tolist() == list(range(7))
    kept = keys[:, gone.kept]

    def scores(query_at, keys):
        query = rotated(raw[:, 20:], torch.tensor([query_at]), interleaved, rotary_dim)
        return (query.double() @ keys.double().mT)[:, 0]

    whole = scores(n, keys)
    assert torch.equal(scores(n, kept), whole[:, gone.kept])  # true positions: as before
    assert (scores(len(gone.kept), kept) - whole[:, gone.kept]).abs().max() > 0.1  # kind 64

    moved = apply_rope(kept, *phases(gone.shift, f), interleaved=interleaved)
    fresh = rotated(raw[:, gone.kept], gone.close, interleaved, rotary_dim)
    assert (moved - fresh).abs().max() <= 1e-6
    recent = scores(len(gone.kept), moved)[:, sinks:]
    assert (recent - whole[:, gone.kept][:, sinks:]).abs().max() <= 1e-5  # distances kept
    forgotten = scores(len(gone.kept), kept)
    assert (forgotten - scores(len(gone.kept), moved)).abs().max() > 0.1  # kind 66


def test_the_last_positions_of_int64_are_positions():
    """Catches a sum that wraps round, and a check that refuses what still fits."""
    last = 2**63 - 1
    assert positions.decode([last - 1], new_tokens=2).tolist() == [[last - 1, last]]
    assert positions.decode(torch.tensor(last)).tolist() == [last]
    assert positions.evict([-last, 0], sinks=1, window=1).shift.tolist() == [last, 1]
    assert positions.evict([last, 0], sinks=1, window=1).shift.tolist() == [-last, 1]


def test_evictions_follow_one_another():
    """Catches positions of a second eviction counted from the rows of the first."""
    first = positions.evict(9, sinks=1, window=3)
    assert first.true.tolist() == [0, 6, 7, 8]
    true = np.append(first.true, positions.decode(9))
    second = positions.evict(true, sinks=1, window=3)
    assert second.kept.tolist() == [0, 2, 3, 4]
    assert second.true.tolist() == [0, 7, 8, 9]
    close = np.append(first.close, positions.decode(len(first.close)))
    second = positions.evict(close, sinks=1, window=3)
    assert second.shift.tolist() == [0, -1, -1, -1]
    small = positions.evict(range(3), sinks=2, window=4)
    assert small.kept.tolist() == [0, 1, 2]
    assert not small.shift.any()
    batch = positions.evict(torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]), sinks=0, window=2)
    assert batch.true.tolist() == [[1, 2], [3, 4]]
    assert batch.shift.tolist() == [[-1, -1], [-3, -3]]


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: positions.from_attention_mask(np.ones(3)),
            TypeError,
            "mask must be bool or integers, not 0 at tokens, got float64",
        ),
        (
            lambda: positions.from_attention_mask([1, 1]),
            TypeError,
            "mask must be an array or a tensor, got list",
        ),
        (
            lambda: positions.from_attention_mask(np.array(1)),
            ValueError,
            r"mask must have shape \[..., T\], got \[\]",
        ),
        (
            lambda: positions.packed([0, 3.0]),
            TypeError,
            "cu_seqlens must be integers, got float",
        ),
        (
            lambda: positions.packed([1, 3]),
            ValueError,
            r"cu_seqlens must start at 0 and never fall, got \[1, 3\]",
        ),
        (
            lambda: positions.packed([0, 3, 2]),
            ValueError,
            r"cu_seqlens must start at 0 and never fall, got \[0, 3, 2\]",
        ),
        (lambda: positions.packed(3), ValueError, r"cu_seqlens must have shape \[n \+ 1\], got"),
        (
            lambda: positions.packed(np.array([0, 3]), device="cpu"),
            TypeError,
            "cu_seqlens are a NumPy array; device must stay None",
        ),
        (
            lambda: positions.zigzag(10, 2, 0),
            ValueError,
            r"seq_len must be a multiple of 2 \* world_size = 4, got 10",
        ),
        (
            lambda: positions.zigzag(8, 2, 2),
            ValueError,
            "rank must be less than world_size = 2, got 2",
        ),
        (lambda: positions.zigzag(8, 2, 1.0), TypeError, "rank must be an integer, got float"),
        (lambda: positions.decode(), TypeError, "decode takes lengths or mask, one of the two"),
        (
            lambda: positions.decode(3, mask=np.ones(3, bool)),
            TypeError,
            "decode takes lengths or mask, one of the two",
        ),
        (
            lambda: positions.decode([2, -1]),
            ValueError,
            "lengths must not be negative, got -1",
        ),
        (
            lambda: positions.decode(torch.tensor([2.0])),
            TypeError,
            "lengths must be integers, got float32",
        ),
        (
            lambda: positions.decode(3, new_tokens=0),
            ValueError,
            "new_tokens must be at least 1, got 0",
        ),
        (
            lambda: positions.evict(9, sinks=-1, window=3),
            ValueError,
            "sinks must be at least 0, got -1",
        ),
        (
            lambda: positions.evict(9, sinks=1, window=0),
            ValueError,
            "window must be at least 1, got 0",
        ),
        (
            lambda: positions.evict(True, sinks=1, window=1),
            TypeError,
            "positions must be integers that fit in int64, got bool",
        ),
        (
            lambda: positions.evict(torch.tensor(9), sinks=1, window=1),
            ValueError,
            r"positions must have shape \[\*batch, T\], got \[\]",
        ),
        (
            lambda: positions.decode([7, 2**63 - 2], new_tokens=3),
            ValueError,
            f"lengths must leave room for 3 positions in int64, got {2**63 - 2}",
        ),
        (
            lambda: positions.evict(torch.tensor([-(2**63), 0]), sinks=1, window=1),
            ValueError,
            f"positions must leave room for a shift in int64, got {-(2**63)}",
        ),
        (
            lambda: positions.packed(torch.tensor([0, 1], device="meta")),
            ValueError,
            "cu_seqlens must have values: they say how long the result is",
        ),
        (
            lambda: torch.func.vmap(positions.packed)(torch.tensor([[0, 1], [0, 2]])),
            ValueError,
            "cu_seqlens must have values: they say how long the result is",
        ),
        (
            lambda: positions.evict(-1, sinks=1, window=1),
            ValueError,
            "positions must be at least 0, got -1",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches additive masks taken for masks, lengths for cumulative ones, and lost tokens."""
    with pytest.raises(error, match=sentence):
        call()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_positions_are_made_inside_a_compiled_model():
    """Kind G. Catches graph breaks where a server decodes."""
    torch._dynamo.reset()

    def step(mask, lengths):
        gone = positions.evict(lengths[:, None] + torch.arange(7), sinks=1, window=3)
        return (
            positions.from_attention_mask(mask),
            positions.decode(lengths, new_tokens=2),
            positions.decode(mask=mask),
            gone.shift,
        )

    compiled = torch.compile(step, fullgraph=True, backend="eager")
    inputs = torch.tensor([[0, 1, 1], [1, 1, 1]]), torch.tensor([4, 9])
    for found, right in zip(compiled(*inputs), step(*inputs), strict=True):
        assert torch.equal(found, right)
