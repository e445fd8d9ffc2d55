"""T5's buckets against exact integers and published edges; Transformer-XL's shift, by hand."""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import relative_shift, t5_bucket
from posenc.lab.attention import attention, random_head

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


def by_the_formula(relative, *, bidirectional, num_buckets=32, max_distance=128):
    """The published formula, one number at a time, with 60 digits where it takes a logarithm."""
    n, first = num_buckets, 0
    if bidirectional:
        n //= 2
        first = n if relative > 0 else 0
        distance = abs(relative)
    else:
        distance = max(-relative, 0)
    exact = n // 2
    if distance < exact:
        return first + distance
    with mpmath.workdps(60):
        share = mpmath.log(mpmath.mpf(distance) / exact) / mpmath.log(
            mpmath.mpf(max_distance) / exact
        )
        step = int(mpmath.floor(share * (n - exact) + mpmath.mpf(10) ** -40))
    return first + min(exact + step, n - 1)


@pytest.mark.equation("eq-t5-bucket")
@pytest.mark.parametrize("golden", GOLDEN["t5_edges"], ids=lambda golden: golden["id"])
def test_buckets_begin_at_the_published_distances(golden):
    """Catches a boundary off by one, the other sign's half, and exact powers rounded down."""
    edges, both = golden["edges"], golden["bidirectional"]
    distance = np.arange(1000)
    right = np.searchsorted(edges, distance, side="right") - 1
    assert (t5_bucket(-distance, bidirectional=both) == right).all()
    if both:
        later = t5_bucket(distance[1:], bidirectional=True)
        assert (later == 16 + right[1:]).all()
        assert later[[0, 7, 90, 998]].tolist() == [17, 24, 31, 31]
    else:
        assert (t5_bucket(distance, bidirectional=False) == 0).all()


@pytest.mark.equation("eq-t5-bucket")
@given(
    relative=st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300),
    both=st.booleans(),
    half=st.integers(2, 40),
    beyond=st.integers(1, 10**6),
)
def test_every_bucket_follows_the_formula(relative, both, half, beyond):
    """Catches a logarithm rounded at a boundary, abs(-2**63), and sizes other than T5's."""
    size = {"num_buckets": 2 * half, "max_distance": half + beyond}
    found = t5_bucket(relative, bidirectional=both, **size)
    assert found == by_the_formula(relative, bidirectional=both, **size)


@pytest.mark.equation("eq-t5-bucket")
def test_the_ends_of_int64_have_the_last_buckets():
    """Catches abs(-2**63), which is -2**63."""
    ends = [-(2**63), 2**63 - 1]
    for relative in (ends, torch.tensor(ends)):
        assert t5_bucket(relative, bidirectional=True).tolist() == [15, 31]
        assert t5_bucket(relative, bidirectional=False).tolist() == [31, 0]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_buckets_are_not_laid_out_in_a_graph():
    """Catches big integers traced: a graph has none, and their powers wrap or fail inside."""
    torch._dynamo.reset()
    bucket = torch.compile(
        lambda r: t5_bucket(r, bidirectional=True), backend="eager", fullgraph=True
    )
    with pytest.raises(Exception, match=r"use posenc.modules.T5Bias"):
        bucket(torch.arange(3))


@pytest.mark.equation("eq-t5-bucket")
@pytest.mark.parametrize("power", (3, 5, 10))
def test_exact_powers_open_their_bucket(power):
    """Catches int(4.999...): max_distance 8 * r**8 puts a boundary on every 8 * r**j."""
    size = {"bidirectional": True, "num_buckets": 32, "max_distance": 8 * power**8}
    for j in range(1, 8):
        at = 8 * power**j
        assert t5_bucket([-at + 1, -at], **size).tolist() == [7 + j, 8 + j]


@pytest.mark.parametrize("both", (False, True))
@pytest.mark.parametrize("name", ("int64", "int32", "int8", "uint8"))
def test_torch_gives_the_same_and_integers_stay_integers(both, name):
    """Catches a bucket of another dtype, int8 that overflows, and a transposed view."""
    relative = torch.arange(0 if name == "uint8" else -128, 128 if name != "int8" else 127)
    relative = relative.to(getattr(torch, name)).reshape(-1, 1).expand(-1, 3).T
    found = t5_bucket(relative, bidirectional=both)
    assert found.dtype == torch.int64
    assert found.shape == relative.shape
    assert (found.numpy() == t5_bucket(relative.numpy(), bidirectional=both)).all()
    right = [by_the_formula(int(r), bidirectional=both) for r in relative[0]]
    assert found[2].tolist() == right
    assert t5_bucket(relative.to("meta"), bidirectional=both).is_meta


@pytest.mark.equation("eq-relative-shift")
def test_the_published_example_of_the_shift():
    """Catches a column dropped for a row, and zeros on the other side."""
    rows = np.array([[3, 2, 1, 0]] * 4)
    right = [[0, 0, 3, 2], [1, 0, 0, 3], [2, 1, 0, 0], [3, 2, 1, 0]]
    assert relative_shift(rows).tolist() == right
    assert relative_shift(torch.tensor(rows)).tolist() == right


