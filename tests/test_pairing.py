"""Pairings: the permutation between them, and projections that follow it."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from posenc import apply_rope, convert_qk_weight, frequencies, pairing_permutation, rope_tables

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


@pytest.mark.parametrize("golden", GOLDEN["pairing_permutation"], ids=lambda golden: golden["id"])
def test_golden_permutations(golden):
    """Catches the inverse permutation."""
    order = pairing_permutation(golden["dim"], to_interleaved=golden["to_interleaved"])
    assert order.tolist() == golden["order"]


@pytest.mark.equation("eq-pairing-permutation")
@pytest.mark.parametrize("dim", (2, 4, 8, 72, 128))
@pytest.mark.parametrize("target", (False, True))
def test_the_permutation_carries_one_pairing_to_the_other(dim, target):
    """Kind A. Golden value T2: catches an order that agrees only up to a permutation."""
    perm = pairing_permutation(dim, to_interleaved=target)
    back = pairing_permutation(dim, to_interleaved=not target)
    assert (perm[back] == np.arange(dim)).all()
    if dim >= 6:
        assert (perm[perm] != np.arange(dim)).any()  # twice is not undone
    x = np.random.default_rng(0).normal(size=(5, dim))
    cos, sin = rope_tables(range(7, 12), frequencies(dim), dtype=np.float64)
    there = apply_rope(x[..., perm], cos, sin, interleaved=target)
    assert (there == apply_rope(x, cos, sin, interleaved=not target)[..., perm]).all()


@pytest.mark.equation("eq-pairing-permutation")
@pytest.mark.parametrize("dim", (4, 8, 72))
def test_the_rotations_are_one_matrix_between_two_permutations(dim):
    """Catches the transposed permutation matrix, which agrees for d = 4 and for no other width."""
    picks = np.zeros((dim, dim))
    for i in range(dim // 2):
        for member in range(2):
            picks[i + member * dim // 2, 2 * i + member] = 1
    perm = pairing_permutation(dim, to_interleaved=False)
    assert np.array_equal(np.eye(dim)[perm], picks)
    cos, sin = rope_tables([29] * dim, frequencies(dim), dtype=np.float64)
    split, woven = (apply_rope(np.eye(dim), cos, sin, interleaved=i).T for i in (False, True))
    assert np.array_equal(split, picks @ woven @ picks.T)


@pytest.mark.equation("eq-half", "eq-partial-rotary")
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(8, 8), (64, 16), (80, 32), (96, 24)])
def test_half_split_is_a_complex_product_within_the_rotary_channels(head_dim, rotary_dim):
    """Catches halves of the head, frequencies over the head, a wrong sign, a tail that turns."""
    base, half = 500_000.0, rotary_dim // 2
    x = np.random.default_rng(0).normal(size=(5, head_dim))
    positions = np.array([0, 1, 7, 100, 4095])
    omega = np.array([base ** (-2 * i / rotary_dim) for i in range(half)])
    z = (x[:, :half] + 1j * x[:, half:rotary_dim]) * np.exp(1j * positions[:, None] * omega)
    cos, sin = rope_tables(positions, frequencies(rotary_dim, base), dtype=np.float64)
    y = apply_rope(x, cos, sin, interleaved=False)
    turned = np.concatenate([z.real, z.imag], axis=1)
    np.testing.assert_allclose(y[:, :rotary_dim], turned, rtol=0, atol=1e-11)
    assert np.array_equal(y[:, rotary_dim:], x[:, rotary_dim:])


@pytest.mark.equation("eq-partial-rotary")
@pytest.mark.parametrize("interleaved", (False, True))
def test_partial_scores_are_a_relative_part_and_a_part_without_position(interleaved):
    """Catches a passed channel that turns, and a turned one that passes."""
    rng, head_dim, rotary_dim = np.random.default_rng(0), 20, 8
    q, k = rng.normal(size=(2, 1, head_dim))
    f = frequencies(rotary_dim)

    def score(m, n, a, b):
        a, b = (
            apply_rope(y, *rope_tables([at], f, dtype=np.float64), interleaved=interleaved)
            for y, at in ((a, m), (b, n))
        )
        return (a @ b.T).item()

    only = [y[:, :rotary_dim] for y in (q, k)]
    content = (q[:, rotary_dim:] @ k[:, rotary_dim:].T).item()
    for m, n in ((3, 1), (1003, 1001), (2, 9)):
        assert abs(score(m, n, q, k) - score(m - n, 0, *only) - content) < 1e-12
    assert abs(score(3, 1, q, k) - score(2, 9, q, k)) > 1e-2


def scores(x, projections, heads, kv_heads, interleaved, rotary_dim):
    """Scores [H, T, T] of grouped-query attention with biases."""
    cos, sin = rope_tables(range(5, 5 + len(x)), frequencies(rotary_dim), dtype=np.float64)
    rotated = []
    for (weight, bias), n in zip(projections, (heads, kv_heads), strict=True):
        y = (x @ weight.T + bias).reshape(len(x), n, -1)
        y = apply_rope(y, cos, sin, interleaved=interleaved, position_axis=-3)
        rotated.append(np.repeat(y, heads // n, axis=1))
    return np.einsum("qhd,khd->hqk", *rotated)


@pytest.mark.equation("eq-weight-conversion")
@pytest.mark.parametrize("rotary_dim", (None, 8))
def test_converted_projections_keep_every_score(rotary_dim):
    """Kind A. Golden value T2: catches a bias, a key projection or key heads forgotten."""
    rng, heads, kv_heads, head_dim, width = np.random.default_rng(0), 6, 2, 12, 20
    x = rng.normal(size=(7, width))
    of_q, of_k = (
        (rng.normal(size=(n * head_dim, width)), rng.normal(size=n * head_dim))
        for n in (heads, kv_heads)
    )
    rotated = rotary_dim or head_dim

    def converted(pair, n):
        return tuple(
            convert_qk_weight(w, n, to_interleaved=True, rotary_dim=rotary_dim) for w in pair
        )

    right = scores(x, (of_q, of_k), heads, kv_heads, False, rotated)
    new_q, new_k = converted(of_q, heads), converted(of_k, kv_heads)
    same = scores(x, (new_q, new_k), heads, kv_heads, True, rotated)
    np.testing.assert_allclose(same, right, rtol=0, atol=1e-12 * np.abs(right).max())
    faults = {
        "k forgotten": (new_q, of_k),
        "biases forgotten": ((new_q[0], of_q[1]), (new_k[0], of_k[1])),
        "query heads for k": (new_q, converted(of_k, 1)),
        "converted twice": (converted(new_q, heads), converted(new_k, kv_heads)),
    }
    for name, fault in faults.items():
        wrong = scores(x, fault, heads, kv_heads, True, rotated)
        assert np.abs(wrong - right).max() > 1e-3, name
    back = [convert_qk_weight(w, heads, to_interleaved=False, rotary_dim=rotary_dim) for w in new_q]
    assert all((b == w).all() for b, w in zip(back, of_q, strict=True))


def test_the_conversion_is_the_public_one():
    """Catches another convention than that of the conversion scripts of Llama."""
    heads, head_dim, width = 3, 8, 5
    weight = torch.arange(heads * head_dim * width).reshape(-1, width)
    public = weight.view(heads, head_dim // 2, 2, width).transpose(1, 2).reshape(-1, width)
    assert torch.equal(convert_qk_weight(weight, heads, to_interleaved=False), public)
    ours = convert_qk_weight(weight.numpy(), heads, to_interleaved=False)
    assert (ours == public.numpy()).all()
    bias = torch.nn.Parameter(torch.arange(24.0).to(torch.bfloat16))
    moved = convert_qk_weight(bias, heads, to_interleaved=True)
    assert moved.dtype == torch.bfloat16
    assert moved[:8].tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: pairing_permutation(7, to_interleaved=True), ValueError, "dim must be even, got"),
        (lambda: pairing_permutation(0, to_interleaved=True), ValueError, "dim must be at least 1"),
        (
            lambda: pairing_permutation(8, to_interleaved=1),
            TypeError,
            "to_interleaved must be True or False, got 1",
        ),
        (lambda: pairing_permutation(8), TypeError, "to_interleaved"),
        (
            lambda: convert_qk_weight([1, 2], 1, to_interleaved=True),
            TypeError,
            "weight must be an array or a tensor, got list",
        ),
        (
            lambda: convert_qk_weight(np.ones((12, 2)), 5, to_interleaved=True),
            ValueError,
            r"weight must have rows for 5 heads of one width, got shape \[12, 2\]",
        ),
        (
            lambda: convert_qk_weight(np.ones((9, 2)), 3, to_interleaved=True),
            ValueError,
            "head_dim must be even, got 3",
        ),
        (
            lambda: convert_qk_weight(np.ones((12, 2)), 3, to_interleaved=True, rotary_dim=3),
            ValueError,
            "rotary_dim must be even, got 3",
        ),
        (
            lambda: convert_qk_weight(np.ones((12, 2)), 3, to_interleaved=True, rotary_dim=6),
            ValueError,
            "rotary_dim must be at most head_dim = 4, got 6",
        ),
        (
            lambda: convert_qk_weight(np.ones((12, 2)), 3.0, to_interleaved=True),
            TypeError,
            "n_heads must be an integer, got float",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, sentence):
    """Catches a width cut to size, and rows of one head taken for another's."""
    with pytest.raises(error, match=sentence):
        call()
