// What pages do beside htmx: draw charts, switch the theme, copy commands, tell what went wrong.
const themes = JSON.parse(document.getElementById("themes").textContent);
const charts = document.querySelector("script[data-charts]").dataset.charts;
const preferred = window.matchMedia("(prefers-color-scheme: dark)");
// By figure: its view and how to end it, the axis that it shares, the ticks of all of it, whether it may become higher.
const charted = new WeakMap();
let vega;

function theme() {
  return document.documentElement.dataset.theme ?? (preferred.matches ? "dark" : "light");
}

function fitted(config, room) {
  const axis = { tickCount: Math.min(Math.max(Math.floor(room / 50), 2), 10), labelSeparation: 8 };
  const legend = { ...config.legend, columns: Math.max(Math.floor(room / 110), 1) };
  return { ...config, axisXQuantitative: axis, legend };
}

async function draw(figure) {
  vega ??= import(charts);
  await vega;
  const plot = figure.querySelector(".plot");
  const given = JSON.parse(figure.querySelector("script").textContent);
  const axis = sharedAxis(given);
  const spec = axis ? zoomable(given, axis) : given;
  const options = {
    ast: true, // expressions are interpreted: nothing is compiled from text
    actions: false,
    defaultStyle: false,
    renderer: "svg",
    config: fitted(themes[theme()], plot.clientWidth),
    tooltip: () => {}, // shown by this file, from wherever the pointer is
  };
  const room = plot.clientWidth;
  end(figure);
  const { view, finalize } = await window.vegaEmbed(plot, { width: "container", autosize: { type: "fit-x", contains: "padding" }, ...spec }, options);
  plot.querySelector("svg")?.setAttribute("aria-hidden", "true"); // the plot's own label and the table tell it
  for (const name of ["cursor", "dot", "drag"]) {
    plot.append(Object.assign(document.createElement("div"), { className: name, hidden: true }));
  }
  charted.set(figure, { view, finalize, axis, ticks: spec.usermeta?.ticks, grows: typeof spec.height === "number" });
  figure.querySelector("[data-whole]").hidden = !(axis && zooms[axis]);
  figure.dataset.drawn = String(room);
}

function end(figure) {
  charted.get(figure)?.finalize();
  charted.delete(figure);
}

async function level(figure) {
  const plot = figure.querySelector(".plot");
  const missing = plot.clientHeight - (plot.querySelector("svg")?.clientHeight ?? 0);
  const { view, grows } = charted.get(figure) ?? {};
  if (grows && missing > 4) await view.height(view.height() + Math.min(missing, 200)).runAsync();
}

// Reading a chart: the nearest data under a pointer, one cursor for all charts that share an axis, and zoom.
const AXES = { iteration: "iteration", at: "time", start: "time" }; // fields of x by the axis that they share
const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const LEAST_DRAG = 6; // pixels
const NEAR = 12; // pixels from a point to be meant
const zooms = {}; // [low, high] by axis, for this page
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);

function layers(spec) {
  return spec.layer ?? [spec];
}

function sharedAxis(spec) {
  const x = layers(spec).map((one) => one.encoding.x).find((one) => one?.type === "quantitative" && one.field in AXES);
  return x && AXES[x.field];
}

function zoomable(spec, axis) {
  const [low, high] = zooms[axis] ?? [null, null];
  const params = [{ name: "low", value: low }, { name: "high", value: high }, { name: "ticks", value: null }];
  let whole;
  const layer = layers(spec).map((one) => {
    const { x } = one.encoding;
    if (x?.type !== "quantitative") return one;
    const scale = { ...x.scale, domainMin: { expr: "low" }, domainMax: { expr: "high" } };
    const values = x.axis?.values;
    if (values) {
      whole = values;
      params[2].value = low === null ? values : ticks(low, high);
    }
    const shown = values ? { ...x.axis, values: { expr: "ticks" } } : x.axis;
    const mark = { ...one.mark, clip: one.mark.clip || { expr: "low !== null" } };
    return { ...one, mark, encoding: { ...one.encoding, x: { ...x, scale, axis: shown } } };
  });
  return { ...spec, layer, params, usermeta: { ticks: whole } };
}

function ticks(low, high) {
  const step = STEPS.find((one) => (high - low) / one <= 8) ?? 86400 * Math.ceil((high - low) / 86400 / 8);
  const fine = high - low < 4 ? (high - low) / 4 : step;
  const found = [];
  for (let at = Math.ceil(low / fine) * fine; at <= high; at += fine) found.push(at);
  return found;
}

