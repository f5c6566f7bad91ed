"use strict";
// The page is complete without this: it only hides cases, shows what a search found in them, and opens the one that the
// address names.
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
  const lower = (text) => {
    const lowered = text.toLowerCase();
    return lowered.length === text.length ? lowered : text; // of a few letters the lower form is longer
  };
  // Where a text of a case stands, and how much sooner than others it is shown.
  const describe = (part) => {
    const box = part.closest(".content");
    const name = box ? box.querySelector("header b").textContent : "";
    if (box) return [name.toLowerCase(), /^(Content|A|B)$/.test(name) ? 0 : 1];
    if (!part.matches("dd")) return ["judge", 2];
    return [`metadata: ${part.previousElementSibling.textContent}`, 3];
  };
  const list = (row) =>
    Array.from(row.querySelectorAll(".body :is(.content > pre, .content > .inside, .said, td, .points > li, dd)"), (part) => {
      const text = part.textContent.replace(/\s+/g, " ").trim();
      const [where, order] = describe(part);
      return { text, lowered: lower(text), where, order };
    });
  const mark = (line, text, words) => {
    const lowered = lower(text);
    let from = 0;
    for (;;) {
      const hits = words.map((word) => [lowered.indexOf(word, from), word]).filter(([at]) => at >= 0);
      if (!hits.length) break;
      const [at, word] = hits.reduce((first, hit) => (hit[0] < first[0] ? hit : first));
      const marked = document.createElement("mark");
      marked.textContent = text.slice(at, at + word.length);
      line.append(text.slice(from, at), marked);
      from = at + word.length;
    }
    line.append(text.slice(from));
  };
  const excerpt = (row, words) => {
    for (const line of row.querySelectorAll(".hit")) line.remove();
    const place = row.querySelector("summary, .closed");
    let missing = words;
    const parts = words.length ? list(row) : [];
    for (let count = 0; missing.length && count < 3; count += 1) {
      const holds = (part) => missing.filter((word) => part.lowered.includes(word)).length;
      const [best] = parts.filter(holds).sort((a, b) => holds(b) - holds(a) || a.order - b.order);
      if (!best) return;
      const at = Math.min(...missing.map((word) => best.lowered.indexOf(word)).filter((found) => found >= 0));
      const [start, end] = [Math.max(0, at - 60), Math.min(best.text.length, at + 120)];
      const line = document.createElement("span");
      line.className = "hit";
      line.dir = "auto";
      const where = document.createElement("b");
      where.textContent = best.where;
      line.append(where, start ? " …" : " ");
      mark(line, best.text.slice(start, end), words);
      line.append(end < best.text.length ? "…" : "");
      place.append(line);
      const seen = best.lowered.slice(start, end);
      missing = missing.filter((word) => !seen.includes(word) && word.length < 120);
    }
  };
  // In a case that is open, without a change to what it holds.
  const paint = (words) => {
    if (!window.Highlight || !CSS.highlights) return;
    const ranges = [];
    for (const row of words.length ? rows : []) {
      if (row.hidden || !row.querySelector("details[open]")) continue;
      const walker = document.createTreeWalker(row.querySelector(".body"), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const text = lower(walker.currentNode.data);
        for (const word of words) {
          for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
            const range = new Range();
            range.setStart(walker.currentNode, at);
            range.setEnd(walker.currentNode, at + word.length);
            ranges.push(range);
          }
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges.slice(0, 5000)));
  };
  const find = () => value("text").toLowerCase().split(/\s+/).filter(Boolean);
  const apply = () => {
    const words = find();
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
      excerpt(row, fits ? words : []);
    }
    paint(words);
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
  document.getElementById("list").addEventListener("toggle", () => paint(find()), true);
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
