// Linked charts: one time and one stretch of time for all. The curves of the former run stay as
// shadows behind those of this one.

import uPlot from "uplot";
import { fill, h, s, write } from "./dom";
import { valueAt } from "./moments";
import { digits } from "./numbers";
import { mean, type Chart, type Series } from "./series";
import { after } from "./timing";

/** A band: lowest and highest value of several seeds. */
export interface Band {
  key: string;
  x: Float64Array;
  low: (number | null)[];
  high: (number | null)[];
}

/** A curve as it is drawn: of this run, faint of the former one, or the edge of a band. */
type Line = Series & { faint?: boolean; edge?: boolean };

const HEIGHT = 190;
const SYNC = "airpath";

interface Panel {
  plot: uPlot | null;
  section: HTMLElement;
  title: HTMLElement;
  place: HTMLElement;
  legend: HTMLElement;
  said: HTMLElement;
  /** The time that is shown: a line over the curves, and the value of each beside its name. */
  line: HTMLElement;
  values: HTMLElement[];
  /** Some of it is in sight. */
  seen: boolean;
  shape: string;
  chart: Chart;
  shadow: Chart | undefined;
  bands: Band[];
}

export class Charts {
  readonly #panels = new Map<string, Panel>();
  /** A chart out of sight shows its values once it comes into sight. */
  readonly #sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const panel = [...this.#panels.values()].find(({ section }) => section === target);
      if (!panel) continue;
      panel.seen = isIntersecting;
      this.#mark(panel, true);
    }
  });
  #zoom: [number, number] | null = null;
  #end = 1;
  #zooming = false;
  #time = 0;

  constructor(
    readonly place: HTMLElement,
    readonly onZoom: (zoom: [number, number] | null) => void,
    readonly onTime: (time: number) => void,
  ) {
    new ResizeObserver(() => this.#resize()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#redraw());
  }

  /** Draw a run over `end` seconds, and the former one behind it. */
  show(all: Chart[], shadows: Chart[], end: number, bands = new Map<string, Band[]>()): void {
    this.#end = end;
    for (const [id, panel] of this.#panels) {
      if (!all.some((chart) => chart.id === id && chart.series.length > 0)) {
        panel.plot?.destroy();
        this.#sight.unobserve(panel.section);
        panel.section.remove();
        this.#panels.delete(id);
      }
    }
    for (const chart of all) {
      if (chart.series.length === 0) continue;
      const panel = this.#panels.get(chart.id) ?? this.#add(chart);
      panel.chart = chart;
      panel.shadow = shadows.find((one) => one.id === chart.id);
      panel.bands = bands.get(chart.id) ?? [];
      this.#draw(panel);
    }
  }

  /** Show this stretch of time, or all of it. */
  zoom(zoom: [number, number] | null): void {
    this.#zoom = zoom;
    this.#zooming = true;
    for (const { plot } of this.#panels.values()) {
      plot?.setScale("x", { min: zoom?.[0] ?? 0, max: zoom?.[1] ?? this.#end });
    }
    this.#zooming = false;
  }

  /** Show where a time is; `numbers`: and the values then. */
  at(time: number, numbers: boolean): void {
    this.#time = time;
    for (const panel of this.#panels.values()) this.#mark(panel, numbers);
  }

  #mark({ plot, seen, line, values, chart }: Panel, numbers: boolean): void {
    if (!plot || !seen) return;
    const place = plot.valToPos(this.#time, "x");
    // The width from the plot's own record: asking the element would make the page lay itself out in each frame.
    line.hidden = !(place >= 0 && place <= plot.bbox.width / devicePixelRatio);
    line.style.transform = `translateX(${place}px)`;
    if (!numbers) return;
    for (const [index, series] of chart.series.entries()) {
      const value = series.points ? lastBefore(series, this.#time) : valueAt({ times: series.x, values: series.y }, this.#time);
      const text = value === null ? "–" : digits(value);
      const element = values[index];
      if (element) write(element, text);
    }
  }

  /** The chart as a file of its own. */
  svg(id: string): string | null {
    const panel = this.#panels.get(id);
    if (!panel) return null;
    const range = this.#zoom ?? [0, this.#end];
    return drawn(panel.chart, panel.shadow, range);
  }

  get shown(): Chart[] {
    return [...this.#panels.values()].map((panel) => panel.chart);
  }

  #add(chart: Chart): Panel {
    const title = h("h3", { id: `title-${chart.id}` });
    const place = h("div", { class: "plot", role: "img", "aria-labelledby": `title-${chart.id}`,
      "aria-describedby": `said-${chart.id}` });
    const legend = h("ul", { class: "legend" });
    const said = h("p", { class: "said", id: `said-${chart.id}` });
    const section = h("section", { class: "chart", id: `chart-${chart.id}` }, title, legend, place, said);
    this.place.append(section);
    const panel: Panel = {
      plot: null, section, title, place, legend, said, line: h("div", { class: "time-line" }), values: [], seen: false, shape: "", chart,
      shadow: undefined, bands: [],
    };
    this.#panels.set(chart.id, panel);
    this.#sight.observe(section);
    return panel;
  }

  #draw(panel: Panel): void {
    const { chart, shadow, bands } = panel;
    fill(panel.title, `${chart.title} (${chart.unit})`);
    panel.values = chart.series.map(() => h("b", {}));
    fill(panel.legend, ...chart.series.map((one, index) => entry(one, panel.values[index]!)),
      shadow && h("li", {}, h("span", { class: "key shadow" }), "before"));
    fill(panel.said, chart.series.map((one) => words(one, shadow, chart.unit)).join("; "));
    const behind = (shadow?.series ?? []).filter((one) =>
      chart.series.some((now) => now.key === one.key),
    );
    const lines: Line[] = [
      ...bands.flatMap((band) => [
        edge(chart, band, band.high),
        edge(chart, band, band.low),
      ]),
      ...behind.map((one) => ({ ...one, faint: true })),
      ...chart.series,
    ];
    const data = joined(lines);
    const shape = lines
      .map((one) => [one.key, one.colour, one.dash, one.points, one.faint, one.edge].join("|"))
      .join("\n");
    if (panel.plot && panel.shape === shape) {
      panel.plot.setData(data, false);
    } else {
      panel.plot?.destroy();
      panel.shape = shape;
      panel.plot = new uPlot(this.#options(panel, lines, bands.length), data, panel.place);
      const { over } = panel.plot;
      over.append(panel.line);
      const point = (event: MouseEvent) => this.onTime(panel.plot!.posToVal(event.clientX - over.getBoundingClientRect().x, "x"));
      for (const kind of ["mousemove", "click"] as const) over.addEventListener(kind, point);
    }
    this.#zooming = true;
    panel.plot.setScale("x", { min: this.#zoom?.[0] ?? 0, max: this.#zoom?.[1] ?? this.#end });
    this.#zooming = false;
    this.#mark(panel, true);
  }

  #options(
    panel: Panel,
    lines: Line[],
    bands: number,
  ): uPlot.Options {
    const css = getComputedStyle(document.documentElement);
    const colour = (name: string) => css.getPropertyValue(`--${name}`).trim();
    const axis: uPlot.Axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("grid"), width: 1 },
      ticks: { stroke: colour("grid"), width: 1 },
      font: "12px system-ui, sans-serif",
    };
    return {
      width: Math.max(200, panel.place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: SYNC }, drag: { x: true, y: false }, points: { size: 6 } },
      scales: {
        x: { time: false },
        y: { range: (plot, _low, high) => [0, 1.08 * (scaling(plot, lines) ?? (high > 0 ? high : 1))] },
      },
      axes: [
        { ...axis, size: 34, values: (_plot, ticks) => ticks.map((tick) => `${digits(tick)} s`) },
        { ...axis, size: 58, values: (_plot, ticks) => ticks.map(digits) },
      ],
      bands: Array.from({ length: bands }, (_, index) => ({
        series: [2 * index + 1, 2 * index + 2] as [number, number],
        fill: `${colour(`c${lines[2 * index]!.colour % 8}`)}33`,
      })),
      series: [
        {},
        ...lines.map((one): uPlot.Series => {
          const stroke = colour(one.faint ? "ghost" : `c${one.colour % 8}`);
          return {
            label: one.label,
            stroke: one.edge ? "transparent" : stroke,
            width: one.faint ? 1.3 : 1.6,
            ...(one.dash || one.faint ? { dash: one.faint ? [2, 3] : [6, 4] } : {}),
            points: one.points ? { show: true, size: one.faint ? 3 : 4 } : { show: false },
            ...(one.points ? { paths: () => null } : {}),
            spanGaps: !one.points,
          };
        }),
      ],
      hooks: {
        draw: [(plot) => peaks(plot, lines)],
        setScale: [
          (plot, scale) => {
            if (scale !== "x" || this.#zooming) return;
            const { min, max } = plot.scales["x"]!;
            if (min === undefined || max === undefined || min === null || max === null) return;
            const whole = min <= 0 && max >= this.#end;
            const zoom: [number, number] | null = whole ? null : [min, max];
            this.zoom(zoom);
            this.onZoom(zoom);
          },
        ],
      },
    };
  }

  #resize(): void {
    for (const { plot, place } of this.#panels.values()) {
      const width = Math.max(200, place.clientWidth);
      if (plot && plot.width !== width) plot.setSize({ width, height: HEIGHT });
    }
    this.at(this.#time, false);
  }

  #redraw(): void {
    for (const panel of this.#panels.values()) {
      panel.shape = "";
      this.#draw(panel);
    }
  }
}

/** The largest value in sight of the series that set the scale; null if none does. */
function scaling(plot: uPlot, lines: Line[]): number | null {
  const [first, last] = plot.series[0]!.idxs ?? [0, plot.data[0].length - 1];
  let most = 0;
  for (const [index, line] of lines.entries()) {
    if (!line.scales) continue;
    const values = plot.data[index + 1]!;
    for (let at = first; at <= last; at++) most = Math.max(most, values[at] ?? 0);
  }
  return most > 0 ? most : null;
}

/** Marks at the upper edge where a curve leaves the scale. */
function peaks(plot: uPlot, lines: Line[]): void {
  const { ctx, bbox, data } = plot;
  const most = plot.scales["y"]?.max ?? Infinity;
  const [first, last] = plot.series[0]!.idxs ?? [0, data[0].length - 1];
  for (const [index, line] of lines.entries()) {
    if (line.faint || line.edge || !lines.some((one) => one.scales)) continue;
    const values = data[index + 1]!;
    ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--c${line.colour % 8}`).trim();
    for (let at = first; at <= last; at++) {
      if ((values[at] ?? 0) <= most) continue;
      const x = plot.valToPos(data[0][at]!, "x", true);
      const size = 4 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x - size, bbox.top + 1.6 * size);
      ctx.lineTo(x + size, bbox.top + 1.6 * size);
      ctx.fill();
    }
  }
}

/** The last of single values before a time. */
function lastBefore({ x, y }: Series, time: number): number | null {
  return y[after(x, time) - 1] ?? null;
}

function entry(series: Series, value: HTMLElement): HTMLElement {
  const key = h("span", { class: `key c${series.colour % 8}${series.dash ? " dash" : ""}${series.points ? " dots" : ""}` });
  return h("li", {}, key, `${series.label} `, value);
}

/** What a curve says to who does not see it. */
function words(series: Series, shadow: Chart | undefined, unit: string): string {
  const now = mean(series);
  const former = shadow?.series.find((one) => one.key === series.key);
  const before = former ? mean(former) : null;
  const said = `${series.label}: mean ${now === null ? "–" : digits(now)} ${unit}`;
  return before === null || before === now ? said : `${said}, before ${digits(before)}`;
}

function edge(chart: Chart, band: Band, y: (number | null)[]) {
  const colour = chart.series.find((one) => one.key === band.key)?.colour ?? 7;
  return { key: band.key, label: "", x: band.x, y, colour, edge: true };
}

/** Series over one axis of time. */
function joined(lines: Series[]): uPlot.AlignedData {
  const first = lines[0]!.x;
  const same = lines.every(
    (one) => one.x === first || (one.x.length === first.length && one.x.every((t, at) => t === first[at])),
  );
  if (same) return [first, ...lines.map((one) => one.y)];
  return uPlot.join(lines.map((one): uPlot.AlignedData => [one.x, one.y]));
}

const GHOST = "#9aa3ad";
const COLOURS = ["#0068a8", "#cc4c00", "#00855f", "#a8508a", "#b57a00", "#3a9bd9", "#6b5bb5", "#5f6368"];

/** A chart as SVG text, which needs no style of a page. */
function drawn(chart: Chart, shadow: Chart | undefined, [from, to]: [number, number]): string {
  const [width, height, left, bottom, top] = [760, 300, 60, 34, 34];
  const all = [...(shadow?.series ?? []), ...chart.series];
  const visible = all.some((one) => one.scales) ? all.filter((one) => one.scales) : all;
  const high = visible
    .flatMap((one) => one.y.filter((_, at) => one.x[at]! >= from && one.x[at]! <= to))
    .reduce<number>((most, value) => Math.max(most, value ?? 0), 0) || 1;
  const x = (time: number) => left + ((time - from) / (to - from)) * (width - left - 12);
  const y = (value: number) => height - bottom - (value / high) * (height - bottom - top);
  const line = (one: Series, faint: boolean) => {
    let path = "";
    let pen = "M";
    one.y.forEach((value, at) => {
      const time = one.x[at]!;
      if (value === null || time < from || time > to) return;
      path += `${pen}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = one.points ? "h1M" : "L";
    });
    if (one.points && path) path += "h1";
    return s("path", { d: path, fill: "none", stroke: faint ? GHOST : COLOURS[one.colour % 8]!, "stroke-width":
      faint ? 1.3 : one.points ? 2.5 : 1.6,
      "stroke-dasharray": one.dash ? "6 4" : null });
  };
  const text = (at: [number, number], said: string, anchor = "start", size = 12) =>
    s("text", { x: at[0], y: at[1], "text-anchor": anchor, "font-size": size, fill: "#333" }, said);
  const ticks = [0, 1, 2, 3, 4].map((step) => step / 4);
  let place = left;
  const legend = chart.series.map((one) => {
    const at = place;
    place += 24 + 7 * one.label.length;
    return s("g", {}, s("rect", { x: at, y: 24, width: 10, height: 3, fill: COLOURS[one.colour % 8]! }),
      text([at + 14, 29], one.label, "start", 11));
  });
  // What leaves the scale is cut off.
  const clip = s("clipPath", { id: "inside" }, s("rect", { x: left, y: top, width: width - 12 - left, height: height - bottom - top + 2 }));
  const root = s("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width,
      height, "font-family": "system-ui, sans-serif" },
    s("rect", { width, height, fill: "#fff" }),
    text([left, 16], `${chart.title} (${chart.unit})`, "start", 13),
    ...legend,
    ...ticks.map((step) => s("g", {},
      s("path", { d: `M${left} ${y(high * step)}H${width - 12}`, stroke: "#e4e8ec" }),
      text([left - 6, y(high * step) + 4], digits(high * step), "end", 11))),
    ...ticks.map((step) => text([x(from + (to - from) * step), height - 12],
      `${digits(from + (to - from) * step)} s`, "middle", 11)),
    s("defs", {}, clip),
    s("g", { "clip-path": "url(#inside)" },
      ...(shadow?.series ?? []).map((one) => line(one, true)),
      ...chart.series.map((one) => line(one, false))));
  return new XMLSerializer().serializeToString(root);
}
