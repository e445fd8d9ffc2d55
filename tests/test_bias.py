"""ALiBi against the authors' code, exact products, torch's attentions, and its errors."""

import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from posenc import alibi_bias, alibi_score_mod, alibi_slopes
from posenc.lab.attention import attention, causal_mask, random_head

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


def authors_slopes(n):
    """get_slopes of Press et al., as published: a recursion over powers of two."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    closest = 2 ** math.floor(math.log2(n))
    return authors_slopes(closest) + authors_slopes(2 * closest)[0::2][: n - closest]


def softmax(scores):
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


@pytest.mark.equation("eq-slopes")
@pytest.mark.parametrize("golden", GOLDEN["alibi_slopes"], ids=lambda golden: golden["id"])
def test_golden_slopes(golden):
    """Catches a first slope of 1, and 2**(-8i/n) or sorted slopes for n no power of two."""
    slopes = alibi_slopes(golden["n_heads"])
    assert slopes.dtype == np.float64
    assert slopes.shape == (golden["n_heads"],)
    known = golden["slopes"]
    np.testing.assert_allclose(slopes[: len(known)], known, rtol=0, atol=1e-10)


@pytest.mark.equation("eq-slopes")
def test_slopes_are_the_authors_for_every_number_of_heads():
    """Catches monotone slopes, and every second slope counted from the wrong one."""
    for n in range(1, 200):
        np.testing.assert_allclose(alibi_slopes(n), authors_slopes(n), rtol=2e-14)


@pytest.mark.equation("eq-slopes")
@pytest.mark.parametrize("n", (1, 2, 4, 8, 64, 128))
def test_slopes_of_a_power_of_two_are_its_powers(n):
    """Catches a running product, whose rounding grows with i."""
    right = [2.0 ** float(Fraction(-8 * i, n)) for i in range(1, n + 1)]
    np.testing.assert_allclose(alibi_slopes(n), right, rtol=2.3e-16)


@pytest.mark.equation("eq-alibi")
@pytest.mark.parametrize("golden", GOLDEN["alibi_bias"], ids=lambda golden: golden["id"])
def test_golden_biases(golden):
    """Catches a sign, a query counted from 0 in decoding, and a key form for both sides."""
    inputs = golden["slopes"], golden["query_positions"], golden["key_positions"]
    bias = alibi_bias(*inputs, bidirectional=golden["bidirectional"])
    assert bias.tolist() == golden["bias"]
    assert not np.signbit(bias[bias == 0]).any()


@pytest.mark.equation("eq-alibi")
@pytest.mark.parametrize("bidirectional", (False, True))
@pytest.mark.parametrize("n", (8, 12))
@pytest.mark.parametrize("tensor", (False, True), ids=("numpy", "torch"))
def test_float32_biases_are_the_correctly_rounded_products(n, bidirectional, tensor):
    """Catches positions, or a difference, cast before it is formed: 255 ... 260 and 131072."""
    distances = [*range(255, 261), 4095, 65537, 131071, 131072, 2**24]
    start = 10**15 + 1  # far beyond every float32, and beyond float64 if squared
    query, keys = start, [start - d for d in distances]
    slopes = alibi_slopes(n).astype(np.float32)
    if tensor:
        query, keys = torch.tensor([query]), torch.tensor(keys)
        bias = alibi_bias(torch.tensor(slopes), query, keys, bidirectional=bidirectional)
        assert bias.dtype == torch.float32
        bias = bias.numpy()
    else:
        bias = alibi_bias(slopes, [query], keys, bidirectional=bidirectional)
        assert bias.dtype == np.float32
    exact = [[np.float32(float(Fraction(float(m)) * -d)) for d in distances] for m in slopes]
    assert bias[:, 0].tolist() == [[float(b) for b in row] for row in exact]
    if n == 8:
        assert bias[0, 0, 9] == -65536
        assert len(set(bias[0, 0, :6].tolist())) == 6


@pytest.mark.equation("eq-alibi")
def test_what_a_narrow_bias_would_do():
    """Shows why the bias stays wide: in bfloat16 neighbours merge, in float16 it overflows."""
    bias = torch.as_tensor(alibi_bias([0.5], [0], range(-260, -254), bidirectional=True))[0, 0]
    assert bias.flip(0).tolist() == [-127.5, -128, -128.5, -129, -129.5, -130]
    narrow = bias.to(torch.bfloat16).flip(0).tolist()
    assert narrow == [-127.5, -128, -128, -129, -130, -130]
    assert torch.as_tensor(alibi_bias([0.5], [131072], range(131073))).half()[0, 0, 0] == -math.inf


def test_positions_at_the_ends_of_int64_do_not_wrap():
    """Catches a difference that overflows: the furthest key would look like the future."""
    low, high = -(2**63), 2**63 - 1
    assert alibi_bias([1.0], [high], [low])[0, 0, 0] == -(2.0**64)
    assert alibi_bias([1.0], [low], [high], bidirectional=True)[0, 0, 0] == -(2.0**64)
    assert alibi_bias([1.0], [high], [high - 1])[0, 0, 0] == -1


@pytest.mark.equation("eq-alibi")
@pytest.mark.parametrize("bidirectional", (False, True))
def test_positions_say_where_queries_stand(bidirectional):
    """Catches fewer queries than keys aligned at the top, and batches mixed up."""
    slopes = alibi_slopes(5)
    whole = alibi_bias(slopes, range(9), range(9), bidirectional=bidirectional)
    assert whole.shape == (5, 9, 9)
    for start in range(9):
        last = alibi_bias(slopes, range(start, 9), range(9), bidirectional=bidirectional)
        assert (last == whole[:, start:]).all()
    batch = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])  # left padding, and none
    both = alibi_bias(slopes, batch, batch, bidirectional=bidirectional)
    assert both.shape == (2, 5, 5, 5)
    for b in range(2):
        alone = alibi_bias(slopes, batch[b], batch[b], bidirectional=bidirectional)
        assert (both[b] == alone).all()
        shared = alibi_bias(slopes, batch[b], batch, bidirectional=bidirectional)
        assert (shared[b] == alone).all()
    shifted = alibi_bias(slopes, range(10**9, 10**9 + 9), range(10**9, 10**9 + 9))
    assert (shifted == alibi_bias(slopes, range(9), range(9))).all()


@pytest.mark.parametrize(
    ("slopes", "dtype"),
    [
        ([0.5, 0.25], "float64"),
        (alibi_slopes(8)[:2], "float64"),
        (alibi_slopes(8)[:2].astype(np.float32), "float32"),
        (alibi_slopes(8)[:2].astype(np.float16), "float32"),
        (torch.tensor([0.5, 0.25]), "float32"),
        (torch.tensor([0.5, 0.25], dtype=torch.float64), "float64"),
        (torch.tensor([0.5, 0.25], dtype=torch.bfloat16), "float32"),
    ],
    ids=lambda case: case if isinstance(case, str) else f"{type(case).__name__}",
)
@pytest.mark.parametrize("tensor", (False, True), ids=("python", "torch"))
def test_the_dtype_is_that_of_the_slopes_and_at_least_float32(slopes, dtype, tensor):
    """Catches a bias in 16 bits, float64 lost or brought in, and a library that changes."""
    query, keys = (torch.tensor([3]), torch.arange(4)) if tensor else ([3], range(4))
    bias = alibi_bias(slopes, query, keys)
    makes_tensor = tensor or isinstance(slopes, torch.Tensor)
    assert isinstance(bias, torch.Tensor if makes_tensor else np.ndarray)
    assert str(bias.dtype).removeprefix("torch.") == dtype
    assert bias.tolist() == [[[-1.5, -1, -0.5, 0]], [[-0.75, -0.5, -0.25, 0]]]


@pytest.mark.equation("eq-softmax-shift")
def test_a_constant_added_to_a_row_changes_no_weight():
    """Catches a softmax over another axis than the keys'; and ALiBi's two forms at once."""
    rng = np.random.default_rng(0)
    x, head, mask = rng.normal(size=(6, 8)), random_head(rng, 8), causal_mask(6)
    plain = attention(x, *head)[1]
    moved = attention(x, *head, bias=rng.normal(scale=10, size=(6, 1)))[1]
    assert np.abs(moved - plain).max() < 1.3e-14
    across = attention(x, *head, bias=rng.normal(scale=10, size=(1, 6)))[1]
    assert np.abs(across - plain).max() > 0.1

    key_form = 0.5 * np.arange(6)[None, :]
    difference = alibi_bias([0.5], range(6), range(6))[0]
    causal = [attention(x, *head, bias=bias, mask=mask)[1] for bias in (key_form, difference)]
    assert np.abs(causal[0] - causal[1]).max() < 1e-15
    both_sides = alibi_bias([0.5], range(6), range(6), bidirectional=True)[0]
    encoder = [attention(x, *head, bias=bias)[1] for bias in (key_form, both_sides)]
    assert np.abs(encoder[0] - encoder[1]).max() > 0.3


def test_the_key_form_is_wrong_for_encoders():
    """Golden value T30. Catches a bias that rewards later keys in a bidirectional model."""
    right = softmax(alibi_bias([0.5], range(3), range(3), bidirectional=True)[0])
    np.testing.assert_allclose(right[0], [0.5064804, 0.3071959, 0.1863237], atol=1e-7)
    wrong = softmax(alibi_bias([0.5], range(3), range(3))[0])
    np.testing.assert_allclose(wrong[0], right[0, ::-1], rtol=1e-15)
    assert (right == right[::-1, ::-1]).all()


@pytest.mark.parametrize(
    ("name", "far", "bound"), [("bfloat16", 300, 1.6e-2), ("float16", 3000, 2e-3)]
)
def test_narrow_scores_and_the_bias_are_added_in_float32(name, far, bound):
    """Catches a bias cast to the scores' dtype: through the visible attention and through SDPA."""
    dtype, length = getattr(torch, name), 400
    rng = np.random.default_rng(0)
    x = torch.as_tensor(rng.normal(size=(length, 16))).to(dtype)
    head = [torch.as_tensor(w).to(dtype) for w in random_head(rng, 16)]
    bias = alibi_bias(torch.tensor([0.5]), torch.arange(length), torch.arange(length)) - far
    mask = causal_mask(length, "cpu")  # the weights are those without - far
    right = attention(x.double(), *[w.double() for w in head], bias=bias.double(), mask=mask)[0]

    def error(out):
        return float((out.double() - right).abs().max())

    ours = attention(x, *head, bias=bias, mask=mask)[0]
    spoilt = attention(x, *head, bias=bias.to(dtype), mask=mask)[0]
    assert ours.dtype == dtype
    assert error(ours) <= bound
    assert error(spoilt) > 10 * bound

    q, k, v = (x @ w for w in head)
    right = attention(
        torch.eye(length, dtype=torch.float64),
        q.double(),
        k.double(),
        v.double(),
        bias=bias.double(),
        mask=mask,
    )[0]
    added = bias.masked_fill(~mask, -math.inf)
    ours, spoilt = (
        scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], attn_mask=b[None])
        for b in (added, added.to(dtype))
    )
    assert ours.dtype == dtype
    assert error(ours[0, 0]) <= bound
    assert error(spoilt[0, 0]) > 10 * bound