@pytest.mark.equation("eq-relative-shift")
@pytest.mark.parametrize("batch", ((), (2,), (2, 3)))
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 6), (4, 4), (3, 7)])
def test_every_visible_score_stands_under_its_key(batch, queries, keys):
    """Catches an alignment at the top when a memory makes more keys than queries."""
    scores = np.random.default_rng(0).normal(size=(*batch, queries, keys))
    before = scores.copy()
    found = relative_shift(scores)
    for i in range(queries):
        for j in range(i + keys - queries + 1):
            distance = i + keys - queries - j
            assert (found[..., i, j] == scores[..., i, keys - 1 - distance]).all()
    assert (scores == before).all()
    turned = torch.tensor(scores).mT.contiguous().mT
    assert (relative_shift(turned).numpy() == found).all()


@pytest.mark.parametrize("name", ("bool", "int32", "float16", "bfloat16", "float32", "complex64"))
def test_the_shift_keeps_the_dtype(name):
    """Catches a column of zeros of another dtype, which would widen the rest."""
    scores = torch.ones(2, 3, dtype=getattr(torch, name))
    assert relative_shift(scores).dtype == scores.dtype
    if name != "bfloat16":
        assert relative_shift(scores.numpy()).dtype == name


def test_gradients_pass_through_the_shift():
    """Catches a shift that detaches."""
    scores = torch.zeros(3, 3, requires_grad=True)
    relative_shift(scores).tril().sum().backward()
    assert scores.grad.tolist() == [[0, 0, 1], [0, 1, 1], [1, 1, 1]]


@pytest.mark.equation("eq-shaw")
def test_clipped_distances_as_a_bias_are_shaws_keys():
    """Catches a clip on the wrong side of the sum, or a bias that is not scaled with the scores."""
    tokens, dim, limit, rng = 9, 6, 2, np.random.default_rng(0)
    x, (w_q, w_k, w_v) = rng.normal(size=(tokens, dim)), random_head(rng, dim)
    rows = rng.normal(size=(2 * limit + 1, dim))  # one for each of -2 ... 2
    distance = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
    clipped = np.clip(distance, -limit, limit) + limit
    bias = np.einsum("id,ijd->ij", x @ w_q, rows[clipped]) / np.sqrt(dim)
    scores = attention(x, w_q, w_k, w_v, bias=bias)[2]
    for i in range(tokens):
        for j in range(tokens):
            row = rows[limit + max(-limit, min(limit, j - i))]
            right = (x[i] @ w_q) @ (x[j] @ w_k + row) / np.sqrt(dim)
            assert abs(scores[i, j] - right) < 1e-13


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: t5_bucket(1.0, bidirectional=True),
            TypeError,
            "relative_position must be integers, got float",
        ),
        (
            lambda: t5_bucket(torch.ones(2, dtype=torch.bool), bidirectional=True),
            TypeError,
            "relative_position must be integers that fit in int64, got bool",
        ),
        (
            lambda: t5_bucket(1, bidirectional=True, num_buckets=31),
            ValueError,
            "num_buckets must be even if bidirectional, got 31",
        ),
        (
            lambda: t5_bucket(1, bidirectional=True, num_buckets=2),
            ValueError,
            "num_buckets must be at least 4, got 2",
        ),
        (
            lambda: t5_bucket(1, bidirectional=False, num_buckets=1),
            ValueError,
            "num_buckets must be at least 2, got 1",
        ),
        (
            lambda: t5_bucket(1, bidirectional=False, max_distance=16),
            ValueError,
            "max_distance must exceed the 16 distances with a bucket of their own, got 16",
        ),
        (
            lambda: t5_bucket(1, bidirectional=True, max_distance=128.0),
            TypeError,
            "max_distance must be an integer, got float",
        ),
        (
            lambda: t5_bucket(1, bidirectional=True, max_distance=2**63),
            ValueError,
            "max_distance must fit in int64, got 9223372036854775808",
        ),
        (
            lambda: t5_bucket(1, bidirectional=None),
            TypeError,
            "bidirectional must be True or False, got NoneType",
        ),
        (
            lambda: relative_shift(np.ma.ones((2, 2))),
            TypeError,
            "scores must not be masked",
        ),
        (
            lambda: relative_shift([[1, 2]]),
            TypeError,
            "scores must be an array or a tensor, got list",
        ),
        (
            lambda: relative_shift(np.ones(3)),
            ValueError,
            r"scores must have shape \[..., Tq, Tk\], got \[3\]",
        ),
        (
            lambda: relative_shift(torch.ones(4, 3)),
            ValueError,
            "scores must have at least as many keys as queries, got 3 < 4",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches a division by zero buckets, rounded distances, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        call()
