"""What is lost when a page is printed, enlarged, or set with the spacing that its reader needs."""

# Between the margins that browsers print with, 1 cm each.
A4_WIDTH, A4_HEIGHT = 718, 1047

# Nothing to press on paper.
PRESSED = (
    ".bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, .bd-footer-content, "
    ".prev-next-area, .skip-link, #pst-back-to-top, #pst-skip-link, .headerlink, .copybtn, "
    ".run-line, .toggle-button, article input, article button"
)

SEEN_ON_PAPER = """pressed => {
  const faults = [], article = document.querySelector('article') ?? document.body;
  const said = e => e.outerHTML.replace(/\\s+/g, ' ').slice(0, 110);
  const seen = e => e.getClientRects().length && e.checkVisibility({visibilityProperty: true});
  for (const e of document.querySelectorAll(pressed)) {
    const {width, height} = e.getBoundingClientRect();
    if (seen(e) && width > 1 && height > 1) faults.push(`on paper: ${said(e)}`);
  }
  for (const e of article.querySelectorAll('details:not([open]), .toggle-hidden'))
    faults.push(`stays folded: ${said(e)}`);
  for (const e of [document.documentElement, ...article.querySelectorAll('*')]) {
    if (e.closest('mjx-assistive-mml, .visually-hidden, svg *')) continue;
    if (e.matches('.math')) {
      const formula = e.querySelector('svg')?.getBoundingClientRect();
      if (formula?.right > e.getBoundingClientRect().right + 1)
        faults.push(`cut at the right: ${e.textContent.trim().slice(0, 60)}`);
      continue;
    }
    const scrolls = /auto|scroll|hidden/.test(getComputedStyle(e).overflowX);
    if ((scrolls || e === document.documentElement) && e.clientWidth > 1
        && e.scrollWidth > e.clientWidth + 1)
      faults.push(`cut at the right, ${e.scrollWidth - e.clientWidth} px: ${said(e)}`);
  }
  const light = rgb => { const [r, g, b] = rgb.match(/[\\d.]+/g).map(Number);
    return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; };
  const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT), pale = new Set();
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || e.closest('script, style, mjx-container')) continue;
    if (!seen(e)) continue;
    let paper = 'rgb(255, 255, 255)';
    for (let up = e; up; up = up.parentElement) {
      const {backgroundColor} = getComputedStyle(up);
      const clear = backgroundColor.match(/rgba\\(.*, ([\\d.]+)\\)/)?.[1] ?? 1;  // a tint is none
      if (clear > 0.5) { paper = backgroundColor; break; }
    }
    const ink = getComputedStyle(e).color;
    if (light(ink) > 0.55 || light(paper) < 0.75)
      pale.add(`${ink} on ${paper}: ${e.tagName} ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  return [...faults, ...[...pale].slice(0, 5)];
}"""

SPACING = """* {line-height: 1.5 !important; letter-spacing: 0.12em !important;
  word-spacing: 0.16em !important} p {margin-bottom: 2em !important}"""

CUT = """() => {
  const cut = [];
  for (const e of document.querySelectorAll('article *, .bd-header-article *')) {
    const {overflowX, overflowY} = getComputedStyle(e);
    if (e.closest('.math, svg, .visually-hidden, .sr-only') || e.clientWidth < 2) continue;
    if (overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1
        || overflowY === 'hidden' && e.scrollHeight > e.clientHeight + 1)
      cut.push(e.outerHTML.replace(/\\s+/g, ' ').slice(0, 110));
  }
  return cut.slice(0, 5);
}"""


def printed(page) -> list[str]:
    """Print a dark page to paper of A4's width, and list what it loses."""
    size = page.viewport_size
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": A4_WIDTH, "height": A4_HEIGHT})
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    faults = page.evaluate(SEEN_ON_PAPER, PRESSED)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    if page.evaluate("document.documentElement.dataset.theme") != "dark":
        faults.append("the page does not get its colours back")
    page.set_viewport_size(size)
    page.emulate_media(media="screen", color_scheme="light")
    return faults


def spaced(page) -> list[str]:
    """Widen lines, letters and words (WCAG 1.4.12); list the text that is cut."""
    style = page.add_style_tag(content=SPACING)
    faults = page.evaluate(CUT)
    style.evaluate("style => style.remove()")
    return faults
