"""The visible attention against torch's own, and what attention is and is not without positions."""

import doctest

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import posenc.lab.attention
from posenc.lab.attention import attention, causal_mask, random_head


def drawn(tokens=7, dim=8, head_dim=None, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, dim)), *random_head(rng, dim, head_dim)


def as_torch(*arrays, dtype=None):
    return [torch.as_tensor(each).to(dtype or torch.float64) for each in arrays]


def by_hand(x, w_q, w_k, w_v, bias, mask):
    """Row by row and key by key, from the formula."""
    out, weights = [], []
    for i, row in enumerate(x):
        keys = [j for j in range(len(x)) if mask is None or mask[i, j]]
        scores = [
            (row @ w_q) @ (x[j] @ w_k) / np.sqrt(w_q.shape[1]) + (0 if bias is None else bias[i, j])
            for j in keys
        ]
        shares = np.exp(scores) / np.exp(scores).sum()
        weights.append(np.zeros(len(x)))
        weights[-1][keys] = shares
        out.append(sum(share * (x[j] @ w_v) for share, j in zip(shares, keys, strict=True)))
    return np.array(out), np.array(weights)


@pytest.mark.equation("eq-attention")
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("biased", (False, True))
def test_every_weight_follows_the_formula(causal, biased):
    """Catches a bias divided by sqrt(d_k), a mask upside down, and a softmax over queries."""
    inputs = drawn(head_dim=4)
    bias = np.random.default_rng(1).normal(size=(7, 7)) if biased else None
    mask = causal_mask(7) if causal else None
    out, weights, scores = attention(*inputs, bias=bias, mask=mask)
    right_out, right_weights = by_hand(*inputs, bias, mask)
    np.testing.assert_allclose(out, right_out, rtol=0, atol=1e-14)
    np.testing.assert_allclose(weights, right_weights, rtol=0, atol=1e-15)
    assert np.isfinite(scores).all()
    assert ((weights > 0) == (np.ones((7, 7)) if mask is None else mask)).all()


@pytest.mark.equation("eq-attention")
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("biased", (False, True))
@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float64, 1e-14), (torch.float32, 5e-6)], ids=("fp64", "fp32")
)
def test_torchs_own_attention_gives_the_same(causal, biased, dtype, bound):
    """Catches any difference from scaled_dot_product_attention: scale, bias, mask or dtype."""
    inputs = as_torch(*drawn(head_dim=4), dtype=dtype)
    x, w_q, w_k, w_v = inputs
    rng = np.random.default_rng(1)
    bias = torch.as_tensor(rng.normal(size=(7, 7))).to(dtype) if biased else None
    mask = causal_mask(7, "cpu") if causal else None
    hidden = torch.zeros(7, 7, dtype=dtype)
    if mask is not None:
        hidden = hidden.masked_fill(~mask, -torch.inf)
    right = scaled_dot_product_attention(
        (x @ w_q)[None],
        (x @ w_k)[None],
        (x @ w_v)[None],
        attn_mask=(hidden if bias is None else hidden + bias)[None],
    )[0]
    out = attention(*inputs, bias=bias, mask=mask)[0]
    assert out.dtype == dtype
    assert (out - right).abs().max() <= bound


@pytest.mark.equation("eq-equivariance")
def test_without_positions_a_permuted_sentence_gives_permuted_rows():
    """Catches anything that depends on the order of rows; a causal mask and a bias do."""
    x, *head = drawn(tokens=12)
    order = np.random.default_rng(1).permutation(12)
    plain = attention(x, *head)[0]
    assert np.abs(attention(x[order], *head)[0] - plain[order]).max() < 1e-14
    mask = causal_mask(12)
    causal = attention(x, *head, mask=mask)[0]
    assert np.abs(attention(x[order], *head, mask=mask)[0] - causal[order]).max() > 0.1
    slope = -np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    biased = attention(x, *head, bias=slope)[0]
    assert np.abs(attention(x[order], *head, bias=slope)[0] - biased[order]).max() > 0.1


