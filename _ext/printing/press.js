// What `press` asks of the page: faults are returned in words, an empty list is none.
const press = {
  // A formula is drawn; what a listener hears instead is read off its MathML.
  say() {
    const all = element => [...element.children].map(words);
    const inner = element => all(element).join(' ');
    const words = element => {
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
      const said = inner(hidden.firstElementChild).replace(/[\u2061-\u2064]/g, '');
      const picture = formula.querySelector('svg');
      picture.removeAttribute('aria-hidden');
      picture.setAttribute('role', 'img');
      picture.setAttribute('aria-label', said.replace(/\s+/g, ' ').trim());
      hidden.remove();
    }
  },

  // A formula or table wider than the line is set smaller, never cut.
  fit() {
    for (const box of document.querySelectorAll('div.math')) {
      const svg = box.querySelector('mjx-container > svg');
      if (!svg) continue;
      const style = getComputedStyle(box);
      const room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      const wide = svg.getBoundingClientRect().width;
      if (wide > room) box.style.fontSize = `${100 * room / wide}%`;
    }
    for (const table of document.querySelectorAll('table')) {
      let size = parseFloat(getComputedStyle(table).fontSize);
      const room = table.parentElement.clientWidth;
      while (table.offsetWidth > room + 0.5 && size > 6) {
        table.style.fontSize = `${size -= 0.5}px`;
      }
      if (table.offsetWidth > room + 0.5) table.classList.add('anywhere');
    }
  },

  // A paragraph of three lines stays whole: the browser would leave its last line to the next page.
  hold() {
    for (const text of document.querySelectorAll('p')) {
      const lines = text.clientHeight / parseFloat(getComputedStyle(text).lineHeight);
      if (lines < 3.5) text.style.breakInside = 'avoid';
    }
  },

  // Formulas that MathJax refused, and pictures that did not come.
  missing: () => [
    ...[...document.querySelectorAll('[data-mml-node=merror]')].map(e => `formula: ${e.textContent}`),
    ...[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container'))
      .map(e => `formula not rendered: ${e.textContent}`),
    ...[...document.images].filter(e => !e.naturalWidth).map(e => `picture: ${e.src}`),
  ],

  // What reaches beyond the text's edges: a browser cuts it at the left, and at the right prints
  // all pages smaller, so that it fits.
  sideways() {
    const edges = document.body.getBoundingClientRect();
    return [...document.body.querySelectorAll('*:not(svg *, mjx-container *)')].filter(e => {
      const box = e.getBoundingClientRect();
      return box.width && (box.right > edges.right + 1 || box.left < edges.left - 1
        || e.clientWidth && e.scrollWidth > e.clientWidth + 1);
    }).map(e => `too wide: ${e.localName} ${e.textContent.trim().slice(0, 60)}`);
  },

  // Write the page of each place where it is named; an entry of the index names a page once,
  // however many places it has there.
  number(pages) {
    for (const place of document.querySelectorAll('.page-of')) {
      place.textContent = pages[place.dataset.of] ?? '';
    }
    for (const entry of document.querySelectorAll('.printed-index p')) {
      const seen = new Set();
      const places = [...entry.querySelectorAll('.at')];
      const page = at => Number(at.querySelector('.page-of').textContent);
      for (const at of places.sort((a, b) => page(a) - page(b))) {
        entry.append(at);
        at.hidden = seen.has(page(at));
        seen.add(page(at));
      }
    }
  },
};
