// Two runs side by side: #a=RUN&b=RUN. The measures of each come from measures.js in its folder.
"use strict";
var bakeoff = window.bakeoff || {};
window.bakeoff = bakeoff;
(function () {
  const loaded = new Map();
  const waiting = new Map();
  let ids = new Set();

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  function byId(id) {
    return document.getElementById(id);
  }

  bakeoff.overview = function (data) {
    ids = new Set();
    for (const run of data.runs) {
      ids.add(run.id);
      for (const one of run.failed || []) ids.add(one[0]);
    }
    byId("ids").replaceChildren(...[...ids].map((id) => make("option", { value: id })));
    show();
  };

  bakeoff.measures = function (run) {
    loaded.set(run.id, run);
    const told = waiting.get(run.id);
    waiting.delete(run.id);
    if (told) told(run);
  };

  // A page in a folder can load scripts, and nothing else.
  function load(id) {
    if (loaded.has(id)) return Promise.resolve(loaded.get(id));
    return new Promise(function (resolve, reject) {
      waiting.set(id, resolve);
      const script = make("script", { src: "runs/" + id + "/measures.js" });
      script.addEventListener("error", () => reject(new Error("The measures of " + id + " cannot be read.")));
      document.head.append(script);
    });
  }

  function number(row) {
    if (!row) return "–";
    const [, unit, , text] = row;
    return text.replace("±", " ± ") + (unit ? "\u00a0" + unit : "");
  }

  function ratio(one, other) {
    if (!one || !other || one[2] === 0) return "";
    const times = other[2] / one[2];
    return Number.isFinite(times) && times > 0 ? "× " + (times >= 100 ? times.toFixed(0) : times.toPrecision(3)) : "";
  }

  // Parts of one name belong together, and then what is left, in its order.
  function pairs(a, b) {
    const found = [];
    for (const kind of ["run", "flow", "queue", "probe"]) {
      const ours = a.groups.filter((group) => group.kind === kind);
      const theirs = b.groups.filter((group) => group.kind === kind);
      const used = new Set();
      const partners = ours.map(function (group) {
        const same = theirs.find((other) => other.name === group.name && !used.has(other));
        if (same) used.add(same);
        return same;
      });
      const left = theirs.filter((other) => !used.has(other));
      ours.forEach((group, i) => found.push([group, partners[i] || left.shift() || null]));
      for (const other of left) found.push([null, other]);
    }
    return found;
  }

  function heading(one, other) {
    const kind = (one || other).kind;
    if (kind === "run") return "The whole run";
    const names = [one ? one.name : "–", other ? other.name : "–"];
    return kind + " " + (names[0] === names[1] ? names[0] : names.join(" | "));
  }

  function table(a, b) {
    const made = make("table", { class: "side" });
    made.append(make("caption", { class: "hidden" }, "Measures of run A beside those of run B"));
    const head = make("tr", {});
    for (const text of ["measure", "A", "B", "B / A"]) {
      head.append(make("th", { scope: "col", class: text === "measure" ? "" : "number" }, text));
    }
    made.append(make("thead", {}, head));
    for (const [one, other] of pairs(a, b)) {
      const body = make("tbody", {});
      body.append(make("tr", {}, make("th", { scope: "rowgroup", colspan: "4", class: "group" }, heading(one, other))));
      const ours = new Map((one ? one.rows : []).map((row) => [row[0], row]));
      const theirs = new Map((other ? other.rows : []).map((row) => [row[0], row]));
      for (const name of new Set([...ours.keys(), ...theirs.keys()])) {
        const sides = [ours.get(name), theirs.get(name)];
        body.append(
          make(
            "tr",
            {},
            make("th", { scope: "row" }, name),
            make("td", { class: "number" }, number(sides[0])),
            make("td", { class: "number" }, number(sides[1])),
            make("td", { class: "number" }, ratio(...sides)),
          ),
        );
      }
      made.append(body);
    }
    return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Measures side by side" }, made);
  }

  // The charts are those of the runs' own pages; they are loaded when somebody wants to see them.
  function charts(a, b) {
    const place = make("div", { class: "frames" });
    const box = make("details", {}, make("summary", {}, "Charts side by side"), place);
    box.addEventListener("toggle", function () {
      if (!box.open || place.children.length) return;
      for (const [letter, run] of [["A", a], ["B", b]]) {
        const source = "runs/" + run.id + "/index.html?charts";
        place.append(make("iframe", { src: source, title: "Charts of run " + letter + ": " + run.run }));
      }
    });
    return box;
  }

  function about(letter, run) {
    const box = make("section", { class: "about", "aria-label": "Run " + letter });
    box.append(make("h2", {}, letter + ": ", make("a", { href: "runs/" + run.id + "/index.html" }, run.run)));
    if (run.title) box.append(make("p", {}, run.title));
    if (run.error) box.append(make("p", { class: "failed" }, "Failed: " + run.error));
    const point = Object.entries(run.point).map(([axis, label]) => axis + " " + label);
    const lines = (point.length ? [point.join(", ")] : []).concat(run.effect);
    if (!run.effect.length) lines.push("engine " + run.engine);
    if (run.n > 1) lines.push(run.n + " repetitions: means ± 95 % intervals");
    box.append(make("ul", {}, ...lines.map((line) => make("li", {}, line))));
    box.append(make("p", {}, make("a", { href: "runs/" + run.id + "/index.html" }, "Charts and everything else of run " + letter)));
    return box;
  }

  function asked() {
    const said = new URLSearchParams(window.location.hash.slice(1));
    return [said.get("a") || "", said.get("b") || ""];
  }

  async function show() {
    const [a, b] = asked();
    byId("a").value = a;
    byId("b").value = b;
    const result = byId("result");
    result.replaceChildren();
    if (!a || !b) return;
    const unknown = [a, b].filter((id) => !ids.has(id));
    if (unknown.length) {
      byId("told").textContent = "There is no run " + unknown.join(", and none ") + " here.";
      return;
    }
    try {
      const [one, other] = await Promise.all([load(a), load(b)]);
      if (asked().join("\n") !== [a, b].join("\n")) return;
      byId("told").textContent = "";
      result.append(make("div", { class: "sides" }, about("A", one), about("B", other)));
      if (one.epoch !== other.epoch) {
        const epochs = [one, other].map((run) => (run.epoch === null ? "unknown" : String(run.epoch))).join(" and ");
        result.append(
          make("p", { class: "warn" }, "⚠ The runs come from different model epochs (" + epochs + "): differences may come from the models."),
        );
      }
      result.append(charts(one, other), make("h2", {}, "Measures"), table(one, other));
      result.append(make("p", { class: "faint" }, "Taken in the steady state of each run, as docs/tables.md of bakeoff defines them; B / A is the quotient of the two numbers."));
    } catch (error) {
      byId("told").textContent = error.message;
    }
  }

  document.addEventListener("DOMContentLoaded", function () {
    function go(a, b) {
      window.location.hash = new URLSearchParams([["a", a], ["b", b]]).toString();
    }
    byId("choice").addEventListener("submit", function (event) {
      event.preventDefault();
      go(byId("a").value.trim(), byId("b").value.trim());
    });
    byId("swap").addEventListener("click", () => go(byId("b").value.trim(), byId("a").value.trim()));
    window.addEventListener("hashchange", show);
  });
})();
