"""Positional encodings with exact phases: the tested core of the textbook *Waves That Count*."""

from posenc import context as context
from posenc import learned as learned
from posenc import positions as positions
from posenc._frequencies import Frequencies
from posenc.bias import alibi_bias, alibi_score_mod, alibi_slopes
from posenc.checkpoints import Rope, rope_from_config
from posenc.pairing import convert_qk_weight, pairing_permutation
from posenc.relative import relative_shift, t5_bucket
from posenc.rotary import apply_rope, apply_rope_qk, rope_tables
from posenc.sinusoidal import shift, shift_matrix, sinusoidal_encoding
from posenc.spectrum import frequencies, wavelengths
from posenc.turns import phases

__version__ = "0.1.0"

__all__ = [
    "Frequencies",
    "Rope",
    "alibi_bias",
    "alibi_score_mod",
    "alibi_slopes",
    "apply_rope",
    "apply_rope_qk",
    "convert_qk_weight",
    "frequencies",
    "pairing_permutation",
    "phases",
    "relative_shift",
    "rope_from_config",
    "rope_tables",
    "shift",
    "shift_matrix",
    "sinusoidal_encoding",
    "t5_bucket",
    "wavelengths",
]
