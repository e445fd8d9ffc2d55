"""Biases and learned tables on a CUDA device are those of the CPU."""

import pytest
import torch

from posenc import alibi_bias, alibi_slopes, relative_shift, t5_bucket
from posenc.learned import positions_from_mask, resize
from posenc.modules import ALiBi, LearnedEncoding, T5Bias


def both(function, *inputs):
    """What a function gives for tensors on the device and on the CPU, both on the CPU."""
    there = function(*(each.to("cuda") for each in inputs))
    assert there.device.type == "cuda"
    return there.cpu(), function(*inputs)


@pytest.mark.equation("eq-alibi")
@pytest.mark.parametrize("bidirectional", (False, True))
def test_biases_are_the_same_bits(bidirectional):
    """Catches a difference of positions that is rounded, and slopes left on the CPU."""
    query, key = torch.arange(131000, 131100), torch.arange(131100)
    there, here = both(
        lambda q, k: alibi_bias(torch.tensor(alibi_slopes(3)).float().to(q.device), q, k),
        query,
        key,
    )
    assert torch.equal(there, here)
    for module in (
        ALiBi(12, bidirectional=bidirectional),
        T5Bias(4, bidirectional=bidirectional),
    ):
        if isinstance(module, T5Bias):
            torch.nn.init.normal_(module.weight)
        here = module(query[-9:], key[-99:])
        there = module.cuda()(query[-9:].cuda(), key[-99:].cuda())
        assert there.device.type == "cuda"
        assert torch.equal(there.cpu(), here)


def test_integers_and_tables_are_the_same():
    """Catches a search, a running sum or an interpolation that differs on the device."""
    drawn = torch.Generator().manual_seed(0)
    for function, x in (
        (lambda r: t5_bucket(r, bidirectional=True), torch.arange(-300, 300)),
        (positions_from_mask, torch.randint(2, (4, 99), generator=drawn)),
        (relative_shift, torch.randn(2, 5, 9, generator=drawn)),
        (lambda t: resize(t, (17, 30), prefix=1), torch.randn(197, 8, generator=drawn)),
    ):
        there, here = both(function, x)
        torch.testing.assert_close(there, here, rtol=0, atol=1e-6)


def test_a_position_outside_the_table_raises_a_sentence():
    """Catches a device-side assertion, after which the process is lost."""
    table = LearnedEncoding(514, 8, offset=2).cuda()
    assert torch.equal(table(range(512)), table.weight[2:])
    with pytest.raises(ValueError, match=r"positions must lie in -1 ... 511.* got 512"):
        table(torch.tensor([0, 512], device="cuda"))
    with pytest.raises(ValueError, match="must be on one device, got cuda:0 and cpu"):
        table(torch.tensor([0]))
