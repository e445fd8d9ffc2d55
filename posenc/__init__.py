"""Positional encodings with exact phases: the tested core of the textbook *Waves That Count*."""

__version__ = "0.1.0"
