const payload = JSON.parse(document.getElementById("charts").textContent);
const views = new Map();

// Columns to rows: what is no list is the same in every row.
function rows(series) {
  return series.flatMap((each) => {
    const columns = Object.entries(each).filter(([, value]) => Array.isArray(value));
    const length = columns.length ? columns[0][1].length : 0;
    return Array.from({ length }, (_, row) =>
      ({ ...each, ...Object.fromEntries(columns.map(([name, values]) => [name, values[row]])) }));
  });
}

// Plots have a fixed width in the specification; the page gives them what it has. Where that is
// little, names beside lines give way to a legend, and titles are broken.
function fitted(view, width, whole = width) {
  const narrow = whole < 480;
  if (view.spec) {
    view.columns = Math.max(1, Math.min(view.columns, Math.floor(width / 230)));
    fitted(view.spec, width / view.columns - 70, whole);
  }
  if (typeof view.width === "number") view.width = width;
  if (view.layer && narrow) {
    const all = view.layer.length;
    view.layer = view.layer.filter((each) => each.description !== "label");
    if (view.layer.length < all) view.encoding.color.legend = {};
  }
  for (const each of [view, ...(view.layer || [])]) {
    const legend = each.encoding?.color?.legend;
    if (!legend || !narrow) continue;
    // A letter has about six pixels, and a symbol and its gaps thirty.
    const longest = Math.max(0, ...(each.encoding.color.scale?.domain ?? []).map((one) => `${one}`.length));
    legend.columns = Math.max(1, Math.floor(whole / (30 + 6 * longest)));
    legend.labelLimit = whole - 24;
  }
  if (typeof view.title === "string") view.title = broken(view.title, width / 6.4);
  for (const each of [...(view.vconcat || []), ...(view.layer || [])]) fitted(each, width, whole);
  return view;
}

function broken(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

// Times at which a series has no value are left out.
function tip(fields, text) {
  const known = Object.entries(fields).filter(([, value]) => !/^(NaN|null|undefined)$/.test(value));
  return `<table>${known.map(([name, value]) =>
    `<tr><td class="key">${text(name)}</td><td class="value">${text(value)}</td></tr>`).join("")}</table>`;
}

function saved(view, name) {
  const style = getComputedStyle(document.documentElement);
  view.toSVG().then((svg) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(
      [svg.replace(/var\((--\w+)\)/g, (_, colour) => style.getPropertyValue(colour))],
      { type: "image/svg+xml" }));
    link.download = `${name}.svg`;
    link.click();
  });
}

// To a screen reader a chart is one picture with a name; the table has its figures.
function named(element, title) {
  const picture = element.querySelector("svg");
  for (const each of picture.querySelectorAll("[role]")) each.removeAttribute("role");
  for (const each of picture.querySelectorAll("[aria-roledescription]")) each.removeAttribute("aria-roledescription");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", title);
}

async function draw(element) {
  const name = element.dataset.chart;
  const { spec, margin, narrow, data } = structuredClone(payload.charts[name]);
  const room = element.clientWidth;
  const width = Math.max(100, room - (room < 560 ? narrow : margin));
  spec.datasets = Object.fromEntries(data.map((each) => [each, rows(payload.data[each])]));
  const old = views.get(element);
  const drawn = await window.vegaEmbed(element, fitted(spec, width), {
    renderer: "svg",
    actions: false,
    tooltip: { formatTooltip: tip },
  });
  if (old) old.finalize();
  named(element, payload.charts[name].title);
  views.set(element, drawn);
  element.nextElementSibling.onclick = () => saved(drawn.view, name);
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
document.documentElement.classList.add("live");
drawAll();
