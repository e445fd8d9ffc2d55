// A listing that is too wide can be scrolled with the keys: the theme sees to it when the window
// changes its size, so it is told when something folded opens as well.
for (const event of ["toggle", "click"]) {
  document.addEventListener(event, ({ target }) => {
    if (target.closest?.("details, .toggle")) window.dispatchEvent(new Event("resize"));
  }, true);
}