async function zoom(axis, range) {
  if (range) zooms[axis] = range;
  else delete zooms[axis];
  for (const [figure, chart] of chartsOf(axis)) {
    const { view, ticks: whole } = chart;
    view.signal("low", range?.[0] ?? null).signal("high", range?.[1] ?? null);
    if (whole) view.signal("ticks", range ? ticks(...range) : whole);
    await view.runAsync();
    figure.dataset.zoomed = String(Boolean(range));
    figure.querySelector("[data-whole]").hidden = !range;
  }
}

function chartsOf(axis) {
  const figures = [...document.querySelectorAll("[data-drawn]")].map((figure) => [figure, charted.get(figure)]);
  return figures.filter(([, chart]) => chart?.axis === axis);
}

// Every mark with a tooltip, in pixels of the plot.
function items(view) {
  const found = [];
  const visit = (mark, left, top) => {
    for (const item of mark.items ?? []) {
      if (mark.marktype === "group") {
        for (const inner of item.items ?? []) visit(inner, left + (item.x ?? 0), top + (item.y ?? 0));
      } else if (item.tooltip && item.x !== undefined && mark.role === "mark") {
        const [x, y] = [left + item.x, top + (item.y ?? 0)];
        found.push({ item, type: mark.marktype, x, y, right: x + (item.width ?? 0), bottom: y + (item.height ?? 0) });
      }
    }
  };
  const [root] = view.scenegraph().root.items;
  for (const mark of root.items) visit(mark, 0, 0);
  return found;
}

// The nearest data to a place: a point that is on no curve, if near; of curves those at its x, the nearest curve first.
// Steps hold until the next point.
function nearest(view, x, y) {
  const width = view.width();
  const found = items(view).filter((one) => one.right >= -1 && one.x <= width + 1);
  const boxes = found.filter((one) => one.type === "rect");
  const lines = found.filter((one) => one.type === "line");
  const away = (low, high, at) => Math.max(low - at, 0, at - high);
  const distance = (one) => Math.hypot(away(one.x, one.right, x), away(one.y, one.bottom, y));
  const nearer = (a, b) => (distance(b) < distance(a) ? b : a);
  const telling = ({ item }) => JSON.stringify(item.tooltip);
  const ofCurve = (point) => lines.some((one) => Math.abs(one.x - point.x) < 0.5 && telling(one) === telling(point));
  const points = found.filter((one) => one.type === "symbol" && distance(one) < NEAR && !ofCurve(one));
  const point = points.length ? [points.reduce(nearer)] : [];
  const curves = new Map();
  for (const one of lines) {
    const held = one.item.interpolate === "step-after";
    if (held && one.x > x + 0.5) continue;
    const key = one.item.stroke;
    const best = curves.get(key);
    if (!best || Math.abs(one.x - x) <= Math.abs(best.x - x)) curves.set(key, one);
  }
  const near = Math.min(...[...curves.values()].map((one) => Math.abs(one.x - x)));
  const shown = [...curves.values()].filter((one) => one.item.interpolate === "step-after" || Math.abs(one.x - x) <= near + 1);
  if (shown.length) return [...point, ...shown.sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y))];
  const rest = boxes.length ? boxes : found;
  return point.length ? point : rest.length ? [rest.reduce(nearer)] : [];
}

function duration(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let rest = Math.round(Math.abs(seconds) * (Math.abs(seconds) < 10 ? 100 : 1)) / (Math.abs(seconds) < 10 ? 100 : 1);
  if (rest < 60) return `${seconds < 0 ? "-" : ""}${rest} s`;
  const words = [];
  for (const [size, unit] of units) {
    if (rest >= size && words.length < 2) words.push(`${Math.floor(rest / size)} ${unit}`);
    rest %= size;
  }
  return (seconds < 0 ? "-" : "") + words.join(" ");
}

const EPOCH = 1e9; // seconds of a clock that counts from 1970, at least
const END_OF_TIME = 253402300800;

