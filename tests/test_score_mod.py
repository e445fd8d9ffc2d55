"""ALiBi inside FlexAttention: added in float32, exact far away, and on the right device."""

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from posenc import alibi_bias, alibi_score_mod, alibi_slopes


@pytest.mark.equation("eq-alibi")
@pytest.mark.filterwarnings("ignore:.*flex_attention called without torch.compile:UserWarning")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("bidirectional", (False, True))
@pytest.mark.parametrize(
    ("name", "far", "bound"),
    [("bfloat16", 1003, 8e-3), ("float16", 131075, 2e-3), ("float32", 1003, 1e-4)],
)
def test_flex_attention_adds_a_far_bias_in_float32(name, far, bound, bidirectional):
    """Catches a bias cast to the dtype that FlexAttention traces with: neighbours merge, or inf."""
    dtype, rng = getattr(torch, name), torch.Generator().manual_seed(0)
    q = torch.randn(1, 1, 2, 8, generator=rng).to(dtype)
    k, v = (torch.randn(1, 1, 4, 8, generator=rng).to(dtype) for _ in range(2))
    bias = alibi_bias([0.5], range(far, far + 2), range(4), bidirectional=bidirectional)
    scores = q.double() @ k.double().mT / 8**0.5 + torch.as_tensor(bias)
    right = scores.softmax(-1) @ v.double()
    add = alibi_score_mod([0.5], offset=far, bidirectional=bidirectional)
    out = flex_attention(q, k, v, score_mod=add)
    assert out.dtype == dtype
    assert (out.double() - right).abs().max() <= bound


@pytest.mark.equation("eq-alibi")
def test_a_narrow_score_and_float64_slopes_are_rounded_once():
    """Catches slopes, or the bias, rounded to the score's dtype before the sum."""
    add, slopes = alibi_score_mod(alibi_slopes(12), offset=100003), alibi_slopes(12)
    for query in range(50):  # a float32 slope is off for some of these
        right = np.float32((-100003 - query) * slopes[8])
        assert add(torch.tensor(0.0), 0, 8, query, 0) == float(right)
    for name in ("bfloat16", "float16"):
        score = torch.tensor(0.0, dtype=getattr(torch, name))
        assert add(score, 0, 8, 0, 0).dtype == torch.float32
        assert add(score, 0, 8, 0, 0) == float(np.float32(-100003 * slopes[8]))
    assert add(torch.tensor(0.0).double(), 0, 8, 0, 0) == -100003 * slopes[8]


@pytest.mark.parametrize("name", ("int8", "uint8", "int16", "uint16", "int32", "int64"))
def test_an_offset_of_any_integer_dtype_does_not_wrap(name):
    """Catches a difference formed in the offset's own eight bits."""
    offset, score = torch.tensor(100, dtype=getattr(torch, name)), torch.tensor(0.0)
    add = alibi_score_mod([0.5], offset=offset)
    assert add(score, 0, 0, 100, 0) == -100
    assert add(score, 0, 0, torch.tensor(100, dtype=torch.int32), 1) == -99.5


@pytest.mark.parametrize("wrap", (int, torch.tensor), ids=("int", "tensor"))
@pytest.mark.parametrize("offset", (-(2**30), 2**30))
def test_int32_indices_do_not_wrap_at_the_furthest_offset(offset, wrap):
    """Catches a bound that lets the difference of int32 indices overflow: a reward far away."""
    add = alibi_score_mod([1.0], offset=wrap(offset))
    score, last = torch.tensor(0.0).double(), torch.tensor(2**30 - 1, dtype=torch.int32)
    first = torch.zeros_like(last)
    assert add(score, 0, 0, last, first) == -last - offset
    assert add(score, 0, 0, first, last) == int(last) - offset


def test_an_offset_tensor_that_grows_is_read_anew():
    """Catches a copy of the offset: in decoding it is counted up in place."""
    offset = torch.tensor(3, dtype=torch.int32)
    add = alibi_score_mod([0.5], offset=offset)
    offset += 1
    assert add(torch.tensor(0.0), 0, 0, 0, 0) == -2


def test_slopes_lie_where_they_shall():
    """Catches tensors moved to the CPU, or to a default device, and a device that is ignored."""
    there = torch.tensor([0.5], device="meta")
    for add in (alibi_score_mod(there), alibi_score_mod([0.5, 0.25], device="meta")):
        assert slopes_of(add).is_meta
    assert slopes_of(alibi_score_mod(torch.tensor([0.5]), device="meta")).is_meta
    here = torch.tensor([0.5])
    with torch.device("meta"):
        for add in (alibi_score_mod(here), alibi_score_mod([0.5])):
            assert slopes_of(add).tolist() == [0.5]


def slopes_of(score_mod):
    """The tensor [H] that a score_mod holds: its sums would take it to any device."""
    held = (cell.cell_contents for cell in score_mod.__closure__)
    return next(each for each in held if isinstance(each, torch.Tensor))


@pytest.mark.parametrize(
    ("offset", "error", "sentence"),
    [
        (2**30 + 1, ValueError, r"offset must lie in -2\*\*30 ... 2\*\*30, got 1073741825"),
        (-(2**30) - 1, ValueError, r"offset must lie in -2\*\*30 ... 2\*\*30, got -1073741825"),
        (True, TypeError, "offset must be an integer, got bool"),
        (torch.tensor(True), TypeError, r"offset must be an integer, got torch.bool \[\]"),
        (torch.tensor([3]), TypeError, r"offset must be an integer, got torch.int64 \[1\]"),
        (torch.tensor(1.0), TypeError, r"offset must be an integer, got torch.float32 \[\]"),
        (torch.tensor(3 + 2j), TypeError, r"offset must be an integer, got torch.complex64 \[\]"),
        (
            torch.tensor(3, dtype=torch.uint64),
            TypeError,
            r"offset must be an integer, got torch.uint64 \[\]",
        ),
    ],
    ids=str,
)
def test_a_bad_offset_gets_one_clear_sentence(offset, error, sentence):
    """Catches parts of numbers dropped, and offsets for each sequence taken for one."""
    with pytest.raises(error, match=sentence):
        alibi_score_mod([0.5], offset=offset)
