"""All that is printed, as the builder hands it over."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cover:
    """What the title page says."""

    title: str
    subtitle: str
    author: str
    year: str
    licence: str


@dataclass(frozen=True)
class Page:
    """A page of the HTML book: its name and its body."""

    name: str
    body: str


@dataclass(frozen=True)
class Part:
    """Pages under one caption; the first part, without one, stands before the others."""

    caption: str | None
    pages: list[Page]


@dataclass(frozen=True)
class Book:
    """All that is printed."""

    cover: Cover
    parts: list[Part]
    index: list
    mathjax: dict
    language: str
