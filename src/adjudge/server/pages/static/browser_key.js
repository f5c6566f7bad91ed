"use strict";
// The key that a form needs beside its token where programs of this machine can have the session's cookie. A browser sends
// a cookie to every port of a host; what is stored here is for this scheme, host and port alone. The browser makes the key
// when somebody signs in. No page and no answer of the server holds it, and it is in no field of a page: it is added to
// what a form sends. This script does not wait for the page, for a form may be sent before all of it is there.
(() => {
  const name = "adjudge-browser-key";
  const makeKey = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  // A browser that keeps nothing has no key: the server then asks for the password with each form.
  const withStorage = (work) => {
    try {
      return work(localStorage);
    } catch {
      return null;
    }
  };

  window.addEventListener(
    "formdata",
    ({ target: form, formData: data }) => {
      if (form.getAttribute("method") !== "post") return; // it would be in the address
      const stored = withStorage((storage) => storage.getItem(name));
      if (data.has("browser_key")) {
        // The same one again: another tab may have signed in with it since this page was opened.
        const key = stored ?? makeKey();
        withStorage((storage) => storage.setItem(name, key));
        data.set("browser_key", key);
      } else if (data.has("csrf_token") && stored) data.set("csrf_token", `${data.get("csrf_token")}.${stored}`);
      if (form.getAttribute("action") === "/signout") withStorage((storage) => storage.removeItem(name));
    },
    { capture: true },
  );
})();
