"""The built book holds nothing that no reader uses; the theme brings more than half as much again.

Deleted: source maps, fonts in a second format for browsers older than the theme's own scripts, the
font of company signs, which no page shows, and translations that only the build reads. Of the two
thousand icons in the theme's script, those stay that a page or a script names.
"""

import re
from pathlib import Path

from sphinx.errors import ExtensionError

UNUSED = ("**/*.map", "**/*.ttf", "**/fa-brands-400.woff2", "locales/**/*.[mp]o")
ICONS = "scripts/fontawesome.js"
# name:[width,height,[other names],"unicode","shape"], as the script lists its icons
ICON = re.compile(
    r"""(?:"([\w-]+)"|(\w+)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?"""
)
NAMED = re.compile(r"\bfa-([a-z0-9-]+)")


def slim(app, exception):
    """Delete what is not used, at the end of a build of HTML."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for pattern in UNUSED:
        for file in static.glob(pattern):
            file.unlink()
    for folder in sorted(static.glob("locales/**/"), reverse=True):
        folder.rmdir()
    script = static / ICONS
    if script.exists():
        pages = [*Path(app.outdir).rglob("*.html"), *static.rglob("*.js")]
        texts = (page.read_text(encoding="utf-8") for page in pages if page != script)
        named = {name for text in texts for name in NAMED.findall(text)}
        script.write_text(only(named, script.read_text(encoding="utf-8")), encoding="utf-8")


def only(named, script):
    """Return the script of icons with those that these names ask for."""
    if not ICON.search(script):
        raise ExtensionError("the theme's script lists its icons in another way: see _ext/slim.py")

    def kept(icon):
        names = {icon[1] or icon[2], *re.findall(r'"([\w-]+)"', icon[3])}
        return icon[0] if names & named else ""

    return ICON.sub(kept, script)


def setup(app):
    """Join the end of the build, after what copies files in."""
    app.connect("build-finished", slim, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
