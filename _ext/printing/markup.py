"""Pieces of HTML."""

from bs4 import BeautifulSoup


def parsed(html):
    """Return the first element of a piece of HTML."""
    return BeautifulSoup(html, "html.parser").contents[0].extract()


def title_of(element):
    """Return a copy of what a title says, without links in it."""
    head = element if element.name in ("h2", "h3") else element.h2
    copy = BeautifulSoup(str(head), "html.parser")
    for link in copy.find_all("a"):
        link.unwrap()
    for named in copy.find_all(id=True):
        del named["id"]
    return list(copy.find(head.name).contents)
