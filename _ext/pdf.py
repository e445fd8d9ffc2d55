"""Print the one-page book: ``python _ext/pdf.py _build/singlehtml/book.html BOOK.pdf``.

A browser knows no page numbers before it has printed. So the book is printed, the pages of all
places that it links to are read off, written into the contents and the index, and it is printed
again, until the printed numbers are true.
"""

import io
import sys
from pathlib import Path

import chromium
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter

PRINTS = 4  # a number that gains a digit may move a line; after that, nothing moves

# A formula or table wider than the line is set smaller, never cut. Returns what had to shrink.
FIT = """() => {
  const shrunk = [];
  for (const box of document.querySelectorAll('div.math')) {
    const svg = box.querySelector('mjx-container > svg');
    if (!svg) continue;
    const style = getComputedStyle(box);
    const room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const wide = svg.getBoundingClientRect().width;
    if (wide > room) { box.style.fontSize = `${100 * room / wide}%`; shrunk.push(box.id); }
  }
  for (const table of document.querySelectorAll('table')) {
    let size = parseFloat(getComputedStyle(table).fontSize);
    const room = table.parentElement.clientWidth;
    while (table.offsetWidth > room + 0.5 && size > 6) {
      table.style.fontSize = `${size -= 0.5}px`;
    }
    if (table.offsetWidth > room + 0.5) table.classList.add('anywhere');
  }
  return shrunk;
}"""
# A formula is drawn; what a listener hears instead is read off its MathML.
SAY = r"""() => {
  const all = element => [...element.children].map(say);
  const inner = element => all(element).join(' ');
  const say = element => {
    const parts = all(element);
    switch (element.localName) {
      case 'mfrac': return `(${parts[0]})/(${parts[1]})`;
      case 'msub': case 'munder': return `${parts[0]}_${parts[1]}`;
      case 'msup': case 'mover': return `${parts[0]}^${parts[1]}`;
      case 'msubsup': case 'munderover': return `${parts[0]}_${parts[1]}^${parts[2]}`;
      case 'msqrt': return `√(${inner(element)})`;
      case 'mtr': return `${parts.join(', ')}; `;
      default: return parts.length ? parts.join(' ') : element.textContent.trim();
    }
  };
  for (const formula of document.querySelectorAll('mjx-container')) {
    const hidden = formula.querySelector('mjx-assistive-mml');
    if (!hidden) continue;
    const words = inner(hidden.firstElementChild).replace(/[\u2061-\u2064]/g, '');
    const picture = formula.querySelector('svg');
    picture.removeAttribute('aria-hidden');
    picture.setAttribute('role', 'img');
    picture.setAttribute('aria-label', words.replace(/\s+/g, ' ').trim());
    hidden.remove();
  }
}"""
# What reaches beyond the text's edges: a browser cuts it at the left, and at the right prints all
# pages smaller, so that it fits.
SIDEWAYS = """() => {
  const edges = document.body.getBoundingClientRect();
  return [...document.body.querySelectorAll('*:not(svg *, mjx-container *)')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width && (box.right > edges.right + 1 || box.left < edges.left - 1
      || e.clientWidth && e.scrollWidth > e.clientWidth + 1);
  }).map(e => `too wide: ${e.localName} ${e.textContent.trim().slice(0, 60)}`);
}"""
WRITE = """pages => {
  for (const place of document.querySelectorAll('.page-of')) {
    place.textContent = pages[place.dataset.of] ?? '';
  }
  for (const entry of document.querySelectorAll('.printed-index p')) {
    const seen = new Set();  // an entry names a page once, however many places it has there
    const places = [...entry.querySelectorAll('.at')];
    const page = at => Number(at.querySelector('.page-of').textContent);
    for (const at of places.sort((a, b) => page(a) - page(b))) {
      entry.append(at);
      at.hidden = seen.has(page(at));
      seen.add(page(at));
    }
  }
}"""
SAYS = """() => ['author', 'description'].map(
  name => document.querySelector(`meta[name=${name}]`).content)"""
# Formulas that MathJax refused, and pictures that did not come.
FAULTS = """() => [
  ...[...document.querySelectorAll('[data-mml-node=merror]')].map(e => 'formula: ' + e.textContent),
  ...[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container'))
    .map(e => 'formula not rendered: ' + e.textContent),
  ...[...document.images].filter(e => !e.naturalWidth).map(e => 'picture: ' + e.src),
]"""


class Unfit(Exception):  # noqa: N818
    """The page cannot be printed as a book."""


def printed(page):
    """Return the PDF's bytes, and the page of each place that the book links to."""
    pdf = page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    reader = PdfReader(io.BytesIO(pdf))
    return pdf, {
        name.lstrip("/"): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def bind(browser, source, target):
    """Print the book; raise Unfit if something is missing on a page or the numbers never settle."""
    page = browser.new_page(viewport={"width": 700, "height": 1000}, color_scheme="light")
    page.set_default_timeout(240_000)
    page.emulate_media(media="print", color_scheme="light")
    page.goto(source.resolve().as_uri())
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.evaluate("MathJax.startup.promise.then(() => null)")
    page.evaluate(SAY)
    page.evaluate(FIT)
    faults = page.evaluate(FAULTS) + page.evaluate(SIDEWAYS)
    if faults:
        page.close()
        raise Unfit("\n".join(faults))
    known = None
    for _ in range(PRINTS):
        pdf, places = printed(page)
        if places == known:
            break
        known = places
        page.evaluate(WRITE, places)
    else:
        raise Unfit(f"page numbers still move after {PRINTS} prints")
    says = page.evaluate(SAYS)
    page.close()
    finish(pdf, target, *says)


def finish(pdf, target, author, subject):
    """Store the file with what a browser leaves out: who wrote it, and that the outline opens."""
    writer = PdfWriter(io.BytesIO(pdf), incremental=True)  # what is there stays, byte for byte
    writer.add_metadata({"/Author": author, "/Subject": subject})
    writer.page_mode = "/UseOutlines"
    writer.create_viewer_preferences().display_doctitle = True
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.write(target)


def main(source, target):
    """Print the book with the Chromium that is found."""
    with sync_playwright() as playwright:
        program = chromium.find(playwright.chromium.executable_path)
        if program is None:
            sys.exit(chromium.MISSING)
        browser = playwright.chromium.launch(executable_path=program, args=chromium.ARGUMENTS)
        try:
            bind(browser, source, target)
        except Unfit as fault:
            sys.exit(f"The book is not printed: {fault}")
        browser.close()
    pages = len(PdfReader(target).pages)
    print(f"{target}: {pages} pages, {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