function place(axis, value) {
  if (axis === "time" && value > EPOCH && value < END_OF_TIME) {
    return `at ${new Date(value * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }
  return axis === "time" ? `at ${duration(value)}` : `iteration ${Math.round(value)}`;
}

// Where the pointer is, and the values there; of several curves, what their values are stands in the heading.
function describe(found, axis, value) {
  const heading = axis ? [place(axis, value)] : [];
  const table = document.createElement("table");
  const tell = (name, text) => {
    const row = table.insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = text;
  };
  for (const { item } of found.slice(0, 9)) {
    const { of, ...values } = item.tooltip;
    const told = Object.entries(values).filter(([name]) => !(axis && name === "iteration")); // the heading says it
    if (of !== undefined && told.length === 1) {
      if (!heading.includes(told[0][0])) heading.push(told[0][0]);
      tell(of, told[0][1]);
    } else {
      if (of !== undefined) tell("", of);
      for (const [name, text] of told) tell(name, text);
    }
  }
  const first = Object.assign(document.createElement("strong"), { textContent: heading.join(" · ") });
  tip.replaceChildren(...(heading.length ? [first] : []), table);
}

function showTip(event) {
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + 16 + width > document.documentElement.clientWidth;
  const left = right ? Math.max(event.clientX - 16 - width, 4) : event.clientX + 16;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(Math.min(event.clientY + 12, innerHeight - height - 4), 4)}px`;
}

// Where the plot begins within its picture: behind padding and axes.
function origin(view) {
  const padding = view.padding();
  const [left, top] = view.origin();
  return [left + (padding.left ?? padding), top + (padding.top ?? padding)];
}

function cursor(figure, x, found) {
  const { view } = charted.get(figure);
  const line = figure.querySelector(".cursor");
  const [left, top] = origin(view);
  line.hidden = x < 0 || x > view.width();
  line.style.left = `${left + x}px`;
  line.style.top = `${top}px`;
  line.style.height = `${view.height()}px`;
  const dot = figure.querySelector(".dot");
  const at = found.find((one) => one.type === "line" || one.type === "symbol");
  dot.hidden = line.hidden || !at || at.x < 0 || at.x > view.width();
  if (!dot.hidden) {
    dot.style.left = `${left + (at.item.interpolate === "step-after" ? x : at.x)}px`;
    dot.style.top = `${top + at.y}px`;
  }
}

function put(figure, event) {
  const chart = charted.get(figure);
  const { view, axis } = chart;
  const box = figure.querySelector(".plot svg").getBoundingClientRect();
  const y = event.clientY - box.top - origin(view)[1];
  const x = inPlot(figure, event);
  const found = nearest(view, x, y);
  if (!found.length) return clear();
  const value = axis ? read(view, found, x, axis) : 0;
  describe(found, axis, value);
  showTip(event);
  if (!axis) return cursor(figure, found[0].type === "symbol" || found[0].type === "line" ? found[0].x : -1, found);
  for (const [other, { view: its }] of chartsOf(axis)) {
    const its_x = its.scale("x")(value);
    cursor(other, its_x, other === figure ? found : nearest(its, its_x, 0));
  }
}

// Iterations are whole: the cursor stands on one. Time is where the pointer is.
function read(view, found, x, axis) {
  const value = view.scale("x").invert(x);
  return axis === "iteration" ? Math.round(view.scale("x").invert(found[0].x)) : value;
}

function clear() {
  tip.hidden = true;
  for (const mark of document.querySelectorAll(".cursor, .dot, .drag")) mark.hidden = true;
}

let drag = null; // { figure, from }: where a zoom begins

function inPlot(figure, event) {
  const { view } = charted.get(figure);
  const box = figure.querySelector(".plot svg").getBoundingClientRect();
  return Math.min(Math.max(event.clientX - box.left - origin(view)[0], 0), view.width());
}

function figureOf(event) {
  const figure = event.target.closest?.(".plot")?.closest("[data-drawn]");
  return figure && charted.has(figure) && figure.querySelector(".plot svg") ? figure : null;
}

document.addEventListener("pointermove", (event) => {
  const figure = drag?.figure ?? figureOf(event);
  if (!figure) return clear();
  put(figure, event);
  if (!drag) return;
  const [a, b] = [drag.from, inPlot(figure, event)].sort((one, other) => one - other);
  const [left, top] = origin(charted.get(figure).view);
  const band = figure.querySelector(".drag");
  band.hidden = b - a < LEAST_DRAG;
  Object.assign(band.style, { left: `${left + a}px`, top: `${top}px`, width: `${b - a}px`, height: `${charted.get(figure).view.height()}px` });
});

document.addEventListener("pointerdown", (event) => {
  const figure = figureOf(event);
  if (!figure) return clear();
  put(figure, event); // a tap shows what is there
  if (event.button === 0 && charted.get(figure).axis) drag = { figure, from: inPlot(figure, event) };
});

document.addEventListener("pointerup", async (event) => {
  if (!drag) return;
  const { figure, from } = drag;
  drag = null;
  figure.querySelector(".drag").hidden = true;
  const { view, axis } = charted.get(figure);
  const [a, b] = [from, inPlot(figure, event)].sort((one, other) => one - other);
  if (b - a >= LEAST_DRAG) await zoom(axis, [a, b].map((x) => view.scale("x").invert(x)));
});

document.addEventListener("pointercancel", () => {
  drag = null;
  clear();
});

document.addEventListener("dblclick", (event) => {
  const figure = figureOf(event);
  if (figure && charted.get(figure).axis) zoom(charted.get(figure).axis, null);
});

// One chart after another, as of two that are drawn in one place at once something of both stays.
let drawing = Promise.resolve();

function drawAll(which = "[data-chart]") {
  drawing = drawing.then(() => drawEach(which)).catch(console.error);
  return drawing;
}

async function drawEach(which) {
  for (const figure of document.querySelectorAll(which)) {
    try {
      if (figure.isConnected) await draw(figure);
    } catch (error) {
      console.error(error);
      figure.querySelector(".plot").textContent = "This chart can't be drawn; its table says the same.";
    }
  }
  for (const figure of document.querySelectorAll("[data-drawn]")) await level(figure); // as high as those beside it
}

function note(text) {
  const shown = document.getElementById("notes");
  shown.textContent = text;
  setTimeout(() => shown.textContent === text && (shown.textContent = ""), 10000);
}

function remembered() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null; // storage may be switched off
  }
}

