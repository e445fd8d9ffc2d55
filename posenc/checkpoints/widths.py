"""How many channels a head has, which of them turn, and how large its scores are."""

from __future__ import annotations

import math
from typing import Any

from posenc._door import flag, positive_float, whole_number
from posenc.checkpoints.reading import Reading

WIDEST = 1 << 16
"""Channels that no head has: a number beyond is a slip, and would fill the memory."""

SLACK = 1e-6
"""What a product like 100 * 0.29 = 28.999999999999996 may lack."""


def pairing(reading: Reading) -> bool:
    """Whether pairs are (2i, 2i + 1).

    Raises
    ------
    TypeError, ValueError
        If the file names a pairing by no bool, or another than the code of its family has.
    """
    for key in ("rope_interleave", "original_rope"):
        value = reading.found.get(key)
        if value is not None and key in reading.family.reads:
            reading.source["interleaved"] = key
            return flag(key, value)
    said = reading.found.get("rope_interleaved")
    if said is not None and flag("rope_interleaved", said) != reading.family.interleaved:
        halves = "neighbours" if reading.family.interleaved else "halves"
        raise ValueError(
            f"rope_interleaved is {said}, but model_type {reading.model_type!r} pairs {halves}"
        )
    reading.source["interleaved"] = f"code of model_type {reading.model_type!r}"
    return reading.family.interleaved


def widths(reading: Reading) -> tuple[int, int, int]:
    """Channels of a head, channels that turn, and the first of these.

    Raises
    ------
    TypeError, ValueError
        If a width is missing, no positive even number, wider than the head, or said twice in
        different ways.
    """
    family, found = reading.family, reading.found
    if family.latent is not None:
        rest, turning = (
            whole_number(key, reading.agreed(key, {key: found.get(key)}, default), at_least=0)
            for key, default in zip(
                ("qk_nope_head_dim", "qk_rope_head_dim"), family.latent, strict=True
            )
        )
        head = rest + turning
        reading.source["head_dim"] = "qk_nope_head_dim + qk_rope_head_dim"
        reading.source["rotary_dim"] = reading.source.pop("qk_rope_head_dim")
        del reading.source["qk_nope_head_dim"]
        _check_width(reading, head)
        _check_agreement(reading, head, turning, reading.parts())
    else:
        head = _head_dim(reading)
        _check_width(reading, head)
        turning = _turning(reading, head)
    for name, width in (("head_dim", head), ("rotary_dim", turning)):
        if width % 2 or width < 1:
            raise ValueError(
                f"{name} must be positive and even, got {width} ({reading.source[name]})"
            )
    if turning > head:
        raise ValueError(
            f"rotary_dim must be at most head_dim {head}, got {turning}"
            f" ({reading.source['rotary_dim']})"
        )
    return head, turning, head - turning if family.last else 0


def _check_width(reading: Reading, head: int) -> None:
    if head > WIDEST:
        raise ValueError(
            f"head_dim must be at most {WIDEST}, got {head} ({reading.source['head_dim']})"
        )


def _head_dim(reading: Reading) -> int:
    found, family = reading.found, reading.family
    own = reading.rotation.head_dim
    if own is not None:
        value = reading.agreed("head_dim", {own[0]: found.get(own[0])}, own[1])
        return whole_number(own[0], value, at_least=1)
    if found.get("head_dim") is not None or family.head_dim is not None:
        value = reading.agreed("head_dim", {"head_dim": found.get("head_dim")}, family.head_dim)
        return whole_number("head_dim", value, at_least=1)
    sizes = []
    for name in ("hidden_size", "num_attention_heads"):
        value = reading.agreed("head_dim", reading.named(name))
        sizes.append(whole_number(reading.source["head_dim"], value, at_least=1))
    hidden, heads = sizes
    if hidden % heads:
        raise ValueError(f"hidden_size {hidden} is no multiple of num_attention_heads {heads}")
    reading.source["head_dim"] = "hidden_size / num_attention_heads"
    return hidden // heads


def _turning(reading: Reading, head: int) -> int:
    found, family = reading.found, reading.family
    given = reading.parts()
    if reading.rope_type == "proportional":
        reading.source["rotary_dim"] = "rope_type 'proportional' pairs the whole head"
        return head
    counts = {
        key: whole_number(key, found[key], at_least=1)
        for key, read in (
            ("rotary_dim", "rotary_dim" in family.reads),
            ("qk_rope_head_dim", family.last),
        )
        if read and found.get(key) is not None
    }
    if family.part is None and family.width is None and not counts:
        for key, part in given.items():
            if part != 1:
                raise ValueError(
                    f"{key} is {part}, but model_type {reading.model_type!r} turns whole heads"
                )
        reading.source["rotary_dim"] = f"code of model_type {reading.model_type!r}"
        return head
    widths = counts | {
        f"{key} times head_dim": math.floor(head * part + SLACK) for key, part in given.items()
    }
    default = family.width or math.floor(head * (family.part or 1.0) + SLACK)
    return int(reading.agreed("rotary_dim", widths, default))


def _check_agreement(reading: Reading, head: int, turning: int, given: dict[str, float]) -> None:
    for key, part in given.items():
        if part != 1 and math.floor(head * part + SLACK) != turning:
            raise ValueError(
                f"{key} is {part} of {head} channels and qk_rope_head_dim is {turning}: "
                "one of them is wrong"
            )


def softmax_scale(reading: Reading, head: int, rule: dict[str, Any]) -> float:
    """Return the factor of the scores before the softmax; that of cos and sin comes on top.

    Notes
    -----
    DeepSeek multiplies it by g(factor, mscale_all_dim)**2, with g(s, m) = 0.1 m ln(s) + 1.
    """
    family, found, source = reading.family, reading.found, reading.source
    if family.scale == "one":
        source["softmax_scale"] = f"code of model_type {reading.model_type!r}"
        return 1.0
    if family.scale in ("query_pre_attn_scalar", "attention_multiplier"):
        key = family.scale
        value = reading.agreed("softmax_scale", {key: found.get(key)}, family.scalar)
        number = positive_float(key, value)
        return number if key == "attention_multiplier" else number**-0.5
    source["softmax_scale"] = "head_dim ** -0.5"
    scale = float(head**-0.5)
    all_dim = rule.get("mscale_all_dim")
    if family.scale == "mscale" and all_dim and rule.get("factor", 1) > 1:
        source["softmax_scale"] += ", times (0.1 mscale_all_dim ln(factor) + 1) ** 2"
        scale *= (0.1 * all_dim * math.log(rule["factor"]) + 1) ** 2
    return scale
