"use strict";
// Times in the reader's zone. The server writes them in UTC; a time[data-form] is written anew from its datetime, and its
// title keeps the UTC. [data-zone] names the zone in a sentence. data-times="utc" on the body leaves all as it is.
(() => {
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (number) => String(number).padStart(2, "0");
  const names = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });
  const zone = names.resolvedOptions().timeZone;
  if (!zone || zone === "UTC") return; // what the server wrote is right already
  document.getElementById("times")?.removeAttribute("hidden"); // the choice is one only here
  if (document.body.dataset.times !== "local") return;

  const nameZone = (at) => names.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? zone;
  const writeDay = (at) => `${at.getDate()} ${months[at.getMonth()]} ${at.getFullYear()}`;
  const writeClock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const forms = {
    moment: (at) => `${writeDay(at)}, ${writeClock(at)} ${nameZone(at)}`,
    zoned: (at) => `${writeClock(at)} ${nameZone(at)}`,
    clock: writeClock,
    day: writeDay,
    minute: (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`,
    short: (at) => `${at.getDate()} ${months[at.getMonth()]} ${two(at.getHours())}:${two(at.getMinutes())}`,
  };

  const localise = () => {
    for (const time of document.querySelectorAll("time[data-form]")) {
      const at = new Date(time.dateTime);
      const write = forms[time.dataset.form];
      if (!write || Number.isNaN(at.getTime())) continue;
      time.textContent = write(at);
      time.removeAttribute("data-form"); // done: what a swap brings later is written then
    }
    for (const place of document.querySelectorAll("[data-zone]")) {
      place.textContent = zone;
      place.removeAttribute("data-zone");
    }
  };
  localise();
  document.addEventListener("htmx:after:swap", localise);
})();
