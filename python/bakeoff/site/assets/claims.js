// The filter of the page of claims; its state stands in the address.
"use strict";
document.addEventListener("DOMContentLoaded", function () {
  const form = document.getElementById("claim-filters");
  const count = document.getElementById("claim-count");
  const NAMES = ["document", "verdict", "text"];
  const claims = [...document.querySelectorAll("article.claim")].map(function (article) {
    return {
      article: article,
      document: article.dataset.document,
      verdicts: article.dataset.verdicts.split("|"),
      text: article.textContent.toLowerCase(),
    };
  });

  function show() {
    const text = form.elements.text.value.trim().toLowerCase();
    const verdict = form.elements.verdict.value;
    let shown = 0;
    for (const claim of claims) {
      const fits =
        (!form.elements.document.value || claim.document === form.elements.document.value) &&
        (!verdict || (verdict === "unlike" ? claim.verdicts.length > 1 : claim.verdicts.includes(verdict))) &&
        (!text || claim.text.includes(text));
      claim.article.hidden = !fits;
      if (fits) shown += 1;
    }
    const every = claims.length + (claims.length === 1 ? " claim" : " claims");
    count.textContent = shown === claims.length ? every : shown + " of " + every;
  }

  function read() {
    const asked = new URLSearchParams(window.location.hash.slice(1));
    for (const name of NAMES) form.elements[name].value = asked.get(name) || "";
    for (const name of NAMES.slice(0, 2)) if (form.elements[name].selectedIndex < 0) form.elements[name].value = "";
    show();
  }

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", function () {
    const said = new URLSearchParams(NAMES.map((name) => [name, form.elements[name].value]).filter(([, value]) => value));
    const hash = said.toString();
    try {
      window.history.replaceState(null, "", hash ? "#" + hash : window.location.pathname + window.location.search);
    } catch {
      // The filter works all the same.
    }
    show();
  });
  window.addEventListener("hashchange", function () {
    // An address may also name a claim.
    if (!document.getElementById(decodeURIComponent(window.location.hash.slice(1)))) read();
  });
  read();
});
