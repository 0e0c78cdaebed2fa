// The charts on the page of a run. The page's own file series.js calls bakeoffCharts with the samples; uPlot draws.
// All charts have one range of time and one cursor, and a line that is hidden in one is hidden in all.
"use strict";
(function () {
  const HEIGHT = 250;
  const ROOM = 1.06;
  // With fewer samples than this for each pixel a single one can be seen: samples are then drawn strong, without means.
  const DENSE = 0.34;
  // Of the time that is shown.
  const STEP = 1 / 200;
  const FAR = 1 / 10;
  const charts = [];
  const shown = { from: 0, to: 1 };
  const whole = { from: 0, to: 1 };
  const hidden = new Set();
  let cursor = null;
  let palette = null;
  let following = false;

  // ---- the samples ----

  async function arraysOf(data) {
    const text = atob(data.bytes);
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return data.arrays.map(([start, count, size]) => {
      const plain = new Uint8Array(count * size);
      for (let k = 0; k < size; k++) {
        for (let i = 0, at = start + k * count; i < count; i++, at++) plain[i * size + k] = bytes[at];
      }
      return size === 8 ? times(new Float64Array(plain.buffer)) : new Float32Array(plain.buffer);
    });
  }

  // From steps in microseconds to seconds.
  function times(steps) {
    let sum = 0;
    return steps.map((step) => (sum += step) / 1e6);
  }

  // What uPlot draws of a line: the parts from the back to the front.
  function partsOf(line, arrays) {
    const part = (series, role) => ({ line, role, times: arrays[series[0]], values: arrays[series[1]] });
    const parts = line.members.map((member) => part(member, "member"));
    parts.push(part(line.samples, line.style));
    if (line.means) parts.push(part(line.means, "means"));
    return parts;
  }

  // One axis for lines of several clocks: all times that any of them has, and null where a line has no sample.
  function aligned(parts) {
    const clocks = [...new Set(parts.map((part) => part.times))];
    let all = clocks[0];
    if (clocks.length > 1) {
      const both = new Float64Array(clocks.reduce((sum, clock) => sum + clock.length, 0));
      let at = 0;
      for (const clock of clocks) {
        both.set(clock, at);
        at += clock.length;
      }
      both.sort();
      all = both.filter((time, i) => i === 0 || time !== both[i - 1]);
    }
    const places = new Map(clocks.map((clock) => [clock, placesIn(all, clock)]));
    const columns = parts.map((part) => {
      part.places = places.get(part.times);
      const column = new Array(all.length).fill(null);
      part.places.forEach((place, i) => (column[place] = part.values[i]));
      return column;
    });
    return [Array.from(all), ...columns];
  }

  function placesIn(all, clock) {
    const places = new Uint32Array(clock.length);
    for (let i = 0, at = 0; i < clock.length; i++) {
      while (all[at] < clock[i]) at++;
      places[i] = at;
    }
    return places;
  }

  // The number of the last time that is not later; -1 if all are.
  function lastUntil(sorted, time) {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // The number of the sample that the cursor stands on: the nearest, of steps the one that holds.
  function sampleAt(part, time) {
    const before = lastUntil(part.times, time);
    if (part.role === "steps") return before;
    const after = before + 1;
    if (before < 0) return part.times.length ? 0 : -1;
    if (after >= part.times.length) return before;
    return time - part.times[before] <= part.times[after] - time ? before : after;
  }

  // ---- drawing ----

  function paint() {
    const plot = document.querySelector(".chart .plot");
    const style = getComputedStyle(plot);
    const dark = (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    palette = {
      tone: dark ? 1 : 0,
      ink: style.color,
      grid: style.borderTopColor,
      window: dark ? "rgba(255, 255, 255, 0.05)" : "rgba(0, 0, 0, 0.045)",
      change: dark ? "#9aa3ad" : "#6b7380",
    };
  }

  function seriesOf(part, number) {
    const { line, role } = part;
    const looks = {
      samples: { width: 0.8 },
      means: { width: 2 },
      line: { width: 1.8 },
      steps: { width: 2, paths: uPlot.paths.stepped({ align: 1 }) },
      thin: { width: 1, dash: [2, 2], paths: uPlot.paths.stepped({ align: 1 }) },
      member: { width: 0.8, alpha: 0.4 },
      points: { width: 0, paths: () => null, points: { show: true, size: 4, width: 0 } },
    };
    const tone = () => line.colours[palette.tone];
    const made = Object.assign({ dash: line.dash, spanGaps: true, points: { show: false } }, looks[role]);
    made.label = String(number);
    made.stroke = tone;
    made.points = Object.assign({ stroke: tone, fill: tone }, made.points);
    if (role === "points") made.fill = tone;
    made.show = !hidden.has(line.of);
    return made;
  }

  // Where the vertical axis ends: it begins at 0, but for delays that never come near it.
  function limits(chart, least, greatest) {
    if (least === null || greatest === null || !Number.isFinite(least) || !Number.isFinite(greatest)) return [0, 1];
    if (isWhole() && chart.top !== null && greatest > chart.top) greatest = chart.top;
    const room = (ROOM - 1) * (greatest - least) || 0.05 * Math.abs(greatest) || 1;
    if (least < 0) return [least - room, greatest + room];
    if (chart.unit === "ms" && !isWhole() && least > 0.5 * greatest) return [Math.max(0, least - room), greatest + room];
    return [0, greatest * ROOM || 1];
  }

  function behind(u) {
    const { left, top, width, height } = u.bbox;
    const at = (time) => Math.min(Math.max(u.valToPos(time, "x", true), left), left + width);
    const context = u.ctx;
    context.save();
    const [from, to] = [at(whole.window[0]), at(whole.window[1])];
    context.fillStyle = palette.window;
    context.fillRect(from, top, to - from, height);
    context.strokeStyle = palette.change;
    context.lineWidth = devicePixelRatio;
    context.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    for (const time of whole.changes) {
      if (time < u.scales.x.min || time > u.scales.x.max) continue;
      context.beginPath();
      context.moveTo(at(time), top);
      context.lineTo(at(time), top + height);
      context.stroke();
    }
    context.restore();
  }

  function draw(chart, arrays) {
    const figure = document.getElementById("chart-" + chart.id);
    const place = figure.querySelector(".plot");
    const parts = chart.lines.flatMap((line) => partsOf(line, arrays));
    const order = ["member", "samples", "thin", "steps", "line", "points", "means"];
    parts.sort((one, other) => order.indexOf(one.role) - order.indexOf(other.role));
    const made = { chart, figure, place, parts, values: new Map() };
    const axis = { stroke: () => palette.ink, grid: { stroke: () => palette.grid, width: 1 }, ticks: { stroke: () => palette.grid, width: 1 } };
    const options = {
      width: Math.max(place.clientWidth, 100),
      height: HEIGHT,
      legend: { show: false },
      scales: { x: { time: false, auto: false, range: (u, from, to) => [from, to] }, y: { range: (u, least, greatest) => limits(chart, least, greatest) } },
      axes: [
        { ...axis, label: "time [s]", labelSize: 22, size: 34 },
        { ...axis, label: chart.unit === "1" ? "share [1]" : "[" + chart.unit + "]", labelSize: 22, size: 54 },
      ],
      series: [{}, ...parts.map(seriesOf)],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: { dblclick: () => () => zoom(whole.from, whole.to) },
        points: { size: (u, i) => (isRead(parts[i - 1]) ? 8 : 0), fill: (u, i) => parts[i - 1].line.colours[palette.tone] },
        dataIdx: (u, i, nearest, time) => placeOf(parts[i - 1], time, nearest),
      },
      hooks: {
        drawClear: [behind],
        setSelect: [selected],
        setCursor: [(u) => followed(u)],
        setScale: [(u, key) => key === "x" && Object.assign(figure.dataset, { from: u.scales.x.min, to: u.scales.x.max })],
      },
    };
    made.u = new uPlot(options, aligned(parts), place);
    made.u.setScale("x", { min: shown.from, max: shown.to });
    weigh(made);
    legend(made);
    figure.dataset.drawn = "true";
    charts.push(made);
    keyboard(made);
    new ResizeObserver(() => {
      const width = Math.max(place.clientWidth, 100);
      if (Math.abs(width - made.u.width) < 1) return;
      made.u.setSize({ width, height: HEIGHT });
      weigh(made);
    }).observe(place);
  }

  // Means and members stand beside what the legend gives the value of.
  function isRead(part) {
    return part !== undefined && part.role !== "means" && part.role !== "member";
  }

  function placeOf(part, time, nearest) {
    if (!isRead(part)) return nearest;
    const at = sampleAt(part, time);
    return at < 0 || part.times[at] < shown.from || part.times[at] > shown.to ? nearest : part.places[at];
  }

  // Many samples are a pale line behind their means; few are the line itself.
  function weigh(made) {
    const width = made.u.bbox.width / devicePixelRatio;
    made.parts.forEach((part, i) => {
      if (part.role !== "samples" && part.role !== "means") return;
      const samples = made.parts.find((one) => one.line === part.line && one.role === "samples");
      const count = lastUntil(samples.times, shown.to) - lastUntil(samples.times, shown.from);
      const dense = count > DENSE * width;
      const series = made.u.series[i + 1];
      series.alpha = part.role === "means" ? (dense ? 1 : 0) : dense ? 0.4 : 1;
      if (part.role === "samples") series.width = dense ? 0.8 : 1.6;
    });
    made.u.redraw(false, false);
  }

  // ---- the range of time ----

  function isWhole() {
    return shown.from === whole.from && shown.to === whole.to;
  }

  function zoom(from, to) {
    const least = Math.min(1e-3, whole.to / 1000);
    const length = Math.min(Math.max(to - from, least), whole.to - whole.from);
    from = Math.min(Math.max(from, whole.from), whole.to - length);
    shown.from = from;
    shown.to = from + length;
    for (const made of charts) {
      made.u.batch(() => made.u.setScale("x", { min: shown.from, max: shown.to }));
      weigh(made);
    }
    tellRange();
    if (cursor !== null) moveTo(cursor);
  }

  function selected(u) {
    if (u.select.width < 1) return;
    const from = u.posToVal(u.select.left, "x");
    const to = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoom(from, to);
  }

  function scaled(factor) {
    const length = (shown.to - shown.from) * factor;
    const middle = cursor !== null && cursor >= shown.from && cursor <= shown.to ? cursor : (shown.from + shown.to) / 2;
    const share = (middle - shown.from) / (shown.to - shown.from);
    zoom(middle - share * length, middle - share * length + length);
  }

  function moved(share) {
    const by = (shown.to - shown.from) * share;
    zoom(shown.from + by, shown.to + by);
  }

  function seconds(time) {
    const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(shown.to - shown.from))));
    return String(Number(time.toFixed(digits)));
  }

  function tellRange() {
    const text = seconds(shown.from) + " s to " + seconds(shown.to) + " s";
    document.getElementById("shown").textContent = isWhole() ? "the whole run, " + text : text;
    for (const button of document.querySelectorAll("#zoom button")) {
      const does = button.dataset.zoom;
      const off =
        ((does === "out" || does === "whole") && isWhole()) ||
        (does === "earlier" && shown.from <= whole.from) ||
        (does === "later" && shown.to >= whole.to);
      // A button that lost the focus by being disabled would throw a reader of the keyboard to the page's top.
      button.setAttribute("aria-disabled", String(off));
    }
  }

  // ---- the cursor ----

  function followed(u) {
    if (following) return;
    moveTo(u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x"), u);
  }

  // Put the cursor of every chart but `source` to a time; null takes it away.
  function moveTo(time, source) {
    cursor = time;
    following = true;
    for (const made of charts) {
      if (made.u !== source) {
        const left = time === null || time < shown.from || time > shown.to ? -10 : made.u.valToPos(time, "x");
        made.u.setCursor({ left, top: left < 0 ? -10 : 1 }, false, false);
      }
      read(made, time);
    }
    following = false;
    document.getElementById("at").textContent = time === null ? "" : "cursor at " + seconds(time) + " s";
  }

  function read(made, time) {
    for (const part of made.parts) {
      if (!isRead(part)) continue;
      const place = made.values.get(part.line);
      place.textContent = time === null || hidden.has(part.line.of) ? "" : valueAt(part, time);
    }
  }

  function valueAt(part, time) {
    const at = sampleAt(part, time);
    return at < 0 || time < part.times[0] - 1 || time > part.times[part.times.length - 1] + 1 ? "" : digits(part.values[at]);
  }

  function digits(value) {
    const size = Math.abs(value);
    return size >= 1000 ? value.toFixed(0) : size >= 100 ? value.toFixed(1) : size >= 1 || size === 0 ? value.toFixed(2) : value.toPrecision(3);
  }

  // ---- the legend ----

  function legend(made) {
    const list = made.figure.querySelector(".legend");
    for (const line of made.chart.lines) {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.of = line.of;
      button.setAttribute("aria-pressed", String(!hidden.has(line.of)));
      button.append(swatch(line), line.label);
      button.addEventListener("click", () => toggle(line.of));
      const value = document.createElement("span");
      value.className = "value";
      made.values.set(line, value);
      item.append(button, value);
      list.append(item);
    }
  }

  function swatch(line) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    for (const [name, value] of Object.entries({ width: 30, height: 10, "aria-hidden": "true", focusable: "false" })) svg.setAttribute(name, value);
    const points = line.style === "points";
    const mark = document.createElementNS(space, points ? "circle" : "line");
    const shape = points ? { cx: 15, cy: 5, r: 3 } : { x1: 0, y1: 5, x2: 30, y2: 5, "stroke-width": line.style === "thin" ? 1.5 : 3 };
    for (const [name, value] of Object.entries(shape)) mark.setAttribute(name, value);
    if (!points) mark.setAttribute("stroke-dasharray", (line.style === "thin" ? [2, 2] : line.dash).join(" "));
    mark.dataset.light = line.colours[0];
    mark.dataset.dark = line.colours[1];
    mark.dataset.paints = points ? "fill" : "stroke";
    svg.append(mark);
    tint(mark);
    return svg;
  }

  function tint(mark) {
    mark.setAttribute(mark.dataset.paints, palette.tone ? mark.dataset.dark : mark.dataset.light);
  }

  function toggle(of) {
    if (!hidden.delete(of)) hidden.add(of);
    for (const made of charts) {
      made.parts.forEach((part, i) => {
        if (part.line.of === of) made.u.setSeries(i + 1, { show: !hidden.has(of) });
      });
      read(made, cursor);
    }
    for (const button of document.querySelectorAll(".legend button")) {
      if (button.dataset.of === of) button.setAttribute("aria-pressed", String(!hidden.has(of)));
    }
  }

  // ---- keys and buttons ----

  function keyboard(made) {
    made.place.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const length = shown.to - shown.from;
      const from = cursor === null ? (shown.from + shown.to) / 2 : cursor;
      const step = (share) => () => {
        moveTo(Math.min(Math.max(from + share * length, shown.from), shown.to));
        tellCursor(made);
      };
      const does = {
        ArrowLeft: event.shiftKey ? () => moved(-FAR) : step(-STEP),
        ArrowRight: event.shiftKey ? () => moved(FAR) : step(STEP),
        "+": () => scaled(0.5),
        "=": () => scaled(0.5),
        "-": () => scaled(2),
        0: () => zoom(whole.from, whole.to),
        Escape: () => moveTo(null),
      }[event.key];
      if (does === undefined) return;
      event.preventDefault();
      does();
    });
  }

  // What stands under the cursor, for who hears the page.
  function tellCursor(made) {
    const parts = made.parts.filter((part) => isRead(part) && !hidden.has(part.line.of));
    const said = parts.map((part) => part.line.label + " " + (made.values.get(part.line).textContent || "no sample"));
    document.getElementById("spoken").textContent = seconds(cursor) + " s: " + said.join(", ") + " " + (made.chart.unit === "1" ? "" : made.chart.unit);
  }

  function buttons() {
    const does = {
      in: () => scaled(0.5),
      out: () => scaled(2),
      earlier: () => moved(-0.5),
      later: () => moved(0.5),
      whole: () => zoom(whole.from, whole.to),
    };
    for (const button of document.querySelectorAll("#zoom button")) {
      button.addEventListener("click", () => {
        if (button.getAttribute("aria-disabled") !== "true") does[button.dataset.zoom]();
      });
    }
    document.getElementById("zoom").hidden = false;
  }

  window.bakeoffCharts = async function (data) {
    const note = document.getElementById("charts-note");
    if (typeof DecompressionStream === "undefined" || typeof uPlot === "undefined") {
      note.textContent = "This browser cannot draw the charts: it lacks DecompressionStream. The tables below have the means.";
      return;
    }
    Object.assign(whole, { to: data.end, window: data.window, changes: data.changes });
    Object.assign(shown, { from: whole.from, to: whole.to });
    paint();
    const arrays = await arraysOf(data);
    buttons();
    tellRange();
    note.hidden = true;
    for (const chart of data.charts) {
      draw(chart, arrays);
      // The page answers between two charts.
      await new Promise((done) => setTimeout(done));
    }
    document.addEventListener("bakeoff:theme", () => {
      paint();
      for (const mark of document.querySelectorAll(".legend [data-paints]")) tint(mark);
      for (const made of charts) made.u.redraw(true, false);
    });
    performance.mark("charts-drawn");
  };
})();
