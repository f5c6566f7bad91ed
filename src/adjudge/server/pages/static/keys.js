"use strict";
// Keys for what the page offers anyway: every one clicks or focuses a control that is there for a mouse and a finger.
// A control names its key by data-key ("a", "Control+Enter"), a link of the navigation by data-go (after "g"). Letters
// count outside fields only, and not at all where data-keys="off" is on the body.
// data-off="a d" lists keys after which people write a text, and that are off here: the element's text says why.
// data-idle="u" lists other keys that have nothing to do now: data-why says why.
(() => {
  const off = document.body.dataset.keys === "off";
  const fields = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]";
  const message = document.getElementById("said");
  let going = 0;
  let held = ""; // the key that was used and is still down
  let leaving = false; // whether another page was asked for: a key that comes now is meant for that one
  let ignoring = false; // whether what is typed is a text that belongs nowhere
  let before = null; // what had the focus until then

  const isShown = (element) => element.checkVisibility() && !element.closest("[hx-ignore]");
  const find = (attribute, key) =>
    Array.from(document.querySelectorAll(`[${attribute}]`)).find(
      (element) => element.getAttribute(attribute) === key && isShown(element),
    );
  const findListed = (attribute, key) =>
    Array.from(document.querySelectorAll(`[${attribute}]`)).find((element) =>
      element.getAttribute(attribute).split(" ").includes(key),
    );
  const read = (element) => (element?.textContent ?? "").replace(/\s+/g, " ").trim();
  const name = (button) =>
    Array.from(button.childNodes)
      .filter((node) => node.nodeType === Node.TEXT_NODE)
      .map((node) => node.textContent.trim())
      .join("");

  // Seen at the top of the page, and read out by screen readers.
  const say = (text) => {
    message.textContent = text;
  };

  // Somebody writes where no field is: without this, one letter of the text would decide, and another leave the page.
  const ignore = (why) => {
    if (!ignoring) before = document.activeElement;
    ignoring = true;
    say(`${why} What you type goes nowhere until you press Esc.`);
    message.focus(); // away from a button, which a blank would press
  };
  const heed = () => {
    ignoring = false;
    say("");
  };

  const choose = (button) => {
    for (const other of document.querySelectorAll("[data-chosen]")) {
      other.removeAttribute("data-chosen");
      other.removeAttribute("aria-pressed");
    }
    button?.setAttribute("data-chosen", "");
    button?.setAttribute("aria-pressed", "true");
  };
  // A button with data-prepares="ID" is only chosen by its key, and the field of that id gets the focus; what sends it is
  // Control and Enter, or a click. So no single key decides anything.
  const prepare = (button) => {
    const field = document.getElementById(button.dataset.prepares);
    choose(button.disabled ? null : button);
    field.focus(); // also where it is off: what is typed next is a reason, whatever comes of it
    if (!button.disabled) {
      say(`${name(button)} is chosen. Ctrl Enter sends it.`);
      return;
    }
    const why = read(document.getElementById(button.getAttribute("aria-describedby")));
    say(`${why} Nothing is chosen; what you type is your reason.`);
  };

  // data-steps="SELECTOR": from one such place of the page to the next, and round again.
  let step = 0;
  const walk = (selector) => {
    const places = Array.from(document.querySelectorAll(selector));
    if (places.length) location.hash = places[step++ % places.length].id;
  };

  const follow = (link) => {
    leaving = true;
    link.click();
  };
  const use = (element) => {
    if (element.dataset.prepares) prepare(element);
    else if (element.dataset.steps) walk(element.dataset.steps);
    else if (element.matches(fields)) element.focus();
    else if (element.matches("a[href]")) follow(element);
    else if (element.matches("input")) {
      element.focus();
      element.click();
    } else element.click();
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
      if (link) follow(link);
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
      else ignore("This page has no search.");
      return true;
    }
    return (key === "j" || key === "k") && move(key === "j" ? 1 : -1);
  };
  const explain = (key) => {
    const closed = findListed("data-off", key);
    const idle = findListed("data-idle", key);
    if (closed) {
      choose(null);
      ignore(read(closed));
    } else if (idle) say(idle.dataset.why);
    // A page without keys of its own has nothing that a text could press.
    else if (key !== " " && document.querySelector("[data-key], [data-off]")) ignore(`“${key}” is no key here.`);
    else return false;
    return true;
  };

  const send = (event) => {
    const chosen = document.querySelector("[data-chosen]");
    const control = chosen && isShown(chosen) ? chosen : find("data-key", "Control+Enter");
    const closed = document.querySelector("[data-off]");
    const choices = Array.from(document.querySelectorAll("[data-prepares]:enabled"));
    if (!control && (event.target.matches("a[href]") || (!closed && !choices.length))) return;
    event.preventDefault();
    if (leaving) return;
    if (control && !ignoring) control.click();
    else if (ignoring) say("Nothing was sent. Press Esc to use keys again.");
    else if (closed) say(`Nothing was sent. ${read(closed)}`);
    else {
      const names = choices.map((item) => (off ? name(item) : `${name(item)} (${item.dataset.key.toUpperCase()})`));
      say(`Nothing was sent, because nothing is chosen: ${off ? "press" : "press Esc, then the key of"} ${names.join(", ")}.`);
    }
  };

  // The character that a key types; "" for a combination, an arrow and the like. AltGr types one, and so does Option on a
  // Mac, where it is beyond ASCII: Alt and a letter opens a menu elsewhere.
  const readKey = (event) => {
    const types = event.getModifierState("AltGraph") || (event.altKey && !event.ctrlKey && event.key > "~");
    if (event.metaKey || ((event.ctrlKey || event.altKey) && !types)) return "";
    if (event.key === "Dead" || event.key === "Process") return "…"; // an accent, or the work of an input method
    return Array.from(event.key).length === 1 ? event.key : "";
  };
  // Whether a character can only be the beginning of a text: one with AltGr, or a capital letter that Caps Lock did not
  // make. With Caps Lock alone, a letter is the key that it is without.
  const isText = (event, key) =>
    event.altKey ||
    event.getModifierState("AltGraph") ||
    (key !== key.toLowerCase() && (event.shiftKey || !event.getModifierState("CapsLock"))) ||
    (event.shiftKey && key !== key.toUpperCase());

  document.addEventListener("keydown", (event) => {
    const inField = event.target instanceof Element && event.target.matches(fields);
    if (event.repeat) {
      // Or it would write its letter into the field that it leads to.
      if (event.code === held) event.preventDefault();
      return;
    }
    if (inField && (event.isComposing || event.keyCode === 229)) return;
    if (event.key === "Escape") {
      if (inField) event.target.blur();
      if (ignoring) {
        message.blur();
        if (before?.isConnected) before.focus();
      }
      leaving = false;
      heed();
      return;
    }
    // A single line that belongs to answers: the keys of the answers work again, and nothing is sent.
    if (event.key === "Enter" && inField && event.target.matches("input[data-key]")) {
      event.preventDefault();
      event.target.blur();
      return;
    }
    if (event.key === "Enter" && event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey) {
      send(event);
      return;
    }
    const key = readKey(event);
    if (!key || inField || off) return;
    const typed = isText(event, key);
    if (leaving) say("The next page is loading, so this key did nothing. Esc, if it does not come.");
    if (leaving || ignoring || (!typed && press(key.toLowerCase())) || explain(typed ? key : key.toLowerCase())) {
      held = event.code;
      event.preventDefault();
    }
  });
  document.addEventListener("keyup", () => {
    held = "";
  });
  document.addEventListener("pointerdown", heed);
  document.addEventListener("focusin", (event) => {
    if (ignoring && event.target !== message) heed();
  });
  document.addEventListener("submit", (event) => {
    leaving = !event.defaultPrevented;
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return; // the browser kept the page as it was left
    leaving = false;
    choose(null);
    heed();
  });

  // A long queue scrolls by itself: the request that is shown stays in sight.
  const showCurrent = () => document.querySelector(".queue [aria-current]")?.scrollIntoView({ block: "nearest" });
  showCurrent();
  document.addEventListener("htmx:after:swap", showCurrent);
})();
