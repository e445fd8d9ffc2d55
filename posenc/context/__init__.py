"""Rules that re-gear the hands for texts longer than trained: each a function to `Frequencies`.

A rule replaces the frequencies omega of `posenc.frequencies` by omega h(omega), where h is 1 for a
hand that keeps its speed and 1/factor for one that is slowed down with the text. YaRN and LongRoPE
also set the attention factor, by which `posenc.rope_tables` multiplies cosines and sines.

The formulas are evaluated from the float64 parameters in mpmath; only the result is rounded.
"""

from posenc.context._families import llama3, longrope, proportional
from posenc.context._stretch import dynamic, linear, ntk
from posenc.context._yarn import yarn, yarn_paper

__all__ = [
    "dynamic",
    "linear",
    "llama3",
    "longrope",
    "ntk",
    "proportional",
    "yarn",
    "yarn_paper",
]
