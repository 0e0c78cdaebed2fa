// The page of a run: the button that copies its command, and tables that a keyboard can scroll.
"use strict";
(function () {
  const button = document.getElementById("copy");
  const command = document.getElementById("command");
  const copied = document.getElementById("copied");

  function select() {
    const range = document.createRange();
    range.selectNodeContents(command);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      copied.textContent = "Copied.";
    } catch {
      // A page in a folder may not write there: what is selected can be copied by hand.
      select();
      copied.textContent = "Selected: copy it with Ctrl and C.";
    }
  });

  // What does not fit scrolls by itself, and can be reached by a keyboard only then.
  function reach() {
    for (const wide of document.querySelectorAll(".wide, .log")) {
      if (wide.scrollWidth > wide.clientWidth + 1 || wide.scrollHeight > wide.clientHeight + 1) {
        wide.tabIndex = 0;
        wide.setAttribute("role", "region");
        wide.setAttribute("aria-label", wide.dataset.label || "Log");
      } else {
        wide.removeAttribute("tabindex");
        wide.removeAttribute("role");
        wide.removeAttribute("aria-label");
      }
    }
  }

  reach();
  window.addEventListener("resize", reach);
  // A table inside of details has no size before they are opened.
  document.addEventListener("toggle", reach, true);
})();