@pytest.mark.equation("eq-prefix-invariance")
def test_with_a_causal_mask_a_row_knows_its_prefix_only():
    """Catches a mask that lets one row look ahead, or a softmax over hidden keys."""
    x, *head = drawn(tokens=9)
    whole = attention(x, *head, mask=causal_mask(9))[0]
    for length in range(1, 10):
        prefix = attention(x[:length], *head, mask=causal_mask(length))[0]
        assert np.abs(prefix - whole[:length]).max() < 1e-14
    assert np.abs(attention(x[:4], *head)[0] - attention(x, *head)[0][:4]).max() > 0.01


def test_batches_and_a_bias_for_each_head_broadcast():
    """Catches rows of one sentence that attend to another's."""
    x, *head = drawn(tokens=10)
    batch, bias = x.reshape(2, 5, 8), np.random.default_rng(1).normal(size=(3, 1, 5, 5))
    out, weights, scores = attention(batch, *head, bias=bias)
    assert out.shape == (3, 2, 5, 8)
    assert weights.shape == scores.shape == (3, 2, 5, 5)
    right = attention(batch[1], *head, bias=bias[2, 0])[0]
    np.testing.assert_allclose(out[2, 1], right, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ("bfloat16", "float16"))
def test_half_precision_is_widened_before_the_scores_and_rounded_once(name):
    """Catches scores, a bias or a softmax in 16 bits."""
    inputs = as_torch(*drawn(), dtype=getattr(torch, name))
    bias = torch.linspace(-300, 0, 49).reshape(7, 7)
    out, weights, scores = attention(*inputs, bias=bias)
    wide = attention(*[each.float() for each in inputs], bias=bias)
    assert out.dtype == inputs[0].dtype
    assert torch.equal(weights, wide[1])
    assert torch.equal(scores, wide[2])
    assert torch.equal(out, wide[0].to(out.dtype))


def test_large_scores_do_not_overflow():
    """Catches a softmax that takes exp of scores as they are."""
    x, *head = drawn()
    weights = attention(1e3 * x, *head)[1]
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-14)


def test_a_random_head_keeps_the_variance():
    """Catches a variance for a standard deviation, and weights that share their draws."""
    w_q, w_k, w_v = random_head(np.random.default_rng(0), 256, 64)
    assert w_q.shape == w_k.shape == w_v.shape == (256, 64)
    for weight in (w_q, w_k, w_v):
        assert abs(weight.std() * 16 - 1) < 0.02
    assert abs((w_q * w_k).mean()) < 1e-4
    again = random_head(np.random.default_rng(0), 256, 64)
    assert (again[0] == w_q).all()
    assert random_head(np.random.default_rng(0), 6)[0].shape == (6, 6)


def test_the_examples_run():
    """Catches an example whose printed result is not the function's."""
    failed, tried = doctest.testmod(posenc.lab.attention)
    assert tried
    assert not failed


def test_a_column_may_be_hidden_but_no_row():
    """Catches a check of the mask along the queries."""
    x, *head = drawn(tokens=3)
    mask = np.array([[False, True, True]] * 3)
    assert (attention(x, *head, mask=mask)[1][:, 0] == 0).all()
    with pytest.raises(ValueError, match="mask must leave every query at least one key"):
        attention(x, *head, mask=mask.T)


def test_integers_of_numpy_are_real_numbers():
    """Catches a one-hot input refused, or a result in integers."""
    head = drawn(tokens=3, dim=3)[1:]
    one_hot = np.eye(3, dtype=int)
    assert (attention(one_hot, *head)[0] == attention(np.eye(3), *head)[0]).all()


def test_meta_tensors_have_shapes_alone():
    """Catches a check that reads the values of a mask or a bias."""
    x, *head = (torch.empty(size, device="meta") for size in [(3, 4), (4, 2), (4, 2), (4, 5)])
    square = torch.empty(3, 3, device="meta")
    assert attention(x, *head, bias=square, mask=square.bool())[0].shape == (3, 5)


def test_a_default_device_moves_no_mask():
    """Catches a mask taken to the default device."""
    inputs, mask = as_torch(*drawn()), causal_mask(7, "cpu")
    right = attention(*inputs, mask=mask)[0]
    with torch.device("meta"):
        assert torch.equal(attention(*inputs, mask=mask)[0], right)


