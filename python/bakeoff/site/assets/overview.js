// The overview: filters, and a matrix for each scenario, drawn when it is opened. The data comes from data/runs.js.
"use strict";
var bakeoff = window.bakeoff || {};
window.bakeoff = bakeoff;
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const FEW_RUNS = 120; // that are all drawn at once
  const ROWS = 40;
  const MORE_ROWS = 200;
  const MOST_COLUMNS = 16;
  const LEAST_MS = 0.1;
  const MOST_MS = 1000;
  const OTHER = "#7f7f7f";

  let data = null;
  let visible = [];
  const chosen = new Map(); // facet's key: set of values
  const columns = new Map(); // scenario's name: facet's key, or "" for a list
  const opened = new Map(); // scenario's name: what the reader chose
  const drawnRows = new Map();
  let compared = [];
  let openFacet = null;

  // Elements from names, attributes and children; text is only ever text.
  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  function shape(tag, attributes) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  function byId(id) {
    return document.getElementById(id);
  }

  // ---- what the address says ----

  function readAddress() {
    const asked = new URLSearchParams(window.location.hash.slice(1));
    chosen.clear();
    for (const facet of data.facets) {
      const values = asked.getAll(facet.key).filter((value) => facet.values.includes(value));
      if (values.length) chosen.set(facet.key, new Set(values));
    }
    byId("text").value = asked.get("text") || "";
    columns.clear();
    for (const [key, value] of asked) {
      if (key.startsWith("columns.")) columns.set(key.slice(8), value);
    }
  }

  function writeAddress() {
    const said = new URLSearchParams();
    for (const [key, values] of chosen) for (const value of values) said.append(key, value);
    const text = byId("text").value.trim();
    if (text) said.set("text", text);
    for (const [name, key] of columns) said.set("columns." + name, key);
    const hash = said.toString();
    const address = hash ? "#" + hash : window.location.pathname + window.location.search;
    try {
      window.history.replaceState(null, "", address);
    } catch {
      window.location.hash = hash;
    }
  }

  // ---- which runs match ----

  function fits(run, skipped) {
    for (const [key, values] of chosen) {
      if (key === skipped) continue;
      const facet = data.byKey.get(key);
      const own = run.f[facet.at] || [];
      if (!own.some((code) => values.has(facet.values[code]))) return false;
    }
    const text = byId("text").value.trim().toLowerCase();
    return !text || (data.scenarios[run.s].name + "/" + run.name).toLowerCase().includes(text);
  }

  function update() {
    visible = data.runs.filter((run) => fits(run, null));
    const failed = visible.filter((run) => run.failed).length;
    const all = data.runs.length;
    byId("count").textContent =
      (visible.length === all ? all + (all === 1 ? " run" : " runs") : visible.length + " of " + all + " runs match") +
      (failed ? ", " + failed + " with failures" : "");
    byId("reset").disabled = visible.length === all && chosen.size === 0 && !byId("text").value;
    byId("nothing").hidden = visible.length > 0 || all === 0;
    drawFacets();
    drawScenarios();
    drawFailures();
  }

  // ---- filters ----

  function counts(facet) {
    const found = new Array(facet.values.length).fill(0);
    for (const run of data.runs) {
      if (!run.f[facet.at] || !fits(run, facet.key)) continue;
      for (const code of run.f[facet.at]) found[code] += 1;
    }
    return found;
  }

  function drawFacets() {
    for (const facet of data.facets) {
      const group = facet.group;
      if (!group) continue;
      const own = chosen.get(facet.key);
      facet.summary.textContent = facet.label + (own ? " (" + own.size + ")" : "");
      group.classList.toggle("active", Boolean(own));
      if (!group.open) continue;
      const found = counts(facet);
      if (!facet.boxes) fillFacet(facet);
      facet.boxes.forEach(function (box, code) {
        box.input.checked = Boolean(own && own.has(facet.values[code]));
        box.number.textContent = String(found[code]);
        box.label.classList.toggle("none", found[code] === 0);
      });
    }
  }

  function fillFacet(facet) {
    facet.boxes = facet.values.map(function (value) {
      const input = make("input", { type: "checkbox" });
      const number = make("span", { class: "faint" });
      const label = make("label", {}, input, make("span", {}, value), number);
      input.addEventListener("change", function () {
        const own = chosen.get(facet.key) || new Set();
        if (input.checked) own.add(value);
        else own.delete(value);
        if (own.size) chosen.set(facet.key, own);
        else chosen.delete(facet.key);
        writeAddress();
        update();
      });
      facet.list.append(make("li", {}, label));
      return { input: input, number: number, label: label };
    });
  }

  function buildFacets() {
    const main = byId("facets");
    const varied = byId("varied");
    main.replaceChildren();
    varied.replaceChildren();
    for (const facet of data.facets) {
      if (facet.values.length < 2) continue;
      facet.summary = make("summary", {});
      facet.list = make("ul", {});
      facet.group = make("details", { class: "facet" }, facet.summary, facet.list);
      facet.group.open = facet.key === openFacet;
      facet.group.addEventListener("toggle", function () {
        if (facet.group.open) {
          openFacet = facet.key;
          for (const other of data.facets) if (other !== facet && other.group) other.group.open = false;
        } else if (openFacet === facet.key) openFacet = null;
        drawFacets();
      });
      facet.group.addEventListener("keydown", function (event) {
        if (event.key !== "Escape") return;
        facet.group.open = false;
        facet.summary.focus();
      });
      (facet.key.startsWith("vary.") ? varied : main).append(facet.group);
    }
    byId("more").hidden = varied.children.length === 0;
    byId("more").open = byId("more").open || [...chosen.keys()].some((key) => key.startsWith("vary."));
  }

  // ---- a scenario's matrix ----

  function axesOf(scenario, runs) {
    const keys = scenario.axes.concat(["engine"]);
    // Where each engine has a campaign of its own, the engine says it all.
    const pairs = new Set(runs.map((run) => codeOf(run, "engine") + "," + campaignOf(run)));
    if (pairs.size > new Set(runs.map((run) => codeOf(run, "engine"))).size) keys.push("campaign");
    return keys.filter(function (key) {
      const facet = data.byKey.get(key);
      if (!facet) return false;
      const met = new Set(runs.map((run) => String(run.f[facet.at])));
      return met.size > 1 || (scenario.axes.includes(key) && scenario.axes.length === 1);
    });
  }

  function valuesOf(runs, key) {
    const facet = data.byKey.get(key);
    const met = new Set();
    for (const run of runs) for (const code of run.f[facet.at] || [-1]) met.add(code);
    return [...met].sort((a, b) => a - b);
  }

  function columnAxis(scenario, runs, axes) {
    const asked = columns.get(scenario.name);
    if (asked !== undefined && (asked === "" || axes.includes(asked))) return asked;
    const able = axes.filter((key) => valuesOf(runs, key).length <= MOST_COLUMNS);
    if (able.includes("vary.qdisc")) return "vary.qdisc";
    const sizes = able.map((key) => valuesOf(runs, key).length);
    const most = Math.max(...sizes.filter((size) => size <= 6), 0);
    return able.length ? able[most ? sizes.indexOf(most) : 0] : "";
  }

  function label(key, code) {
    return code === -1 ? "–" : data.byKey.get(key).values[code];
  }

  function plainKey(key) {
    return key.startsWith("vary.") ? key.slice(5) : data.byKey.get(key).label.toLowerCase();
  }

  function codeOf(run, key) {
    const own = run.f[data.byKey.get(key).at];
    return own ? own[0] : -1;
  }

  function campaignOf(run) {
    return data.byKey.has("campaign") ? codeOf(run, "campaign") : -1;
  }

  function matrix(scenario, runs) {
    const axes = axesOf(scenario, runs);
    const across = columnAxis(scenario, runs, axes);
    const down = axes.filter((key) => key !== across);
    const heads = across ? valuesOf(runs, across) : [null];
    const lines = new Map();
    for (const run of runs) {
      const at = down.map((key) => codeOf(run, key));
      const name = at.join(",");
      if (!lines.has(name)) lines.set(name, { at: at, cells: new Map() });
      const cells = lines.get(name).cells;
      const head = across ? codeOf(run, across) : null;
      if (!cells.has(head)) cells.set(head, []);
      cells.get(head).push(run);
    }
    const sorted = [...lines.values()].sort(function (one, other) {
      for (let i = 0; i < one.at.length; i++) if (one.at[i] !== other.at[i]) return one.at[i] - other.at[i];
      return 0;
    });
    const shown = drawnRows.get(scenario.name) || ROWS;
    const box = make("div", {});
    box.append(controls(scenario, axes, across, runs));
    const table = make("table", { class: "matrix" });
    table.append(
      make(
        "caption",
        { class: "hidden" },
        "Runs of " + scenario.name + (across ? "; columns: " + plainKey(across) : ""),
      ),
    );
    const head = make("tr", {});
    for (const key of down) head.append(make("th", { scope: "col" }, plainKey(key)));
    for (const code of heads) {
      head.append(make("th", { scope: "col", class: "value" }, across ? label(across, code) : "result"));
    }
    table.append(make("thead", {}, head));
    const body = make("tbody", {});
    for (const line of sorted.slice(0, shown)) {
      const row = make("tr", {});
      line.at.forEach((code, i) => row.append(make("th", { scope: "row" }, label(down[i], code))));
      for (const code of heads) {
        const cell = make("td", {});
        for (const run of line.cells.get(code) || []) cell.append(drawRun(run, scenario));
        row.append(cell);
      }
      body.append(row);
    }
    table.append(body);
    box.append(
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Matrix of " + scenario.name }, table),
    );
    if (sorted.length > shown) {
      const next = Math.min(MORE_ROWS, sorted.length - shown);
      const more = make("button", { type: "button" }, "Show " + next + " more of " + (sorted.length - shown) + " rows");
      more.addEventListener("click", function () {
        drawnRows.set(scenario.name, shown + MORE_ROWS);
        scenario.redraw();
        const rows = scenario.section.querySelectorAll("tbody tr");
        const first = rows[shown] && rows[shown].querySelector("a");
        if (first) first.focus();
      });
      box.append(make("p", {}, more));
    }
    return box;
  }

  function controls(scenario, axes, across, runs) {
    const line = make("p", { class: "controls" });
    const met = new Map();
    for (const run of runs) {
      for (const bar of run.bars || []) for (const part of bar[2]) met.set(data.words[part[1]], data.words[part[4]]);
    }
    for (const [name, colour] of met) {
      const swatch = shape("svg", { width: 12, height: 12, "aria-hidden": "true", class: "swatch" });
      swatch.append(shape("rect", { width: 12, height: 12, fill: colour || OTHER }));
      line.append(make("span", { class: "key" }, swatch, name));
    }
    if (runs.some((run) => delayOf(run) !== null)) {
      line.append(make("span", { class: "key faint" }, "delays: logarithmic, " + LEAST_MS + "\u00a0ms to " + MOST_MS + "\u00a0ms"));
    }
    if (axes.length > 1) {
      const select = make("select", {});
      for (const key of axes.concat([""])) {
        const option = make("option", { value: key }, key ? plainKey(key) : "none: a list");
        option.selected = key === across;
        select.append(option);
      }
      select.addEventListener("change", function () {
        columns.set(scenario.name, select.value);
        writeAddress();
        scenario.redraw();
        scenario.section.querySelector("select").focus();
      });
      line.append(make("label", { class: "columns" }, "Columns: ", select));
    }
    return line;
  }

  // ---- a run as a cell ----

  function percent(share) {
    if (share === null) return "–";
    const value = share * 100;
    return (value > 0 && value < 0.95 ? value.toFixed(1) : value.toFixed(0)) + "\u00a0%";
  }

  function milliseconds(value) {
    if (value === null || value === undefined) return "–";
    return value >= 99.5 ? value.toFixed(0) : value >= 9.95 ? value.toFixed(1) : value.toFixed(2);
  }

  function shareBar(bar) {
    const drawing = shape("svg", { class: "bar", width: "100%", height: "10", "aria-hidden": "true" });
    const [, use, parts] = bar;
    const alone = parts.length === 1;
    let from = 0;
    const met = new Set();
    for (const [, control, share, , colour] of parts) {
      const name = data.words[control];
      const width = Math.max(0, Math.min(1, (alone ? use : share) || 0)) * 100;
      const place = { x: from + "%", y: 0, width: width + "%", height: 10 };
      drawing.append(shape("rect", { ...place, fill: data.words[colour] || OTHER }));
      if (met.has(name)) drawing.append(shape("rect", { ...place, fill: "url(#hatch)" }));
      if (from > 0) {
        const edge = { x1: from + "%", x2: from + "%", y1: 0, y2: 10, class: "edge" };
        drawing.append(shape("line", edge));
      }
      met.add(name);
      from += width;
    }
    return drawing;
  }

  function along(value) {
    const place = Math.log(Math.max(value, LEAST_MS) / LEAST_MS) / Math.log(MOST_MS / LEAST_MS);
    return Math.min(1, place) * 100 + "%";
  }

  // What people feel: the worst of the calls; without a call the median and the 99th percentile of the queue.
  function delayOf(run) {
    if (!run.bars) return null;
    if (run.felt && run.felt.length) return [null, Math.max(...run.felt.map((one) => one[1]))];
    return run.delay[0] === null ? null : run.delay;
  }

  function delayBar(median, high) {
    const drawing = shape("svg", { class: "delay", width: "100%", height: "6", "aria-hidden": "true" });
    const end = median === null ? high : median;
    drawing.append(shape("rect", { x: 0, y: 2, width: along(end), height: 2, class: "median" }));
    if (median !== null) drawing.append(shape("circle", { cx: along(median), cy: 3, r: 3, class: "median" }));
    if (high !== null) drawing.append(shape("rect", { x: along(high), y: 0, width: 2, height: 6, class: "high" }));
    return drawing;
  }

  function words(bar) {
    const [queue, use, parts] = bar;
    if (parts.length === 1) return data.words[parts[0][0]] + ", link used " + percent(use);
    return parts.map((part) => data.words[part[0]] + " " + (data.words[part[3]].replace("%", "\u00a0%") || "–")).join(" · ");
  }

  function drawRun(run, scenario) {
    const link = make("a", { href: "runs/" + run.id + "/index.html", class: "run" });
    if (!run.bars) {
      link.append(make("span", { class: "failed" }, "✕ failed"));
    } else {
      const several = run.bars.length > 1;
      for (const bar of run.bars.slice(0, 2)) {
        link.append(shareBar(bar));
        link.append(make("span", { class: "line" }, (several ? data.words[bar[0]] + ": " : "") + words(bar)));
      }
      if (run.bars.length > 2) link.append(make("span", { class: "line" }, "and " + (run.bars.length - 2) + " queues more"));
      const late = delayOf(run);
      if (late !== null) link.append(delayBar(...late));
      if (run.felt && run.felt.length) {
        const felt = run.felt.map(([name, value]) => data.words[name] + " " + milliseconds(value) + "\u00a0ms");
        link.append(make("span", { class: "line" }, "99\u00a0% within: " + felt.join(" · ")));
      }
      const [median, high] = run.delay;
      if (median !== null) {
        const span = milliseconds(median) + (high === null ? "" : " / " + milliseconds(high)) + "\u00a0ms";
        link.append(make("span", { class: "line faint" }, "queue " + data.words[run.queue] + " " + span));
      } else if (run.ping !== null && run.ping !== undefined) {
        link.append(make("span", { class: "line" }, "ping " + milliseconds(run.ping) + " ms"));
      }
      if (run.failed) link.append(make("span", { class: "failed" }, "✕ " + run.failed.length + " of " + run.n + " failed"));
      if (run.notes) {
        const told = run.notes.map((note) => data.words[note]).join("; ");
        link.append(make("span", { class: "warn", title: told }, "⚠ " + run.notes.length + (run.notes.length > 1 ? " notes" : " note")));
      }
    }
    const name = scenario.name + "/" + run.name;
    const pick = make("input", { type: "checkbox", class: "pick", "aria-label": "Compare " + name, title: "Choose to compare" });
    pick.checked = compared.includes(run.id);
    pick.dataset.id = run.id;
    pick.addEventListener("change", () => pickRun(run, pick.checked));
    return make("div", { class: "cell", title: name }, pick, link);
  }

  // ---- two runs to compare ----

  function pickRun(run, wanted) {
    compared = compared.filter((id) => id !== run.id);
    if (wanted) compared = compared.concat([run.id]).slice(-2);
    for (const box of document.querySelectorAll("input.pick")) box.checked = compared.includes(box.dataset.id);
    drawTray();
  }

  function drawTray() {
    const tray = byId("tray");
    tray.hidden = compared.length === 0;
    const known = new Map(data.runs.map((run) => [run.id, run]));
    byId("picked").textContent = compared.map((id) => (known.get(id) || { name: id }).name).join("  and  ");
    const go = byId("compare");
    const ready = compared.length === 2;
    go.hidden = !ready;
    byId("one").hidden = ready;
    if (ready) go.href = "compare.html#" + new URLSearchParams([["a", compared[0]], ["b", compared[1]]]);
  }

  // ---- scenarios and failures ----

  function drawScenarios() {
    const by = new Map();
    for (const run of visible) {
      if (!by.has(run.s)) by.set(run.s, []);
      by.get(run.s).push(run);
    }
    // Those that come first are open, as far as their runs are few.
    let drawn = 0;
    data.scenarios.forEach(function (scenario, at) {
      const runs = by.get(at);
      scenario.section.hidden = !runs;
      if (!runs) return;
      const failed = runs.filter((run) => run.failed).length;
      scenario.count.textContent =
        runs.length + (runs.length === 1 ? " run" : " runs") + (failed ? ", " + failed + " with failures" : "");
      scenario.redraw = function () {
        scenario.body.replaceChildren(matrix(scenario, runs));
        scenario.drawn = true;
      };
      scenario.drawn = false;
      const open = opened.has(scenario.name) ? opened.get(scenario.name) : drawn === 0 || drawn + runs.length <= FEW_RUNS;
      drawn += runs.length;
      if (scenario.details.open !== open) scenario.details.open = open;
      if (open) scenario.redraw();
      else scenario.body.replaceChildren();
    });
    byId("folding").hidden = by.size < 2;
  }

  function buildScenarios() {
    const place = byId("scenarios");
    place.replaceChildren();
    for (const scenario of data.scenarios) {
      scenario.count = make("span", { class: "faint" });
      scenario.body = make("div", {});
      const summary = make("summary", {}, make("h2", {}, scenario.name), " ", scenario.count);
      scenario.details = make("details", {}, summary, scenario.body);
      scenario.section = make("section", { class: "scenario", "aria-label": scenario.name }, scenario.details);
      summary.addEventListener("click", () => opened.set(scenario.name, !scenario.details.open));
      scenario.details.addEventListener("toggle", function () {
        if (scenario.details.open && !scenario.drawn && scenario.redraw) scenario.redraw();
      });
      place.append(scenario.section);
    }
  }

  function drawFailures() {
    const found = [];
    for (const run of visible) for (const one of run.failed || []) found.push([run, one]);
    const section = byId("failures");
    section.hidden = found.length === 0;
    const body = byId("failed-rows");
    const most = 200;
    body.replaceChildren(
      ...found.slice(0, most).map(function ([run, [id, seed, reason]]) {
        const name = data.scenarios[run.s].name + "/" + run.name;
        return make(
          "tr",
          {},
          make("th", { scope: "row" }, make("a", { href: "runs/" + id + "/index.html" }, name)),
          make("td", {}, data.words[seed]),
          make("td", { class: "reason" }, data.words[reason]),
        );
      }),
    );
    byId("failed-more").textContent =
      found.length > most ? "and " + (found.length - most) + " more; a filter shows others" : "";
  }

  // ---- beginning ----

  bakeoff.overview = function (given) {
    data = given;
    data.byKey = new Map();
    data.facets.forEach(function (facet, at) {
      facet.at = at;
      data.byKey.set(facet.key, facet);
    });
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  };

  let listening = false;

  // What had the focus is drawn anew when runs have ended meanwhile: the reader keeps the place.
  function place() {
    const own = document.activeElement;
    const top = window.scrollY;
    if (!own || own === document.body) return () => window.scrollTo(0, top);
    let same = () => (own.id ? byId(own.id) : null);
    if (own.matches("a.run")) same = () => document.querySelector('a.run[href="' + CSS.escape(own.getAttribute("href")) + '"]');
    else if (own.matches("input.pick")) same = () => document.querySelector('input.pick[data-id="' + CSS.escape(own.dataset.id) + '"]');
    else if (own.closest(".facet")) {
      const label = own.closest(".facet").querySelector("summary").textContent;
      const value = own.matches("input") ? own.parentElement.children[1].textContent : null;
      same = function () {
        const facet = data.facets.find((one) => one.summary && (label === one.label || label.startsWith(one.label + " (")));
        if (!facet) return null;
        const boxes = facet.boxes || [];
        const box = boxes[facet.values.indexOf(value)];
        return box ? box.input : facet.summary;
      };
    }
    return function () {
      window.scrollTo(0, top);
      const found = own.isConnected ? null : same();
      if (found) found.focus({ preventScroll: true });
    };
  }

  // While a campaign runs, more is known now than when the page was written.
  function tellMade() {
    byId("summary").textContent = data.summary;
    byId("made").replaceChildren(
      ...data.made.map(([name, ...rest]) =>
        make("tr", {}, make("th", { scope: "row" }, name), ...rest.map((text) => make("td", {}, text))),
      ),
    );
  }

  function begin() {
    const back = place();
    readAddress();
    if ("live" in document.body.dataset) tellMade();
    buildFacets();
    buildScenarios();
    update();
    drawTray();
    back();
    if (listening) return;
    listening = true;
    byId("filters").hidden = false;
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("text").addEventListener("input", function () {
      writeAddress();
      update();
    });
    byId("reset").addEventListener("click", function () {
      chosen.clear();
      byId("text").value = "";
      writeAddress();
      update();
      byId("text").focus();
    });
    byId("open-all").addEventListener("click", () => fold(true));
    byId("close-all").addEventListener("click", () => fold(false));
    byId("clear").addEventListener("click", function () {
      compared = [];
      for (const box of document.querySelectorAll("input.pick")) box.checked = false;
      drawTray();
    });
    window.addEventListener("hashchange", function () {
      readAddress();
      update();
    });
  }

  function fold(open) {
    for (const scenario of data.scenarios) opened.set(scenario.name, open);
    drawScenarios();
  }
})();
