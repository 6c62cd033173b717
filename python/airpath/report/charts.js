const payload = JSON.parse(document.getElementById("charts").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const views = new Map();

function themed(spec) {
  const colours = dark.matches ? payload.dark : payload.light;
  return JSON.parse(
    JSON.stringify(spec).replace(/"@@(\w+)"/g, (token, name) =>
      name in colours ? JSON.stringify(colours[name]) : token));
}

// Plots have a fixed width in the specification; the page gives them what it has.
function fitted(view, width) {
  if (typeof view.width === "number") view.width = width;
  for (const group of ["vconcat", "layer"]) (view[group] || []).forEach((v) => fitted(v, width));
  return view;
}

async function draw(element) {
  const chart = payload.charts[element.dataset.chart];
  const width = Math.max(240, element.clientWidth - chart.margin);
  const old = views.get(element);
  const result = await window.vegaEmbed(element, fitted(themed(chart.spec), width), {
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: element.dataset.chart,
    tooltip: { theme: dark.matches ? "dark" : "light" },
  });
  if (old) old.finalize();
  views.set(element, result);
}

async function drawAll() {
  for (const element of document.querySelectorAll("[data-chart]")) await draw(element);
  document.documentElement.dataset.drawn = "yes";
}

let lastWidth = window.innerWidth;
let timer = 0;
window.addEventListener("resize", () => {
  if (window.innerWidth === lastWidth) return;
  lastWidth = window.innerWidth;
  clearTimeout(timer);
  timer = setTimeout(drawAll, 150);
});
dark.addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((element) => { element.open = true; });
});
document.documentElement.classList.add("live");
drawAll();
