// What pages do beside htmx: draw charts, switch the theme, copy commands, tell what went wrong.
const themes = JSON.parse(document.getElementById("themes").textContent);
const charts = document.querySelector("script[data-charts]").dataset.charts;
const preferred = window.matchMedia("(prefers-color-scheme: dark)");
const views = new WeakMap(); // of charts that may become higher
let vega;

function theme() {
  return document.documentElement.dataset.theme ?? (preferred.matches ? "dark" : "light");
}

function fitted(config, room) {
  const axis = { tickCount: Math.min(Math.max(Math.floor(room / 90), 2), 10), labelSeparation: 8 };
  const legend = { ...config.legend, columns: Math.max(Math.floor(room / 110), 1) };
  return { ...config, axisXQuantitative: axis, legend };
}

async function draw(figure) {
  vega ??= import(charts);
  await vega;
  const plot = figure.querySelector(".plot");
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const options = {
    ast: true, // expressions are interpreted: nothing is compiled from text
    actions: false,
    defaultStyle: false,
    renderer: "svg",
    config: fitted(themes[theme()], plot.clientWidth),
    tooltip: { disableDefaultStyle: true },
  };
  const room = plot.clientWidth;
  const { view } = await window.vegaEmbed(plot, { width: "container", autosize: { type: "fit-x", contains: "padding" }, ...spec }, options);
  plot.querySelector("svg")?.setAttribute("aria-hidden", "true"); // the plot's own label and the table tell it
  figure.dataset.drawn = String(room);
  if (typeof spec.height === "number") views.set(figure, view);
}

async function level(figure) {
  const plot = figure.querySelector(".plot");
  const missing = plot.clientHeight - (plot.querySelector("svg")?.clientHeight ?? 0);
  const view = views.get(figure);
  if (view && missing > 4) await view.height(view.height() + Math.min(missing, 200)).runAsync();
}

async function drawAll(root) {
  for (const figure of root.querySelectorAll("[data-chart]")) {
    try {
      await draw(figure);
    } catch (error) {
      console.error(error);
      figure.querySelector(".plot").textContent = "This chart can't be drawn; its table says the same.";
    }
  }
  for (const figure of root.querySelectorAll("[data-drawn]")) await level(figure); // as high as those beside it
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
    await drawAll(document);
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    note("Copied");
  }
});

preferred.addEventListener("change", () => drawAll(document));

let open = [];
document.addEventListener("htmx:beforeSwap", () => {
  open = [...document.querySelectorAll("details[open][id]")].map((found) => found.id);
});
document.addEventListener("htmx:afterSwap", (event) => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  drawAll(event.detail.elt.parentElement ?? document);
});
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

drawAll(document);