function use(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("theme", name);
  } catch {
    return; // it holds for this page then
  }
}

if (remembered()) use(remembered());

document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-theme-switch]")) {
    use(theme() === "dark" ? "light" : "dark");
    await drawAll();
  }
  const whole = event.target.closest("[data-whole]");
  if (whole) await zoom(charted.get(whole.closest("figure")).axis, null);
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    note("Copied");
  }
});

preferred.addEventListener("change", () => drawAll());

// A button that is replaced while it is pressed gets no click, and one whose request is on its way no answer: the part
// of the page that it stands in is fetched again a moment later.
const BUSY = "button.htmx-request, form.htmx-request, button:active, a:active";
const LATER = 300; // milliseconds

// What has the focus is replaced by its like: with the same link, or the same words, and in the same place among those.
// (htmx itself does so for those with an id.)
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
const NAMING = ["id", "href", "name", "value", "aria-label"];

function likeness(element) {
  const named = NAMING.map((name) => element.getAttribute(name) ?? "");
  return JSON.stringify([element.tagName, ...named, named.some(Boolean) ? "" : element.textContent.trim()]);
}

function likesOf(element) {
  return [...document.querySelectorAll(FOCUSABLE)].filter((one) => likeness(one) === likeness(element));
}

// Whether what a reader has chosen to see, which the request included, has changed while it was on its way.
function isOutdated({ elt, parameters }) {
  return elt.hasAttribute("hx-include") && JSON.stringify(htmx.values(elt, "get")) !== JSON.stringify(parameters);
}

let open = [], focused = null, focusedAt = 0;
document.addEventListener("htmx:beforeSwap", (event) => {
  const { shouldSwap, target, requestConfig } = event.detail;
  const { elt, triggeringEvent } = requestConfig;
  if (shouldSwap && ([...target.querySelectorAll(BUSY)].some((one) => one !== elt) || isOutdated(requestConfig))) {
    event.detail.shouldSwap = false;
    setTimeout(() => htmx.trigger(elt, triggeringEvent?.type ?? "sse:changed"), LATER);
    return;
  }
  focused = target.contains(document.activeElement) ? document.activeElement : null;
  focusedAt = focused ? likesOf(focused).indexOf(focused) : 0;
  if (shouldSwap) for (const figure of target.querySelectorAll("[data-drawn]")) end(figure);
  open = [...document.querySelectorAll("details[open][id]")].map((found) => found.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused && !focused.isConnected) {
    const found = likesOf(focused);
    found[Math.min(focusedAt, found.length - 1)]?.focus({ preventScroll: true });
    focused = null;
  }
  drag = null; // its figure is gone
  clear();
  drawAll("[data-chart]:not([data-drawn])"); // it is told of each element that was put in
});

// Pages that update themselves say so, how old what they show is, and whether the service can be reached.
let updated = Date.now(), lost = false;

function alive(now = Date.now()) {
  const past = Math.max(Math.round((now - updated) / 1000), 0);
  const age = past < 60 ? `${past} s` : `${Math.floor(past / 60)} min`;
  for (const mark of document.querySelectorAll("[data-live]")) {
    mark.textContent = `${lost ? "not connected" : "live"} · updated ${age} ago`;
    mark.classList.toggle("warn", lost);
    mark.classList.toggle("running", !lost);
  }
}

for (const [name, reached] of [["afterSwap", true], ["sseOpen", true], ["sseError", false], ["sendError", false]]) {
  document.addEventListener(`htmx:${name}`, () => {
    if (name === "afterSwap") updated = Date.now();
    lost = !reached;
    alive();
  });
}
setInterval(alive, 1000);
alive();

document.addEventListener("htmx:afterRequest", (event) => {
  const { xhr, successful, elt } = event.detail;
  if (successful) {
    if (elt.hasAttribute("data-reload")) location.reload();
    return;
  }
  let told = "The service did not answer; the page shows what was last known.";
  try {
    told = JSON.parse(xhr.responseText).detail ?? told;
  } catch {
    // it said nothing that can be read
  }
  note(told);
});

drawAll();
