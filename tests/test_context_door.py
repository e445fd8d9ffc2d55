"""Bad parameters of the rules for longer texts: one sentence each, with the parameter's name."""

import math

import numpy as np
import pytest
import torch

from posenc import context

LLAMA_2 = {"base": 10000.0, "original_max_position_embeddings": 4096}
LLAMA_3_1 = {
    "base": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
FITTING = {
    "linear": {"base": 1e4, "factor": 2.0},
    "ntk": {"base": 1e4, "factor": 2.0},
    "dynamic": {**LLAMA_2, "factor": 2.0, "seq_len": 8192},
    "yarn": {**LLAMA_2, "factor": 2.0},
    "yarn_paper": {**LLAMA_2, "factor": 2.0},
    "longrope": {
        **LLAMA_2,
        "short_factor": [1.0] * 4,
        "long_factor": [2.0] * 4,
        "seq_len": 8192,
        "factor": 2.0,
    },
    "llama3": LLAMA_3_1,
    "proportional": {"base": 1e4, "partial_rotary_factor": 0.5, "factor": 2.0},
}
NUMBERS = [
    "base",
    "factor",
    "attention_factor",
    "mscale",
    "mscale_all_dim",
    "beta_fast",
    "beta_slow",
    "low_freq_factor",
    "high_freq_factor",
    "partial_rotary_factor",
]
LENGTHS = ["original_max_position_embeddings", "seq_len"]


def taken(rule, name):
    return name in FITTING[rule] or (
        name in ("beta_fast", "mscale", "mscale_all_dim", "beta_slow", "attention_factor")
        and rule == "yarn"
    )


@pytest.mark.parametrize("rule", FITTING)
@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        ("2", TypeError, "must be a real number, got str"),
        (True, TypeError, "must be a real number, got bool"),
        ([2.0], TypeError, "must be a real number, got list"),
        (np.ones(2), TypeError, r"must be a real number, got ndarray of float64 and shape \[2\]"),
        (1j, TypeError, "must be a real number, got complex"),
        (math.nan, ValueError, "must be positive and finite, got nan"),
        (math.inf, ValueError, "must be positive and finite, got inf"),
        (-1.0, ValueError, "must be positive and finite, got -1.0"),
        (10**400, ValueError, "must be positive and finite"),
    ],
)
def test_every_number_is_checked_at_the_door(rule, value, error, sentence):
    """Kind F. Catches a number that is let through, or that fails inside without its name."""
    for name in NUMBERS:
        if taken(rule, name):
            with pytest.raises(error, match=f"^{name} {sentence}"):
                getattr(context, rule)(8, **{**FITTING[rule], name: value})


@pytest.mark.parametrize("rule", FITTING)
def test_every_length_is_checked_at_the_door(rule):
    """Kind F. Catches a length of no tokens, and one that is no integer."""
    for name in LENGTHS:
        if name in FITTING[rule]:
            for value, error, sentence in (
                (0, ValueError, r"must be at least \d, got 0"),
                (-5, ValueError, r"must be at least \d, got -5"),
                (8192.0, TypeError, "must be an integer, got float"),
                ("8192", TypeError, "must be an integer, got str"),
                (True, TypeError, "must be an integer, got bool"),
                (None, TypeError, "must be an integer, got NoneType"),
            ):
                with pytest.raises(error, match=f"^{name} {sentence}"):
                    getattr(context, rule)(8, **{**FITTING[rule], name: value})


@pytest.mark.parametrize("rule", FITTING)
def test_width_base_and_factor_are_checked_at_the_door(rule):
    """Kind F. Catches odd widths, bases that do not fall, factors that speed hands up."""
    make, fitting = getattr(context, rule), FITTING[rule]
    width = "head_dim" if rule == "proportional" else "dim"
    with pytest.raises(ValueError, match=f"^{width} must be even, got 7"):
        make(7, **fitting)
    with pytest.raises(ValueError, match=rf"^{width} must be at least \d, got 0"):
        make(0, **fitting)
    for value in (8.0, "8", True, None):
        with pytest.raises(TypeError, match=f"^{width} must be an integer, got"):
            make(value, **fitting)
    for base in (1, 0.5):
        with pytest.raises(ValueError, match=f"^base must be greater than 1, got {base}"):
            make(8, **{**fitting, "base": base})
    with pytest.raises(ValueError, match=r"^factor must be at least 1, got 0\.5"):
        make(8, **{**fitting, "factor": 0.5})
    with pytest.raises(TypeError, match="'base'"):
        make(8, **{k: v for k, v in fitting.items() if k != "base"})
    if rule not in ("longrope", "proportional"):
        with pytest.raises(TypeError, match="'factor'"):
            make(8, **{k: v for k, v in fitting.items() if k != "factor"})
        with pytest.raises(TypeError, match=r"^factor must be a real number, got NoneType"):
            make(8, **{**fitting, "factor": None})


