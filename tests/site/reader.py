"""What a reader would trip over on one page, found by a browser or in the page's source."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from axe_playwright_python.base import AXE_FILE_PATH
from bs4 import BeautifulSoup
from hands import moving, unfold_by_key, walk
from paper import CUT, printed, spaced

HTML = Path(__file__).parents[2] / "_build" / "html"

# Faults of others that axe finds on pages of ours: a rule, the elements it may name, and why it
# is let pass. Nothing else is excused; an excuse that is no longer needed fails a test.
EXCUSES = [
    (
        "region",
        ".sidebar-primary-item:has(> .navbar-brand)",
        "sphinx-book-theme: the book's title in the sidebar lies outside every landmark",
    ),
    (
        "aria-required-children",
        "[role=list].citation-list",
        "Sphinx: the list of references has entries in the role next below",
    ),
    (
        "aria-allowed-role",
        "[role=doc-biblioentry].citation",
        "Sphinx: an entry of the list of references is a div in this role",
    ),
    (
        "aria-deprecated-role",
        "[role=doc-biblioentry].citation",
        "Sphinx: the role was deprecated after it had been chosen",
    ),
]

AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Colours do not depend on the width, and nothing else depends on the colours: each rule is run
# where it can say something new.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]

# The folded parts are opened and read too, and nothing is read while it fades in. The theme makes
# what has to be scrolled reachable by key a moment later: that is waited for, up to a limit.
UNFOLD = """async () => {
  await window.MathJax?.startup?.promise;
  const still = document.createElement('style');
  still.textContent =
    '*, ::before, ::after {animation: none !important; transition: none !important}';
  document.head.append(still);
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  for (const button of document.querySelectorAll('.toggle-button-hidden')) button.click();
  const unreachable = () => [...document.querySelectorAll('main [tabindex="-1"]')]
    .some(box => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight);
  for (let wait = 0; wait < 100 && unreachable(); wait++)
    await new Promise(ready => setTimeout(ready, 50));
}"""

FORMULAS = """() => [
  ...[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container'))
    .map(e => 'not rendered: ' + e.textContent.trim().slice(0, 80)),
  ...[...document.querySelectorAll('[data-mml-node=merror]')]
    .map(e => 'error: ' + (e.getAttribute('data-mjx-error') || e.textContent).slice(0, 80)),
  ...[...document.querySelectorAll('mjx-container [fill=red]')]
    .map(e => 'unknown macro in: ' + e.closest('.math')?.textContent.trim().slice(0, 80)),
]"""

RAW_TEX = r"""() => {
  const tex = /\\[()\[\]]|\\(begin|end)\{|\$\$/, faults = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode;
    if (!text.parentElement.closest('pre, code, script, style, noscript, mjx-container'))
      if (tex.test(text.data)) faults.push('text: ' + text.data.trim().slice(0, 80));
  }
  for (const said of [document.title, ...[...document.querySelectorAll('[alt], [aria-label]')]
      .map(e => e.getAttribute('alt') || e.getAttribute('aria-label'))])
    if (/\\[a-zA-Z(\[]|\$/.test(said)) faults.push('said aloud: ' + said.slice(0, 80));
  return faults;
}"""

SIDEWAYS = """() => {
  const page = document.documentElement, wide = [];
  if (page.scrollWidth <= page.clientWidth) return wide;
  for (const e of (document.querySelector('main') ?? document.body).querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    let scrolls = false;
    for (let up = e.parentElement; up; up = up.parentElement)
      scrolls ||= up !== document.body && /auto|scroll|hidden/.test(getComputedStyle(up).overflowX);
    if (box.right > page.clientWidth + 1 && box.width && !scrolls)
      wide.push(`${Math.round(box.right)} px: ${e.outerHTML.slice(0, 80)}`);
  }
  return wide.length ? wide.slice(0, 5) : [`the page is ${page.scrollWidth} px wide`];
}"""

PICTURES = r"""() => {
  const faults = [], article = document.querySelector('article') ?? document.body;
  const silent = text => !text || text.trim().split(/\s+/).length < 4
    || /\.(svg|png|jpe?g|gif|webp)\s*$/i.test(text);
  for (const img of article.querySelectorAll('img'))
    if (silent(img.getAttribute('alt'))) faults.push(`alt ${JSON.stringify(img.alt)}: ${img.src}`);
  for (const svg of article.querySelectorAll('svg'))
    if (!svg.closest('mjx-container, a, button, summary, [aria-hidden=true], svg svg'))
      if (svg.getAttribute('role') !== 'img' || silent(svg.getAttribute('aria-label')))
        faults.push(`svg without role and label: ${svg.outerHTML.slice(0, 80)}`);
  return faults;
}"""

RUN_AXE = """async ([which, excuses]) => {
  // Without preload: a page opened from a file may not fetch its own style sheets.
  const found = await axe.run(document, {resultTypes: ['violations'], preload: false, ...which});
  const faults = [], used = new Set();
  for (const {id, help, nodes} of found.violations)
    for (const node of nodes) {
      const element = document.querySelector(node.target[0]);
      const excuse = excuses.findIndex(([rule, of]) => rule === id && element?.matches(of));
      if (excuse < 0) faults.push(`${id} (${help}): ${node.target} ${node.html.slice(0, 120)}`);
      else used.add(excuse);
    }
  return [faults, [...used]];
}"""

# What axe would look at a thousand times over: the shapes of a formula's letters, which are hidden
# from listeners and hold no text, and the coloured words of listings, of which one of each class
# stays. The layout stays as it is.
THIN_OUT = """() => {
  for (const shapes of document.querySelectorAll('mjx-container > svg')) shapes.replaceChildren();
  const kept = new Set();
  for (const word of document.querySelectorAll('.highlight pre span[class]'))
    if (word.childElementCount === 0)
      if (kept.has(word.className)) word.replaceWith(word.textContent);
      else kept.add(word.className);
}"""

# From the range input: its picture and its value, as one string each.
STATE = """input => {
  let box = input.parentElement;
  while (box && !(box.querySelector('svg') && box.querySelector('output'))) box = box.parentElement;
  return box && [box.querySelector('svg').innerHTML, box.querySelector('output').textContent];
}"""


def built_pages() -> list[str]:
    """List every page a reader is led to, without its suffix; the listings of code are Sphinx's."""
    files = (file.relative_to(HTML).with_suffix("") for file in HTML.rglob("*.html"))
    return sorted(
        file.as_posix()
        for file in files
        if file.parts[0] not in ("_static", "_modules") and file.as_posix() != "index"
    )


class Visit(defaultdict):
    """Faults of a page by kind, each with the device and colours it was seen on."""

    def __init__(self):
        super().__init__(list)
        self.excuses_used = set()

    def add(self, where: str, other: "Visit"):
        """Take over what another visit found."""
        for kind, faults in other.items():
            self[kind] += [f"{where}, {fault}" for fault in faults]
        self.excuses_used |= other.excuses_used


def visit(context, file: Path, *, desktop: bool) -> Visit:
    """Open a page once, in light and then (on a desktop) in dark colours, and list its faults."""
    seen = Visit()
    page = context.new_page()
    page.on("request", lambda request: seen["network"].extend(foreign(request.url)))
    page.on("pageerror", lambda error: seen["errors"].append(str(error)))
    page.on("requestfailed", lambda request: seen["files"].append(f"missing: {request.url}"))
    page.emulate_media(color_scheme="light")
    page.goto(file.as_uri())
    page.evaluate("window.MathJax?.startup?.promise")
    seen["motion"] += moving(page)
    if desktop:  # the same text has the same controls on a phone, behind fewer others
        seen["keyboard"] += walk(page)
        seen["keyboard"] += unfold_by_key(page)
        seen["print"] += printed(page)
    page.evaluate(UNFOLD)
    page.evaluate(AXE)
    for kind, look in [
        ("formulas", FORMULAS),
        ("raw TeX", RAW_TEX),
        ("sideways", SIDEWAYS),
        ("pictures", PICTURES),
    ]:
        seen[kind] += page.evaluate(look)
    seen["spacing"] += spaced(page)
    if desktop:  # as at twice its size
        page.set_viewport_size({"width": 640, "height": 400})
        seen["zoom"] += page.evaluate(SIDEWAYS) + page.evaluate(CUT)
        page.set_viewport_size({"width": 1280, "height": 800})
    page.evaluate(THIN_OUT)
    off = {rule: {"enabled": False} for rule in COLOUR_RULES}
    look_with_axe(page, "light", seen, runOnly=AXE_RULES, rules=off)
    if desktop:
        look_with_axe(page, "light", seen, runOnly=COLOUR_RULES)
        look_with_axe(page, "dark", seen, runOnly=COLOUR_RULES)
    sliders = page.query_selector_all("input[type=range]")
    seen["sliders"] += [fault for slider in sliders for fault in stuck(page, slider)]
    page.close()
    return seen


def look_with_axe(page, colours: str, seen: Visit, **which):
    """Add what these rules of axe find in these colours, and which excuses that took."""
    page.emulate_media(color_scheme=colours)
    page.wait_for_function(
        "colours => document.documentElement.dataset.theme === colours", arg=colours
    )
    faults, used = page.evaluate(RUN_AXE, [which, [excuse[:2] for excuse in EXCUSES]])
    seen["accessibility"] += [f"{colours}: {fault}" for fault in faults]
    seen.excuses_used |= set(used)


def foreign(url: str) -> list[str]:
    """Return the address, unless it is on the reader's own disk."""
    return [] if url.startswith(("file:", "data:", "blob:", "about:")) else [url]


def stuck(page, slider) -> list[str]:
    """Move the slider, by key and by hand; list what does not follow."""
    name = slider.evaluate("input => input.closest('[id]')?.id || 'a slider without id'")
    before = slider.evaluate(STATE)
    if before is None:
        return [f"{name}: no picture and output around the slider"]
    faults = []
    at, low, high = slider.evaluate("({value, min, max}) => [+value, +(min || 0), +(max || 100)]")
    slider.focus()
    page.keyboard.press("ArrowRight" if at < high else "ArrowLeft")
    if slider.evaluate(STATE)[1] == before[1]:
        faults.append(f"{name}: an arrow key does not change the value shown")
    slider.fill(str(int(high if at < high else low)))
    after = slider.evaluate(STATE)
    for n, what in enumerate(("picture", "value")):
        if after[n] == before[n]:
            faults.append(f"{name}: the {what} does not follow the slider")
    return faults


@cache
def parsed(file: Path) -> BeautifulSoup:
    """Parse the page's source."""
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(file: Path) -> frozenset[str]:
    """Collect every id of a page."""
    return frozenset(element["id"] for element in parsed(file).find_all(id=True))


def dead_links(file: Path, root: Path) -> list[str]:
    """List the links to files or anchors of the book that do not exist."""
    faults = []
    for link in parsed(file).find_all("a", href=True):
        to = urlsplit(link["href"])
        if to.scheme or to.netloc:
            if to.scheme not in ("http", "https", "mailto"):
                faults.append(f"no link for a reader: {link['href']}")
            continue
        anchor = unquote(to.fragment)
        target = (file.parent / unquote(to.path)).resolve() if to.path else file
        if not target.is_relative_to(root.resolve()) or not target.is_file():
            faults.append(f"no such file: {link['href']}")
        elif anchor and target.suffix == ".html" and anchor not in anchors(target):
            faults.append(f"no such anchor: {link['href']}")
    return faults


def remote_parts(file: Path) -> list[str]:
    """List what the source fetches from elsewhere, at once or when it is scrolled to or pressed."""
    soup = parsed(file)
    parts = [e["src"] for e in soup.find_all(src=True)]
    parts += [e["srcset"] for e in soup.find_all(srcset=True)]
    parts += [e["data"] for e in soup.find_all("object", data=True)]
    parts += [e["href"] for e in soup.find_all(["link", "image", "use"], href=True)]
    parts += [e["action"] for e in soup.find_all("form", action=True)]
    for styled in soup.find_all("style"):
        parts += re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", styled.text)
    return [part for part in parts if re.match(r"\s*(https?:)?//", part)]


def repeated_ids(file: Path) -> list[str]:
    """List the ids that a page uses twice: a link to one may lead to the wrong place."""
    # sphinx-exercise gives these two to every exercise and solution; nothing links to them.
    theirs = ("exercise-content", "solution-content")
    ids = [e["id"] for e in parsed(file).find_all(id=True) if e["id"] not in theirs]
    return sorted({name for name in ids if ids.count(name) > 1})
