// One key at several values: figures over the values, drawn while they are computed.

import { fill, h, s } from "./dom";
import { words } from "./findings";
import type { Key } from "./keys";
import { digits, figure, unit } from "./numbers";
import type { Summary } from "./protocol";
import { figures } from "./series";

const POINTS = 9;

/** The values that a sweep of a key takes: by factors of two around what it is, or every choice. */
export function values(key: Key): Key["value"][] {
  if (key.kind === "choice") return key.choices.slice(0, 12);
  if (key.kind === "flag") return [false, true];
  if (typeof key.value !== "number") return [];
  const [low, high] = [key.min ?? -Infinity, key.max ?? Infinity];
  const even = key.value <= 0 || high - low <= 1;
  const most = high - low <= 1 ? high : key.value + 20;
  const all = Array.from({ length: POINTS }, (_, step) => {
    if (even) return Math.max(low, 0) + ((most - Math.max(low, 0)) * step) / (POINTS - 1);
    return (key.value as number) * 2 ** (step - (POINTS - 1) / 2);
  }).map((value) => Math.min(high, Math.max(low, value)));
  const exact = all.map((value) => (key.kind === "count" ? Math.max(1, Math.round(value)) : Number(value.toPrecision(4))));
  return [...new Set(exact)];
}

/** Draw what is there so far: a small chart for each figure, and all of it as a table. */
export function showSweep(place: HTMLElement, key: Key, points: (Summary | null)[], at: Key["value"][]): void {
  const runs = points.map((summary) => (summary ? figures(summary) : null));
  const names = [...new Map(runs.flatMap((run) => run ?? []).map((one) => [`${one.name} ${one.metric}`, one])).values()];
  const done = runs.filter(Boolean).length;
  const of = (name: string, metric: string) =>
    runs.map((run) => run?.find((one) => one.name === name && one.metric === metric)?.value);
  const head = ["", ...at.map((value) => `${String(value)} ${unit(key.name)}`)];
  fill(place,
    h("p", { id: "sweep-said" }, `${done} of ${at.length} values of ${key.path} have run.`),
    h("div", { class: "small-charts" }, ...names.filter((one) => CHARTED.test(one.metric)).slice(0, 6).map((one) =>
      h("figure", {}, h("figcaption", {}, `${words(one.metric)} of ${one.name}`),
        line(of(one.name, one.metric), at, one.metric, `${words(one.metric)} of ${one.name}`, unit(key.name))))),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "The sweep as a table" }, h("table", {},
      h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name || "figure")))),
      h("tbody", {}, ...names.map((one) => h("tr", {}, h("th", { scope: "row" }, `${words(one.metric)} of ${one.name}`),
        ...of(one.name, one.metric).map((value) => h("td", { class: "number" }, figure(one.metric, value)))))))));
}

const CHARTED = /goodput|rtt_ms|completed|delay_ms\.p95/;

function line(y: (number | null | undefined)[], at: Key["value"][], metric: string, said: string, of: string): SVGElement {
  const [width, height] = [260, 120];
  const high = Math.max(...y.map((value) => value ?? 0)) || 1;
  const place = (value: number, index: number) =>
    [24 + (index / Math.max(1, at.length - 1)) * (width - 48), height - 24 - (value / high) * (height - 44)] as const;
  const points = y.flatMap((value, index) => (value === null || value === undefined ? [] : [place(value, index)]));
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said, class: "small" },
    s("path", { d: points.map(([x, top], index) => `${index ? "L" : "M"}${x} ${top}`).join(""), class: "curve" }),
    ...points.map(([cx, cy]) => s("circle", { cx, cy, r: 3 })),
    s("path", { d: `M24 ${height - 24}H${width - 24}`, class: "axis" }),
    s("text", { x: 12, y: height - 20 }, "0"),
    s("text", { x: 24, y: height - 6 }, `${short(at[0]!)} ${of}`),
    s("text", { x: width - 24, y: height - 6, "text-anchor": "end" }, `${short(at[at.length - 1]!)} ${of}`),
    s("text", { x: 24, y: 12 }, figure(metric, high)));
}

function short(value: Key["value"]): string {
  return typeof value === "number" ? digits(value) : String(value);
}
