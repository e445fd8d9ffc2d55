"""Faults put into code and book on purpose, one at a time: a named check must see each.

`fault` says what a fault is and how it is put in; the other files list them, part by part; to run
is ``python -m tests.breaks [WORD ...]``.
"""

from . import biases, book, context, kernels, rotations, waves

BREAKS = (
    *waves.BREAKS,
    *rotations.BREAKS,
    *biases.BREAKS,
    *context.BREAKS,
    *kernels.BREAKS,
    *book.BREAKS,
)
