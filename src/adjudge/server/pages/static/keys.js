"use strict";
// Keys for what the page offers anyway: every one clicks or focuses a control that is there for a mouse and a finger.
// A control names its key by data-key ("a", "Control+Enter"), a link of the navigation by data-go (after "g"). Letters
// count outside fields only, and not at all where data-keys="off" is on the body.
(() => {
  const off = document.body.dataset.keys === "off";
  const fields = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]";
  let going = 0;

  const isShown = (element) => element.checkVisibility() && !element.closest("[hx-ignore]");
  const find = (attribute, key) =>
    Array.from(document.querySelectorAll(`[${attribute}]`)).find(
      (element) => element.getAttribute(attribute) === key && isShown(element),
    );
  // A button with data-prepares="ID" is only chosen by its key, and the field of that id gets the focus; what sends it is
  // Control and Enter, or a click. So no single key decides anything.
  const prepare = (button) => {
    if (button.disabled) {
      say("That is switched off; the page says why.");
      return;
    }
    for (const other of document.querySelectorAll("[data-chosen]")) {
      other.removeAttribute("data-chosen");
      other.removeAttribute("aria-pressed");
    }
    button.setAttribute("data-chosen", "");
    button.setAttribute("aria-pressed", "true");
    document.getElementById(button.dataset.prepares)?.focus();
    say("Chosen. Control and Enter sends it.");
  };

  // data-steps="SELECTOR": from one such place of the page to the next, and round again.
  let step = 0;
  const walk = (selector) => {
    const places = Array.from(document.querySelectorAll(selector));
    if (places.length) location.hash = places[step++ % places.length].id;
  };

  const use = (element) => {
    if (element.dataset.prepares) prepare(element);
    else if (element.dataset.steps) walk(element.dataset.steps);
    else if (element.matches(fields)) element.focus();
    else if (element.matches("input")) {
      element.focus();
      element.click();
    } else element.click();
  };
  const say = (text) => {
    const place = document.getElementById("said");
    if (place) place.textContent = text;
  };

  // Rows of a table: j and k move, Enter follows the link that has the focus.
  const move = (by) => {
    const rows = Array.from(document.querySelectorAll("a.row")).filter(isShown);
    if (!rows.length) return false;
    const at = rows.indexOf(document.activeElement);
    const next = rows[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by, 0), rows.length - 1)];
    next.focus();
    return true;
  };

  const press = (key) => {
    if (Date.now() - going < 1500) {
      going = 0;
      const link = Array.from(document.querySelectorAll("[data-go]")).find((item) => item.dataset.go === key);
      if (link) link.click();
      return Boolean(link);
    }
    const control = find("data-key", key);
    if (control) {
      use(control);
      return true;
    }
    if (key === "g") {
      going = Date.now();
      return true;
    }
    if (key === "?") {
      document.getElementById("keys").togglePopover();
      return true;
    }
    if (key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) search.focus();
      return Boolean(search);
    }
    return key === "j" || key === "k" ? move(key === "j" ? 1 : -1) : false;
  };

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.repeat || event.altKey || event.metaKey) return;
    const inField = event.target instanceof Element && event.target.matches(fields);
    if (event.key === "Escape") {
      if (inField) event.target.blur();
      return;
    }
    // A single line that belongs to answers: the keys of the answers work again, and nothing is sent.
    if (event.key === "Enter" && inField && event.target.matches("input[data-key]")) {
      event.preventDefault();
      event.target.blur();
      return;
    }
    if (event.ctrlKey) {
      if (event.key !== "Enter") return;
      const chosen = document.querySelector("[data-chosen]");
      const control = chosen && isShown(chosen) ? chosen : find("data-key", "Control+Enter");
      if (control) {
        event.preventDefault();
        control.click();
      }
      return;
    }
    if (inField || off) return;
    if (press(event.key)) event.preventDefault();
  });

  // A long queue scrolls by itself: the request that is shown stays in sight.
  const follow = () => document.querySelector(".queue [aria-current]")?.scrollIntoView({ block: "nearest" });
  follow();
  document.addEventListener("htmx:after:swap", follow);

  // What a live update announces, once and in one place.
  document.addEventListener("htmx:after:swap", () => {
    const told = document.querySelector("[data-say]");
    if (told) say(told.dataset.say);
  });
})();
