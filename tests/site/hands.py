"""What a reader without a mouse, or with little patience for motion, would trip over."""

# Every control that is seen and can be pressed; a folded part hides those inside it.
CONTROLS = """() => {
  const all = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]';
  return [...document.querySelectorAll(all)].filter(e => !e.disabled && e.tabIndex >= 0
    && e.getClientRects().length
    && e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true}));
}"""

# Each element that takes the focus is noted, with what then shows that it has it.
LISTEN = """() => {
  window.walked = [];
  const look = (e, after) => {
    const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(e, after);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) ? 'outline' : boxShadow;
  };
  document.addEventListener('focusin', ({target: e}) => {
    let clear = 1;
    for (let up = e; up; up = up.parentElement) clear *= getComputedStyle(up).opacity;
    window.walked.push([e, [look(e), look(e, '::before'), look(e, '::after')].join(), clear]);
  });
}"""

WALKED = """(controls) => {
  const faults = [], said = e => e.outerHTML.replace(/\\s+/g, ' ').slice(0, 110);
  const shows = new Map(window.walked.map(([e, ring, clear]) => [e, [ring, clear]]));
  document.activeElement?.blur();
  const look = (e, after) => {
    const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(e, after);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) ? 'outline' : boxShadow;
  };
  for (const e of controls) {
    if (e.tabIndex > 0) faults.push(`tabindex ${e.tabIndex}: ${said(e)}`);
    if (!shows.has(e)) faults.push(`Tab does not reach: ${said(e)}`);
  }
  for (const [e, [ring, clear]] of shows) {
    if (ring === [look(e), look(e, '::before'), look(e, '::after')].join())
      faults.push(`no focus ring: ${said(e)}`);
    if (clear < 0.5) faults.push(`focused and not seen: ${said(e)}`);
  }
  const [first] = window.walked[0] ?? [];
  if (window.walked.filter(([e]) => e === first).length < 2)
    faults.push(`no way round; Tab ends at: ${said(window.walked.at(-1)?.[0] ?? document.body)}`);
  return faults;
}"""

FOLDED = "article summary, article .toggle-button"
IS_OPEN = """e => e.matches('summary') ? e.parentElement.open
  : !document.getElementById(e.dataset.target).classList.contains('toggle-hidden')"""

MOVING = """() => {
  const moves = [];
  for (const e of document.querySelectorAll('*')) for (const part of ['', '::before', '::after']) {
    const {animationName, transitionDuration} = getComputedStyle(e, part || null);
    if (animationName !== 'none' || transitionDuration.split(', ').some(t => parseFloat(t)))
      moves.push(`${e.tagName.toLowerCase()}.${e.className}${part}`);
  }
  moves.push(...document.getAnimations().map(a => 'running: ' + a.effect.target.outerHTML));
  return [...new Set(moves)].slice(0, 5).map(move => String(move).slice(0, 110));
}"""


def walk(page) -> list[str]:
    """Go round the page with Tab; list what is not reached, not seen, or holds the reader."""
    controls = page.evaluate_handle(CONTROLS)
    page.evaluate(LISTEN)
    for _ in range(controls.evaluate("all => all.length") + 6):
        page.keyboard.press("Tab")
    return page.evaluate(WALKED, controls)


def unfold_by_key(page) -> list[str]:
    """Open and close each folded part with Enter, then with Space."""
    faults = []
    for fold in page.query_selector_all(FOLDED):
        for key in ("Enter", "Space"):
            for wanted in ("open", "close"):
                before = fold.evaluate(IS_OPEN)
                fold.focus()
                page.keyboard.press(key)
                if fold.evaluate(IS_OPEN) == before:
                    said = fold.evaluate("e => e.closest('[id]')?.id || e.textContent.trim()")
                    faults.append(f"{key} does not {wanted} a folded part: {said}")
    return faults


def moving(page) -> list[str]:
    """List what moves or fades although the reader asked for less of it."""
    return page.evaluate(MOVING)
