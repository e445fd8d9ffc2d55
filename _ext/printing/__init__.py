"""The printed book: all pages in one file, made fit for paper, and printed until its numbers hold.

What is done to a page follows from its markup; nothing here knows a chapter by name. Data runs one
way, through these rooms:

- `builder`: Sphinx renders each page and hands over a `book.Book`;
- `leaf`: a page becomes a leaf, with `slider` for what moves on the screen;
- `solutions`, `front`, `index`: what paper has elsewhere, or besides;
- `whole`: all of it as one HTML file, styled by ``paper.css``;
- `press`: a browser (`chromium`) prints it; ``press.js`` is what runs on the page.

`markup` and `places` serve them all: pieces of HTML, and the names and page numbers of places.
"""


def setup(app):
    """Offer the builder; Sphinx is loaded for nobody else, the press does without."""
    from . import builder

    return builder.setup(app)
