"""The general index: entries for the glossary's terms, and the directive ``{general-index}``.

The first time that a page sets a term of the glossary in bold is where it defines the term: an
entry of the index leads there. Sphinx adds the glossary's own entries, the functions of the API,
and what pages ask for with ``{index}``. The directive writes the index as part of a page, where
the theme, the search and the page of everything treat it like any other text; Sphinx's own page of
the index would stand outside the table of contents.
"""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.environment.adapters.indexentries import IndexEntries
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from posenc.lab import terms

GLOSSARY = "book/appendix/glossary"


class IndexTerms(SphinxTransform):
    """Enter each term where a page first sets it in bold."""

    default_priority = 700  # before the domains collect the entries, at 850

    def apply(self):
        """Give the bold words an id, and put an entry that leads to it before them."""
        source = Path(self.env.doc2path(GLOSSARY))
        if not source.exists():
            return
        if self.env.docname == GLOSSARY:
            self.part_heads()
            return
        self.env.note_dependency(str(source))
        heads, seen = terms.entries(source.read_text(encoding="utf-8")), set()
        for bold in list(self.document.findall(nodes.strong)):
            term = terms.defined(bold.astext(), heads)
            if term is None or term in seen or defines_nothing(bold):
                continue
            seen.add(term)
            name = nodes.make_id(f"index {self.env.docname} {term}")
            bold["ids"].append(name)
            entry = addnodes.index(entries=[("single", term, name, "", None)])
            bold.parent.insert(bold.parent.index(bold), entry)

    def part_heads(self):
        """Let ``query, key, value`` in the glossary be three entries of the index."""
        for node in self.document.findall(addnodes.index):
            node["entries"] = [
                (kind, part, *rest)
                for kind, value, *rest in node["entries"]
                for part in value.split(", ")
            ]


def defines_nothing(bold):
    """Whether bold words stand in a heading, or in the table of what chapters have shown."""
    above = bold.parent
    while above is not None and not isinstance(above, nodes.title):
        if isinstance(above, nodes.table) and "summary" in above["classes"]:
            return True
        above = above.parent
    return above is not None


class GeneralIndexPlace(nodes.General, nodes.Element):
    """Where the index stands; it is written when all pages have been read."""


class GeneralIndex(SphinxDirective):
    """Ask for the index."""

    def run(self):
        """Return its place."""
        self.env.note_reread()  # another page's entries may have changed
        return [GeneralIndexPlace()]


class Names:
    """What Sphinx asks for addresses when it sorts the entries: it gets names of pages."""

    def get_relative_uri(self, _here, page):
        """Return the page's own name."""
        return page


def write_index(app, doctree, docname):
    """Put the sorted entries, a section for each letter, in their place."""
    for place in list(doctree.findall(GeneralIndexPlace)):
        letters = IndexEntries(app.env).create_index(Names())
        jumps, sections = nodes.paragraph(classes=["index-letters"]), []
        for letter, entries in letters:
            name = f"index-of-{nodes.make_id(letter)}"
            jumps += [nodes.reference("", letter, refid=name, internal=True), nodes.Text(" ")]
            items = nodes.bullet_list(classes=["index-entries"])
            items += [item(app, docname, *entry) for entry in entries]
            sections.append(nodes.section("", nodes.title("", letter), items, ids=[name]))
        place.replace_self([jumps, *sections])


def item(app, here, words, found):
    """Return an entry: its words, the pages that it leads to, and what is entered below it."""
    links, below, _ = found
    line = nodes.paragraph("", words)
    for (page, name), count in numbered(links):
        title = app.env.titles[page].astext() + (f" ({count})" if count > 1 else "")
        to = f"{app.builder.get_relative_uri(here, page)}#{name}"
        line += [nodes.Text(", "), nodes.reference("", title, refuri=to, internal=True)]
    entry = nodes.list_item("", line)
    if below:
        entry += nodes.bullet_list("", *(item(app, here, w, (at, [], None)) for w, at in below))
    return entry


def numbered(links):
    """Yield page and anchor of each link, and how often the page has come so far."""
    pages = []
    for _, uri in links:
        page, _, name = uri.partition("#")
        pages.append(page)
        yield (page, name), pages.count(page)


def setup(app):
    """Enter the terms, and offer the directive."""
    app.add_transform(IndexTerms)
    app.add_node(GeneralIndexPlace)
    app.add_directive("general-index", GeneralIndex)
    app.connect("doctree-resolved", write_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
