"""The book as one page, to be printed: Jupyter Book's builder ``singlehtml``, made fit for paper.

Sphinx's own merges the chapters before it numbers them, and two chapters with a section of the same
name then share one anchor. Here each page is written as the HTML book writes it, so that chapters,
figures, equations and exercises bear the same numbers, and `whole` puts the pages together.
"""

from pathlib import Path

import yaml
from docutils.io import StringOutput
from sphinx import addnodes
from sphinx.builders.singlehtml import SingleFileHTMLBuilder
from sphinx.environment.adapters.indexentries import IndexEntries
from sphinx.util import logging

from .book import Book, Cover, Page, Part
from .places import PAGE
from .whole import written

STYLE = Path(__file__).with_name("paper.css")
logger = logging.getLogger(__name__)


class OnePageBuilder(SingleFileHTMLBuilder):
    """Write every page as the HTML book does, and all of them into one file."""

    def get_target_uri(self, docname, typ=None):
        """Name the place where a page begins; `places` turns it into the anchor of one file."""
        return PAGE + docname

    def write(self, *ignored):
        """Render the pages in the order of the contents and write them as one."""
        self.prepare_writing(self.env.all_docs)
        parts = [
            Part(caption, [self.rendered(name) for name in names if name in self.env.titles])
            for caption, names in self.reading_order()
        ]
        book = Book(
            cover=self.cover(),
            parts=parts,
            index=IndexEntries(self.env).create_index(self),
            mathjax={"path": f"_static/{self.config.mathjax_path}", **self.config.mathjax3_config},
            language=self.globalcontext["language"] or "en",
        )
        page, faults = written(book)
        for fault in faults:
            logger.warning("the printed book: %s", fault)
        Path(self.outdir, "book.html").write_text(page, encoding="utf-8")

    def finish(self):
        """Add what the page shows: pictures, and the styles of text and code."""
        self.copy_image_files()
        static = Path(self.outdir, "_static")
        static.mkdir(exist_ok=True)
        self.create_pygments_style_file()
        (static / STYLE.name).write_bytes(STYLE.read_bytes())

    def reading_order(self):
        """Return the parts, each with its caption and its pages, as the contents have them."""
        root = self.config.root_doc
        trees = self.env.get_doctree(root).findall(addnodes.toctree)
        parts = [(tree.get("caption"), [*map(str, tree["includefiles"])]) for tree in trees]
        return [(None, [root]), *((caption, self.deep(names)) for caption, names in parts)]

    def deep(self, names):
        """Return these pages, each followed by the pages below it."""
        found = []
        for name in names:
            found += [name, *self.deep(self.env.toctree_includes.get(name, []))]
        return found

    def rendered(self, docname):
        """Return a page's body as the HTML book writes it."""
        doctree = self.env.get_and_resolve_doctree(docname, self)
        doctree.settings = self.docsettings
        # HTML's writer asks for these two in another form when the builder is this one.
        self.secnumbers = {
            f"{docname}/{anchor}": number
            for anchor, number in self.env.toc_secnumbers.get(docname, {}).items()
        }
        self.fignumbers = {
            f"{docname}/{kind}": numbers
            for kind, numbers in self.env.toc_fignumbers.get(docname, {}).items()
        }
        self.imgpath, self.dlpath, self.current_docname = "_images", "_downloads", docname
        self.post_process_images(doctree)
        self.docwriter.write(doctree, StringOutput(encoding="utf-8"))
        self.docwriter.assemble_parts()
        return Page(docname, self.docwriter.parts["fragment"])

    def cover(self):
        """Return what the title page says: all of it stands in _config.yml."""
        settings = yaml.safe_load(Path(self.srcdir, "_config.yml").read_text(encoding="utf-8"))
        title, _, subtitle = settings["title"].partition(" — ")
        return Cover(
            title=title,
            subtitle=subtitle,
            author=self.config.author,
            year=self.config.copyright,
            licence=settings.get("html", {}).get("extra_footer", ""),
        )


def lend_handlers(app):
    """Let this builder write the nodes of extensions that know ``html`` only."""
    handlers = app.registry.translation_handlers
    ours = handlers.setdefault(OnePageBuilder.name, {})
    for node, visit in handlers.get("html", {}).items():
        ours.setdefault(node, visit)


def setup(app):
    """Take the place of Sphinx's own builder of this name; nothing changes for any other."""
    app.add_builder(OnePageBuilder, override=True)
    app.connect("builder-inited", lend_handlers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