def test_float16_scores_survive_distance_131072():
    """Catches -inf for a whole row: its softmax is nan, or the 0 that torch puts there."""
    q = torch.ones(1, 1, 1, 8, dtype=torch.float16)
    k = torch.ones(1, 1, 4, 8, dtype=torch.float16)
    v = torch.arange(32, dtype=torch.float16).reshape(1, 1, 4, 8)
    bias = alibi_bias(torch.tensor([0.5]), torch.tensor([131075]), torch.arange(4))
    out = scaled_dot_product_attention(q, k, v, attn_mask=bias[None])
    share = softmax(np.array([0, 0.5, 1, 1.5]))
    np.testing.assert_allclose(out[0, 0, 0], share @ v[0, 0].double().numpy(), rtol=1e-3)
    spoilt = scaled_dot_product_attention(q, k, v, attn_mask=bias[None].half())
    assert not (spoilt > 0).any()


def test_numpy_users_load_no_torch():
    """Catches an import that makes NumPy wait for torch."""
    code = (
        "import sys, numpy as np, posenc\n"
        "posenc.alibi_bias(posenc.alibi_slopes(3), [1], range(2))\n"
        "posenc.relative_shift(np.ones((2, 2))), posenc.t5_bucket([1], bidirectional=True)\n"
        "posenc.learned.resize(np.ones((2, 2)), 3)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("tensor", (False, True), ids=("python", "torch"))
@pytest.mark.parametrize(
    ("slopes", "dtype"),
    [
        ([1], "float64"),
        (range(1, 2), "float64"),
        (np.array([1], dtype=np.uint8), "float64"),
        (np.array([1.0], dtype=">f4"), "float32"),
        (np.array([1.0], dtype=">f8"), "float64"),
        (np.array([1, 2, 3.0])[::-2][1:], "float64"),
        (np.broadcast_to(np.float32(1), 1), "float32"),
    ],
    ids=lambda case: None if isinstance(case, str) else f"{type(case).__name__}",
)
def test_slopes_are_real_numbers_of_any_kind(slopes, dtype, tensor):
    """Catches integers and swapped bytes refused, and arrays that torch cannot take as they are."""
    query, key = (torch.tensor([2]), torch.arange(3)) if tensor else ([2], range(3))
    bias = alibi_bias(slopes, query, key)
    assert bias.tolist() == [[[-2, -1, 0]]]
    assert str(bias.dtype).removeprefix("torch.") == dtype


def test_integer_tensors_are_slopes_too():
    """Catches a tensor of integers refused where a list of them is taken."""
    for dtype in (torch.int64, torch.uint8):
        bias = alibi_bias(torch.tensor([1], dtype=dtype), [2], range(3))
        assert bias.dtype == torch.float64
        assert bias.tolist() == [[[-2, -1, 0]]]


def test_an_encoder_may_have_fewer_keys_than_queries():
    """Catches the causal form's check in both forms."""
    bias = alibi_bias([0.5], range(5), range(3), bidirectional=True)
    assert bias[0, 4].tolist() == [-2, -1.5, -1]


def test_a_default_device_moves_nothing():
    """Catches slopes that take a way over the default device: a meta tensor has no data."""
    here = torch.ones(2)
    query, key = torch.arange(3), torch.arange(3)
    right = alibi_bias(here, query, key)
    with torch.device("meta"):
        assert torch.equal(alibi_bias(here, query, key), right)
        assert torch.equal(alibi_bias([1.0, 1.0], query, key), right.double())


def test_gradients_reach_slopes_that_are_learned():
    """Catches slopes turned into constants."""
    slopes = torch.tensor([0.5, 0.25], requires_grad=True)
    alibi_bias(slopes, torch.tensor([3]), torch.arange(4)).sum().backward()
    assert slopes.grad.tolist() == [-6, -6]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_compiled_in_one_graph():
    """Catches graph breaks, and a compilation for every new length."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(alibi_bias, fullgraph=True, backend=counter)
    slopes = torch.tensor([0.5, 0.25])
    for start, length in ((0, 5), (3, 9), (1, 17), (9, 33), (2, 65)):
        query, key = torch.arange(start, length), torch.arange(length)
        assert torch.equal(compiled(slopes, query, key), alibi_bias(slopes, query, key))
    assert counter.frame_count <= 3
    meta = alibi_bias(slopes.to("meta"), torch.arange(3, device="meta"), range(4))
    assert meta.shape == (2, 3, 4)
    assert meta.device.type == "meta"


@pytest.mark.equation("eq-slopes")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_slopes_in_a_graph_are_those_outside():
    """Catches integers that torch.compile divides in float32: half of 12 slopes off by 1e-8."""
    for n in (12, 16):
        torch._dynamo.reset()
        made = torch.compile(lambda n=n: torch.as_tensor(alibi_slopes(n)), backend="eager")()
        assert made.dtype == torch.float64
        assert made.tolist() == alibi_slopes(n).tolist()
    bias = torch.compile(lambda: alibi_bias(alibi_slopes(12), [1], range(2)), backend="eager")()
    assert bias.dtype == np.float64
    assert bias.tolist() == alibi_bias(alibi_slopes(12), [1], range(2)).tolist()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("slopes", ([0.5], np.array([0.5])), ids=("list", "numpy"))
def test_slopes_that_are_no_tensor_are_refused_in_one_graph(slopes):
    """Catches NumPy inside a graph, where its arithmetic is another."""
    torch._dynamo.reset()
    compiled = torch.compile(alibi_bias, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="slopes must be a torch tensor while torch traces"):
        compiled(slopes, torch.arange(2), torch.arange(2))


@pytest.mark.equation("eq-alibi")
@pytest.mark.filterwarnings("ignore:.*flex_attention called without torch.compile:UserWarning")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("bidirectional", (False, True))
@pytest.mark.parametrize("queries", (1, 5, 13))
@pytest.mark.parametrize("name", ("float32", "float64", "bfloat16"))
def test_flex_attention_adds_the_explicit_bias(bidirectional, queries, name):
    """Catches a score_mod with another sign, head or alignment than the explicit bias."""
    heads, keys, dtype = 3, 13, getattr(torch, name)
    rng = torch.Generator().manual_seed(0)
    q = torch.randn(2, heads, queries, 8, generator=rng).to(dtype)
    k, v = (torch.randn(2, heads, keys, 8, generator=rng).to(dtype) for _ in range(2))
    slopes = torch.tensor(alibi_slopes(heads), dtype=torch.promote_types(dtype, torch.float32))
    offset = torch.tensor(keys - queries)
    add = alibi_score_mod(slopes, offset=offset, bidirectional=bidirectional)

    def score_mod(score, b, h, i, j):
        added = add(score, b, h, i, j)
        return added if bidirectional else torch.where(j <= i + offset, added, -math.inf)

    at, keys_at = torch.arange(keys - queries, keys), torch.arange(keys)
    bias = alibi_bias(slopes, at, keys_at, bidirectional=bidirectional)
    if not bidirectional:
        bias = bias.masked_fill(keys_at > at[:, None], -math.inf)
    right = scaled_dot_product_attention(q, k, v, attn_mask=bias[None])
    bound = {"float32": 1e-6, "float64": 1e-14, "bfloat16": 1.6e-2}[name]
    assert (flex_attention(q, k, v, score_mod=score_mod) - right).abs().max() <= bound


def test_a_score_mod_takes_numbers_from_anywhere():
    """Catches NumPy slopes refused, an offset off by one, and a score that changes its dtype."""
    score = torch.tensor(1.0)
    for slopes in ([0.5, 0.25], alibi_slopes(8)[:2], torch.tensor([0.5, 0.25])):
        for offset in (9, torch.tensor(9)):
            out = alibi_score_mod(slopes, offset=offset)(score, 0, 1, 2, 4)
            assert out.dtype == torch.float32
            assert out == 1 - 0.25 * 7
    assert alibi_score_mod([0.5], bidirectional=True)(score, 0, 0, 2, 4) == 0
    assert alibi_score_mod([0.5], device="meta")(score.to("meta"), 0, 0, 2, 4).is_meta


def bias_of(slopes):
    """The bias of these slopes for torch positions."""
    return alibi_bias(slopes, torch.arange(2), torch.arange(2))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: alibi_slopes(0), ValueError, "n_heads must be at least 1, got 0"),
        (lambda: alibi_slopes(-8), ValueError, "n_heads must be at least 1, got -8"),
        (lambda: alibi_slopes(8.0), TypeError, "n_heads must be an integer, got float"),
        (lambda: alibi_slopes(True), TypeError, "n_heads must be an integer, got bool"),
        (
            lambda: alibi_bias([0.5], [3.0], range(4)),
            TypeError,
            "query_positions must be integers, got float: floating dtypes merge neighbours",
        ),
        (
            lambda: alibi_bias([0.5], range(4), torch.arange(4.0)),
            TypeError,
            "key_positions must be integers, got float32",
        ),
        (
            lambda: alibi_bias([0.5], np.ones(4, dtype=bool), range(4)),
            TypeError,
            "query_positions must be integers that fit in int64, got bool",
        ),
        (
            lambda: alibi_bias([0.5], 9, range(10)),
            ValueError,
            r"query_positions must have shape \[Tq\] or \[B, Tq\], got \[\]",
        ),
        (
            lambda: alibi_bias([0.5], range(5), range(4)),
            ValueError,
            "key_positions must not be fewer than query_positions .* got 4 and 5",
        ),
        (
            lambda: alibi_bias([0.5], np.zeros((2, 4), int), np.zeros((3, 4), int)),
            ValueError,
            "must have the same batch, got 2 and 3",
        ),
        (
            lambda: alibi_bias([0.5], np.arange(4), torch.arange(4)),
            TypeError,
            "query_positions and key_positions must both be NumPy's, or both torch's",
        ),
        (
            lambda: alibi_bias(torch.tensor([0.5]), np.arange(4), np.arange(4)),
            TypeError,
            "slopes and query_positions must both be NumPy's, or both torch's",
        ),
        (
            lambda: alibi_bias([0.5], torch.arange(4), torch.arange(4, device="meta")),
            ValueError,
            "query_positions and key_positions must be on one device, got cpu and meta",
        ),
        (
            lambda: alibi_bias(torch.ones(1, device="meta"), torch.arange(4), range(4)),
            ValueError,
            "slopes and query_positions must be on one device, got meta and cpu",
        ),
        (
            lambda: alibi_bias(0.5, range(4), range(4)),
            ValueError,
            r"slopes must have shape \[H\], one for each head, got \[\]",
        ),
        (lambda: alibi_bias(["a"], [0], [0]), TypeError, "slopes must be real numbers, got"),
        (lambda: alibi_bias([True], [0], [0]), TypeError, "slopes must be real numbers, got bool"),
        (lambda: bias_of([1, True]), TypeError, "slopes must be real numbers, got bool"),
        (lambda: bias_of(torch.tensor([True])), TypeError, "slopes must be real numbers, got bool"),
        (lambda: bias_of([1j]), TypeError, "slopes must be real numbers, got complex128"),
        (
            lambda: bias_of(np.array([0.5], dtype=np.longdouble)),
            TypeError,
            "slopes must be real numbers, got .* float32, float64 are allowed",
        ),
        (
            lambda: bias_of(torch.tensor([0.5]).to(torch.float8_e4m3fn)),
            TypeError,
            "slopes must be real numbers, got float8_e4m3fn: integers or bfloat16, float16",
        ),
        (
            lambda: bias_of([torch.tensor(0.5, requires_grad=True)]),
            TypeError,
            "slopes must be one tensor or numbers, got a list of tensors",
        ),
        (
            lambda: bias_of(np.ma.array([0.5, 0.25], mask=[False, True])),
            TypeError,
            "slopes must not be masked",
        ),
        (
            lambda: bias_of([[0.5], [0.5, 0.25]]),
            ValueError,
            r"slopes must have shape \[H\], one for each head, got a ragged list",
        ),
        (lambda: bias_of([0.5, np.nan]), ValueError, "slopes must be finite, got nan or inf"),
        (lambda: bias_of(np.array([np.inf])), ValueError, "slopes must be finite, got nan or inf"),
        (
            lambda: alibi_bias([0.5], [0], [0], bidirectional="no"),
            TypeError,
            "bidirectional must be True or False, got str",
        ),
        (
            lambda: alibi_score_mod([0.5], bidirectional=None),
            TypeError,
            "bidirectional must be True or False, got NoneType",
        ),
        (
            lambda: alibi_score_mod([0.5], offset=1.0),
            TypeError,
            "offset must be an integer, got float",
        ),
        (
            lambda: alibi_score_mod([0.5], offset=torch.ones(2)),
            TypeError,
            r"offset must be an integer, got torch.float32 \[2\]",
        ),
        (
            lambda: alibi_score_mod([0.5], offset=2**31),
            ValueError,
            r"offset must lie in -2\*\*30 ... 2\*\*30, got 2147483648",
        ),
        (lambda: alibi_score_mod([[0.5]]), ValueError, r"slopes must have shape \[H\]"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches a broadcast over the wrong axis, rounded positions, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        call()
