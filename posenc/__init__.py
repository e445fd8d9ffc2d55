"""Positional encodings with exact phases: the tested core of the textbook *Waves That Count*."""

from posenc._frequencies import Frequencies
from posenc.sinusoidal import shift, shift_matrix, sinusoidal_encoding
from posenc.spectrum import frequencies, wavelengths
from posenc.turns import phases

__version__ = "0.1.0"

__all__ = [
    "Frequencies",
    "frequencies",
    "phases",
    "shift",
    "shift_matrix",
    "sinusoidal_encoding",
    "wavelengths",
]
