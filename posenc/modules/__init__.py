"""Torch modules that people expect; each only calls the package's functions."""

from posenc.modules.bias import ALiBi, T5Bias
from posenc.modules.learned import LearnedEncoding
from posenc.modules.rotary import RotaryEmbedding
from posenc.modules.sinusoidal import SinusoidalEncoding

__all__ = ["ALiBi", "LearnedEncoding", "RotaryEmbedding", "SinusoidalEncoding", "T5Bias"]