@pytest.mark.parametrize(
    ("rule", "change", "error", "sentence"),
    [
        ("yarn", {"truncate": 1}, TypeError, "truncate must be True or False, got int"),
        ("yarn", {"truncate": "no"}, TypeError, "truncate must be True or False, got str"),
        ("yarn", {"beta_fast": 0.5}, ValueError, "beta_slow must be at most beta_fast, got 1.0 a"),
        ("yarn", {"beta_slow": 0.0}, ValueError, "beta_slow must be positive and finite, got 0.0"),
        ("yarn", {"attention_factor": 0.0}, ValueError, "attention_factor must be positive and f"),
        (
            "yarn_paper",
            {"beta_slow": 33},
            ValueError,
            "beta_slow must be at most beta_fast, got 33",
        ),
        (
            "llama3",
            {"low_freq_factor": 5.0},
            ValueError,
            "low_freq_factor must be at most high_freq_factor, got 5.0 and 4.0",
        ),
        ("llama3", {"low_freq_factor": 0}, ValueError, "low_freq_factor must be positive and fini"),
        (
            "longrope",
            {"factor": None},
            ValueError,
            "factor or attention_factor must be given, got neither",
        ),
        (
            "longrope",
            {"attention_factor": 0.0},
            ValueError,
            "attention_factor must be positive and",
        ),
        (
            "longrope",
            {"original_max_position_embeddings": 1},
            ValueError,
            "original_max_position_embeddings must be at least 2, got 1",
        ),
        (
            "longrope",
            {"long_factor": [1.0] * 3},
            ValueError,
            "long_factor must hold 4 numbers, one for each pair, got 3",
        ),
        (
            "longrope",
            {"short_factor": [1.0] * 8},
            ValueError,
            "short_factor must hold 4 numbers, one for each pair, got 8",
        ),
        ("longrope", {"short_factor": []}, ValueError, "short_factor must hold 4 numbers"),
        ("longrope", {"short_factor": None}, TypeError, "short_factor must be a list of 4 numbers"),
        ("longrope", {"long_factor": 2.0}, TypeError, "long_factor must be a list of 4 numbers, g"),
        ("longrope", {"long_factor": "1111"}, TypeError, "long_factor must be a list of 4 numbers"),
        ("longrope", {"long_factor": {1, 2, 3, 4}}, TypeError, "long_factor must be a list of 4 n"),
        ("longrope", {"long_factor": np.float64(1)}, TypeError, "long_factor must be a list of 4"),
        ("longrope", {"long_factor": torch.ones(())}, TypeError, "long_factor must be a list of"),
        (
            "longrope",
            {"long_factor": [1.0, 2.0, 0.0, 4.0]},
            ValueError,
            r"long_factor\[2\] must be positive and finite, got 0.0",
        ),
        (
            "longrope",
            {"short_factor": [1.0, math.nan, 1.0, 1.0]},
            ValueError,
            r"short_factor\[1\] must be positive and finite, got nan",
        ),
        (
            "longrope",
            {"short_factor": [1.0, "2", 1.0, 1.0]},
            TypeError,
            r"short_factor\[1\] must be a real number, got str",
        ),
        (
            "longrope",
            {"short_factor": np.ones((4, 2))},
            TypeError,
            r"short_factor\[0\] must be a real number, got list",
        ),
        (
            "longrope",
            {"short_factor": np.ma.masked_equal([1.0, 2.0, 3.0, 4.0], 2.0)},
            TypeError,
            "short_factor must not be masked",
        ),
        (
            "proportional",
            {"partial_rotary_factor": 1.5},
            ValueError,
            "partial_rotary_factor must be at most 1, got 1.5",
        ),
        (
            "proportional",
            {"partial_rotary_factor": 0.2},
            ValueError,
            "partial_rotary_factor must leave a pair of 8 channels turning, got 0.2",
        ),
        (
            "proportional",
            {"partial_rotary_factor": 0},
            ValueError,
            "partial_rotary_factor must be positive and finite, got 0",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(rule, change, error, sentence):
    """Kind F. Catches errors from the inside, clamps, and a parameter that is ignored."""
    with pytest.raises(error, match=f"^{sentence}"):
        getattr(context, rule)(8, **{**FITTING[rule], **change})


@pytest.mark.parametrize("rule", ("ntk", "dynamic"))
def test_one_pair_has_no_exponent(rule):
    """Golden value T14. Catches a division by d - 2 = 0, whatever the length."""
    for seq_len in ({"seq_len": 1}, {}):
        parameters = {**FITTING[rule], **(seq_len if rule == "dynamic" else {})}
        with pytest.raises(ValueError, match="dim must be at least 4, got 2"):
            getattr(context, rule)(2, **parameters)