X = np.ones((3, 4))
W = np.ones((4, 2))
TW = torch.ones(4, 2)
BIG = torch.tensor([[1e300]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: attention(X[0], W, W, W), ValueError, r"x must have shape \[..., T, d\]"),
        (
            lambda: attention(X, W[:3], W, W),
            ValueError,
            r"w_q must have 4 rows, one a channel, got \[3, 2\]",
        ),
        (
            lambda: attention(X, W, W[:, :1], W),
            ValueError,
            "w_q and w_k must have as many columns, got 2 and 1",
        ),
        (lambda: attention(X, torch.ones(4, 2), W, W), TypeError, "w_q must be NumPy, as x is"),
        (
            lambda: attention(torch.ones(3, 4), *[torch.ones(4, 2)] * 3, mask=np.tri(3) > 0),
            TypeError,
            "mask must be a torch tensor, as x is",
        ),
        (
            lambda: attention(torch.ones(3, 4), *[torch.ones(4, 2, device="meta")] * 3),
            ValueError,
            "w_q must be on x's device cpu, got meta",
        ),
        (
            lambda: attention(X, W, W, W, mask=np.tri(3)),
            TypeError,
            "mask must be of dtype bool, True where a query may look, got float64",
        ),
        (
            lambda: attention(X, W, W, W, mask=np.tri(3, k=-1) > 0),
            ValueError,
            "mask must leave every query at least one key",
        ),
        (
            lambda: attention(X, W, W, W, bias=np.ones((2, 4))),
            ValueError,
            r"bias must fit scores \[3, 3\], got \[2, 4\]",
        ),
        (
            lambda: attention(X[:1], W, W, W, bias=np.ones((2, 2))),
            ValueError,
            r"bias must fit scores \[1, 1\], got \[2, 2\]",
        ),
        (
            lambda: attention(torch.ones(3, 4).long(), TW, TW, TW),
            TypeError,
            "x must be of a floating dtype, got int64",
        ),
        (
            lambda: attention(torch.ones(3, 4) + 0j, TW, TW, TW),
            TypeError,
            "x must be of a floating dtype, got complex64",
        ),
        (lambda: attention(X + 0j, W, W, W), TypeError, "x must be real numbers, got complex128"),
        (lambda: attention(X, W, W + 0j, W), TypeError, "w_k must be real numbers, got complex128"),
        (lambda: attention(np.ma.array(X), W, W, W), TypeError, "x must not be masked"),
        (
            lambda: attention(X, W, W, W, bias=np.tri(3) > 0),
            TypeError,
            r"bias must be real numbers, got bool \(hide keys with mask\)",
        ),
        (
            lambda: attention(X, W, W, W, bias=np.array([[0], [-np.inf], [0]])),
            ValueError,
            "bias must be finite in float64: a mask hides keys",
        ),
        (
            lambda: attention(torch.ones(3, 4), TW, TW, TW, bias=torch.tensor([[torch.nan]])),
            ValueError,
            "bias must be finite in float32: a mask hides keys",
        ),
        (
            lambda: attention(torch.ones(3, 4), TW, TW, TW, bias=BIG),
            ValueError,
            "bias must be finite in float32: a mask hides keys",
        ),
        (
            lambda: attention(X, W, W, W, mask=np.ma.array(np.tri(3) > 0)),
            TypeError,
            "mask must not be masked",
        ),
        (
            lambda: attention(X, W[:, :0], W[:, :0], W),
            ValueError,
            r"w_q and w_k must have at least one column, got \[4, 0\]",
        ),
        (
            lambda: attention(X[:0], W, W, W),
            ValueError,
            r"x must have shape \[..., T, d\] with a token at least, got \[0, 4\]",
        ),
        (lambda: causal_mask(0), ValueError, "length must be at least 1, got 0"),
        (lambda: causal_mask(2.0), TypeError, "length must be an integer, got float"),
        (
            lambda: random_head(np.random.default_rng(0), 0),
            ValueError,
            "dim must be at least 1, got 0",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches a silent broadcast, a float mask taken for a bias, and errors from the inside."""
    with pytest.raises(error, match=sentence):
        call()


def test_gradients_reach_every_weight_without_a_warning():
    """Catches weights copied out of the graph, and torch's warning about it (an error here)."""
    x, *weights = (
        torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
        for n, size in enumerate([(5, 4), (4, 3), (4, 3), (4, 2)])
    )
    inputs = [x.requires_grad_(), *(w.requires_grad_() for w in weights)]
    bias = torch.zeros(5, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *a: attention(*a[:4], bias=a[4])[0], (*inputs, bias))
