"use strict";
// The page is complete without this: it only hides cases, and opens the one that the address names.
(() => {
  const form = document.getElementById("filter");
  if (!form) return;
  const rows = Array.from(document.querySelectorAll("#list > li"));
  const texts = new Map();
  const read = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const value = (name) => (form.elements[name] ? form.elements[name].value : "");
  const marked = (name) => Boolean(form.elements[name] && form.elements[name].checked);
  const apply = () => {
    const words = value("text").toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const about = row.dataset;
      const fits =
        (!value("outcome") || about.outcome === value("outcome")) &&
        (!value("reason") || about.reason.split(" ").includes(value("reason"))) &&
        (!value("sort") || about.sort === value("sort")) &&
        (!value("group") || about.group === value("group")) &&
        (!marked("split") || about.split === "1") &&
        (!marked("wrong") || about.wrong === "1") &&
        words.every((word) => read(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    document.getElementById("found").textContent = `${shown} of ${rows.length} cases`;
  };
  const open = (state) => {
    for (const row of rows) if (!row.hidden) row.querySelector("details").open = state;
  };
  const visit = () => {
    const shown = location.hash.startsWith("#show-") ? location.hash.slice(6) : "";
    if (shown && form.elements.outcome) {
      form.elements.outcome.value = shown;
      apply();
      document.getElementById("cases").scrollIntoView();
      return;
    }
    const row = rows.find((item) => `#${item.id}` === location.hash);
    if (!row) return;
    row.hidden = false;
    row.querySelector("details").open = true;
    row.scrollIntoView();
  };
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 80);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  document.getElementById("open").addEventListener("click", () => open(true));
  document.getElementById("close").addEventListener("click", () => open(false));
  window.addEventListener("hashchange", visit);
  window.addEventListener("beforeprint", () => open(true));
  form.hidden = false;
  apply();
  visit();
})();
