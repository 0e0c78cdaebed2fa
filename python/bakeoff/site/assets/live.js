// What `bakeoff serve` adds to the overview: how far the campaign is, and new runs as they end.
"use strict";
(function () {
  const EVERY_MS = 2000;
  let version = null;
  let wasRunning = null;
  let lost = false;

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const place = document.getElementById("progress");
  const bar = make("progress", { "aria-label": "Runs that have ended" });
  const words = make("p", {});
  const running = make("ul", { class: "faint", "aria-label": "Runs under way" });
  const trouble = make("ul", { class: "warn", "aria-label": "Left out" });
  // Read aloud when something changes that a listener waits for, and not at every step.
  const said = make("p", { role: "status", class: "hidden" });
  place.append(bar, words, running, trouble, said);
  place.classList.add("progress");

  function items(list, texts) {
    list.replaceChildren(...texts.map((text) => make("li", {}, text)));
    list.hidden = texts.length === 0;
  }

  function show(news) {
    const failed = news.failed ? ", " + news.failed + " of them failed" : "";
    const of = news.wanted ? " of " + news.wanted : "";
    const ended = news.done + of + " runs have ended" + failed + ".";
    words.textContent = (news.running ? "The campaign is under way: " : "No campaign is under way: ") + ended;
    bar.hidden = !news.running;
    if (news.wanted) {
      bar.max = news.wanted;
      bar.value = Math.min(news.done, news.wanted);
    } else {
      bar.removeAttribute("value");
    }
    const more = news.moreUnderWay ? ["and " + news.moreUnderWay + " more"] : [];
    items(running, news.underWay.map((name) => "under way: " + name).concat(more));
    const half = news.halfWritten ? [news.halfWritten + " half-written, which bakeoff run --resume makes anew"] : [];
    items(trouble, news.unreadable.concat(half));
    if (wasRunning && !news.running) said.textContent = "The campaign has ended: " + ended;
    wasRunning = news.running;
    for (const [page, name] of [["sides.html", "Side by side"], ["claims.html", "Claims"]]) {
      if (!news.pages.includes(page) || document.querySelector('nav a[href="' + page + '"]')) continue;
      document.querySelector("nav ul").append(make("li", {}, make("a", { href: page }, name)));
    }
  }

  function reload() {
    const script = make("script", { src: "data/runs.js?" + version });
    script.addEventListener("load", () => script.remove());
    document.head.append(script);
  }

  async function ask() {
    try {
      const answer = await fetch("live.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const news = await answer.json();
      lost = false;
      show(news);
      if (version !== null && news.version !== version) {
        version = news.version;
        reload();
      }
      version = news.version;
    } catch {
      if (!lost) words.textContent = "bakeoff serve does not answer any more. What is shown is what was there last.";
      lost = true;
      bar.hidden = true;
    }
    window.setTimeout(ask, document.hidden ? 5 * EVERY_MS : EVERY_MS);
  }

  ask();
})();
