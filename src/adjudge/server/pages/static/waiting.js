"use strict";
// What waits, kept fresh on every page: the numbers in the navigation and in the title, and, where somebody asked for it,
// a notification of the browser that names the gate and the number, and nothing of what is to be decided.
(() => {
  const every = 15_000;
  const wanted = "adjudge-notify";
  const places = Array.from(document.querySelectorAll("[data-waits]"));
  if (!places.length) return;
  const button = document.getElementById("notify");
  const canNotify = "Notification" in window && window.isSecureContext;
  let known = null; // the numbers by gate when they were last looked at

  const read = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // a browser that keeps nothing
    }
  };
  const isOn = () => canNotify && Notification.permission === "granted" && read(wanted) === "on";

  const describe = () => {
    button.setAttribute("aria-pressed", String(isOn()));
    const refused = Notification.permission === "denied" ? "The browser refuses notifications" : "Notify me";
    button.textContent = isOn() ? "Stop notifying me" : refused;
    button.disabled = Notification.permission === "denied";
  };
  const turn = async () => {
    const on = !isOn() && (await Notification.requestPermission()) === "granted";
    try {
      localStorage.setItem(wanted, on ? "on" : "off");
    } catch {
      // The choice is then forgotten with this page.
    }
    describe();
  };
  if (button && canNotify) {
    button.closest("[hidden]").hidden = false;
    button.addEventListener("click", turn);
    describe();
  }

  const notify = (gates) => {
    const more = Object.keys(gates).filter((gate) => gates[gate] > (known[gate] ?? 0));
    if (!more.length || !isOn() || (!document.hidden && document.hasFocus())) return;
    const lines = more.map((gate) => `${gate}: ${gates[gate]}`);
    // One tag for all: two pages that are open show one notification.
    const shown = new Notification("adjudge: requests wait for you", { body: lines.join("\n"), tag: "adjudge-waiting" });
    shown.addEventListener("click", () => window.focus());
  };

  const show = ({ pages, gates }) => {
    for (const place of places) {
      const number = pages[place.dataset.waits];
      place.hidden = number === undefined;
      if (number === undefined) continue;
      place.querySelector("b").textContent = number.toLocaleString("en-US");
      place.classList.toggle("held", place.dataset.waits === "/approvals" && number > 0);
    }
    const title = document.title.replace(/^\([0-9,]+\) /, "");
    const number = pages["/approvals"] ?? 0;
    document.title = number ? `(${number.toLocaleString("en-US")}) ${title}` : title;
    if (known !== null) notify(gates);
    known = gates;
  };

  let timer = 0;
  const look = async () => {
    clearTimeout(timer);
    try {
      const answer = await fetch("/waiting", { headers: { accept: "application/json" }, redirect: "error" });
      if (answer.status === 401 || answer.status === 403) return void (timer = -1); // signed out: nothing to ask for
      if (answer.ok) show(await answer.json());
    } catch {
      // The server is away for a moment: the numbers stay as they are.
    } finally {
      if (timer !== -1) timer = setTimeout(look, every);
    }
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && timer !== -1) look();
  });
  look();
})();
