"""The built book asks the network for nothing.

Sphinx would load MathJax from a CDN: here it is one local file, taken from a wheel. Jupyter Book
adds Thebe, which loads a kernel's client from a CDN: here it is left out.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

from sphinx.errors import ExtensionError

# SVG output needs no fonts, and the full build loads no further file for a rare macro.
MATHJAX = "tex-svg-full.js"


def point_to_local_mathjax(app, config):
    """Name the local file; Sphinx resolves it against ``_static``."""
    config.mathjax_path = f"mathjax/{MATHJAX}"


def without_thebe(app, pagename, templatename, context, doctree):
    """Take Thebe's scripts and styles off the page."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if not is_thebe(file)]


def is_thebe(file):
    """Whether a script or style, linked or inline, belongs to Thebe."""
    inline = getattr(file, "attributes", {}).get("body") or ""
    return "thebe" in f"{getattr(file, 'filename', file)} {inline}".lower()


def settle_files(app, exception):
    """Copy MathJax in, and take out what no page links to."""
    if exception is not None or app.builder.format != "html":
        return
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None:
        raise ExtensionError(
            "MathJax is missing: pip install -c requirements.txt sphinx-mathjax-offline"
        )
    # Not in _static of the sources: Jupyter Book would link every script there on every page.
    static = Path(app.outdir, "_static")
    source = Path(spec.submodule_search_locations[0], "static", "mathjax", MATHJAX)
    (static / "mathjax").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, static / "mathjax" / MATHJAX)
    for unused in static.glob("sphinx-thebe.*"):
        unused.unlink()


def setup(app):
    """Join Sphinx's events; the page context last, after the extensions that fill it."""
    app.connect("config-inited", point_to_local_mathjax)
    app.connect("html-page-context", without_thebe, priority=900)
    app.connect("build-finished", settle_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
