"""What a fault is, how it is put in, and which command must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FORMULA, SHIFT = "book/2-waves/formula.ipynb", "book/2-waves/shift.ipynb"
NBVAL = ("-m", "pytest", "-q", "--nbval", "--nbval-current-env")
TESTS = ("-m", "pytest", "-q")


@dataclass(frozen=True)
class Break:
    """One fault: what it is, where it is put, and the commands of which the last must fail."""

    name: str
    file: str
    put: Callable[[str], str]
    check: tuple[tuple[str, ...], ...]


def swap(old: str, new: str) -> Callable[[str], str]:
    """Replace what must be there once: another place would hide a fault that nobody sees."""

    def put(text: str) -> str:
        if text.count(old) != 1:
            raise SystemExit(f"{text.count(old)} places to break, not one: {old!r}")
        return text.replace(old, new)

    return put


def both(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    """Break two places of one file: some faults need a partner."""
    return lambda text: second(first(text))


def unit(test: str) -> tuple[tuple[str, ...], ...]:
    """Name one test of the package or of the book's sources."""
    return ((*TESTS, f"tests/{test}"),)
