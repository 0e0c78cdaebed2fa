// Dark and light: what the system asks for, until the reader chooses.
"use strict";
(function () {
  const KEY = "bakeoff-theme";
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  // A browser may refuse storage to pages that lie in a folder.
  function stored() {
    try {
      return window.localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function store(theme) {
    try {
      window.localStorage.setItem(KEY, theme);
    } catch {
      // The choice then holds for this page.
    }
  }

  function shown() {
    return root.dataset.theme || (system.matches ? "dark" : "light");
  }

  // The page that compares shows the charts of two runs, each in a frame of its own.
  if (window.location.search === "?charts") root.dataset.only = "charts";

  const chosen = stored();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", function () {
    const button = document.getElementById("theme");
    function label() {
      button.textContent = shown() === "dark" ? "Light" : "Dark";
      button.setAttribute("aria-label", "Change to " + (shown() === "dark" ? "light" : "dark") + " colours");
    }
    button.hidden = false;
    label();
    button.addEventListener("click", function () {
      root.dataset.theme = shown() === "dark" ? "light" : "dark";
      store(root.dataset.theme);
      label();
      // Who draws on a canvas has to draw anew.
      document.dispatchEvent(new CustomEvent("bakeoff:theme", { detail: root.dataset.theme }));
    });
    system.addEventListener("change", function () {
      label();
      document.dispatchEvent(new CustomEvent("bakeoff:theme", { detail: shown() }));
    });
  });
})();
