"use strict";
// The key that a form needs beside its token where the server is on plain http. A browser sends a cookie to every port of
// a host, so another program there can have the session; what is stored here is for this scheme, host and port alone. The
// browser makes the key when somebody signs in. No page and no answer of the server holds it.
(() => {
  const name = "adjudge-browser-key";
  const makeKey = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  const store = (key) => {
    try {
      localStorage.setItem(name, key);
    } catch {
      // A browser that keeps nothing: the server then asks for the password with each form.
    }
  };
  const read = () => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  };

  // Before all others that listen, so that a script which sends the form itself sends the key too.
  window.addEventListener(
    "submit",
    (event) => {
      const { csrf_token: token, browser_key: made } = event.target.elements;
      const key = made ? makeKey() : read();
      if (made) {
        made.value = key;
        store(key);
      } else if (token && key) token.value = `${token.value.split(".")[0]}.${key}`;
    },
    { capture: true },
  );
})();
