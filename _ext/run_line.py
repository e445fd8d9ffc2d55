"""Under the title of every notebook: how to run it. Launch buttons only where there is an address.

The line is added to the finished page: it is no part of the text, of its search or of its print.
"""

import json
from html import escape
from pathlib import Path

LINE = """
<div class="run-line"><p>
<strong>Run this page:</strong> <a href="{url}" download="{file}">download the notebook</a>
(where the browser shows it, save that), or open <code>{path}</code> after
<code>make lab</code> in a copy of the repository
(on a GPU: <code>POSENC_DEVICE=cuda make lab</code>).
</p></div>
"""


def add_line(app, pagename, templatename, context, doctree):
    """Put the line behind the title."""
    body = context.get("body")
    if not body or context.get("page_source_suffix") != ".ipynb":  # one page of all has none
        return
    title, end, rest = body.partition("</h1>")
    url = context["pathto"]("_sources/" + context["sourcename"], 1)
    context["body"] = title + end + run_line(url, f"{pagename}.ipynb") + rest


def run_line(url, path):
    """Return the line of the notebook at this path, to be downloaded from this address."""
    path = escape(path)
    return LINE.format(url=escape(url), path=path, file=path.rpartition("/")[2])


def launch_only_from_an_address(app, config):
    """Take the launch buttons off a book whose repository has no address."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        options["launch_buttons"] = {}


def without_outputs(notebook):
    """Return a notebook, as text, as it is before its first run."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def lighten_downloads(app, exception):
    """Take the outputs out of what is downloaded: the page shows them, and a run makes them."""
    if exception is None and app.builder.name == "html":
        for file in Path(app.outdir, "_sources").rglob("*.ipynb"):
            stored = file.read_text(encoding="utf-8")
            file.write_text(without_outputs(stored), encoding="utf-8")


def setup(app):
    """Join Sphinx's events."""
    app.connect("config-inited", launch_only_from_an_address, priority=900)
    app.connect("html-page-context", add_line, priority=900)
    app.connect("build-finished", lighten_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
