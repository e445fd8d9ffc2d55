// A listing that is too wide can be scrolled with the keys: the theme sees to it when the window
// changes its size, so it is told when something folded opens as well.
for (const event of ["toggle", "click"]) {
  document.addEventListener(event, ({ target }) => {
    if (target.closest?.("details, .toggle")) window.dispatchEvent(new Event("resize"));
  }, true);
}

// Paper is white, and nothing on it can be unfolded: before printing the page takes its light
// colours and opens what is folded, and afterwards it is as it was.
let folded = [], colours;
addEventListener("beforeprint", () => {
  colours = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = colours;
  for (const part of folded) part.open = false;
});
