// What the charts show: series by chart, from the tables of a run.

import { tableFromIPC, type Table as ArrowTable, type Vector } from "apache-arrow";
import { at } from "./keys";
import type { Parsed, Summary, TableEntry } from "./protocol";

export interface Series {
  /** The same in every run, by which a curve finds its former self. */
  key: string;
  label: string;
  x: Float64Array;
  y: (number | null)[];
  /** Which of the colours. */
  colour: number;
  dash?: boolean;
  /** Single values, which no line joins. */
  points?: boolean;
  /** This curve sets the scale of its chart: others may leave it. */
  scales?: boolean;
}

export interface Chart {
  id: string;
  title: string;
  unit: string;
  series: Series[];
}

export type Tables = Map<string, ArrowTable>;

/** The tables of an answer; their columns stay where they are. */
export function tablesOf(entries: TableEntry[], bytes: Uint8Array): Tables {
  return new Map(
    entries.map(({ name, offset, bytes: length }) => [
      name,
      tableFromIPC(bytes.subarray(offset, offset + length)),
    ]),
  );
}

const NS_PER_S = 1e9;

/** The charts of a run; `flow` is the sender whose windows are shown, `radio` the radio's figure. */
export function charts(
  tables: Tables,
  parsed: Parsed,
  flow: string | null,
  radio: string,
): Chart[] {
  const samples = rowsBy(tables.get("samples"), ["flow"]);
  const colours = new Map(parsed.flows.map((one, index) => [one.id, index]));
  const colour = (name: string) => colours.get(name) ?? 7;
  const of = (group: Group, column: string, more: Partial<Series> = {}): Series => ({
    key: `${group.name} ${column}`,
    label: group.name,
    x: group.times,
    y: group.values(column),
    colour: colour(group.name),
    ...more,
  });
  const links = rowsBy(tables.get("links"), ["link"]);
  // Data that arrives after a lost packet waits; once the loss is repaired, all of it is delivered at once, faster
  // than the path carries. What arrives shows what the path does, and sets the scale.
  const arriving = links.filter((group) => lastLinks(parsed, links).has(group.name))
    .map((group, index) => of(group, "throughput_mbps", { key: `${group.name} arrives`, label: `arrives at ${group.name}`, colour: 7 - (index % 8), scales: true }));
  const goodput = [...arriving, ...samples.map((group) => of(group, "goodput_mbps", { label: `${group.name}, in order` }))];
  const rtt = samples.map((group) => of(group, "rtt_ms"));
  for (const group of rowsBy(tables.get("pings"), ["flow"], "sent_ns")) {
    rtt.push(of(group, "rtt_ms", { points: group.times.length < 400 }));
  }
  const windows = samples
    .filter((group) => group.name === flow)
    .flatMap((group) => [
      of(group, "cwnd_segments", { label: "cwnd", colour: 0 }),
      of(group, "ssthresh_segments", { label: "ssthresh", colour: 1, dash: true }),
      of(group, "inflight_segments", { label: "in flight", colour: 2 }),
      of(group, "receive_window_segments", { label: "receive window", colour: 3, dash: true }),
    ]);
  // Slow start begins with an ssthresh that nothing reaches, which would be all that one sees.
  const reached = most(windows.filter((one) => !one.dash));
  for (const one of windows) {
    if (one.dash) one.y = one.y.map((value) => (value !== null && value > 4 * reached ? null : value));
  }
  // A buffer of the radio has the colour that its UE and direction have in the radio's chart.
  const cells = rowsBy(tables.get("radio"), ["ue", "direction"]);
  const cellOf = (name: string) => cells.findIndex((cell) => name === `radio.${cell.name}`);
  const queues = links.map((group, index) => of(group, "queue_delay_ms", { colour: cellOf(group.name) < 0 ? index + 3 : cellOf(group.name) }));
  const all: Chart[] = [
    { id: "goodput", title: "Goodput", unit: "Mb/s", series: goodput },
    { id: "rtt", title: "Round-trip time", unit: "ms", series: rtt },
    { id: "window", title: `Windows of ${flow ?? "the sender"}`, unit: "segments", series: windows },
    { id: "queue", title: "Delay in queues", unit: "ms", series: queues },
  ];
  if (cells.length > 0) {
    const [column, title, unit] = RADIO_FIGURES.find(([name]) => name === radio) ?? RADIO_FIGURES[0]!;
    const series = cells.map((group, index) => of(group, column, { colour: index }));
    all.push({ id: "radio", title: `Radio: ${title}`, unit, series });
  }
  return all.map((chart) => ({ ...chart, series: chart.series.filter(shows) }));
}

/** The links after which the data of a flow has arrived. */
function lastLinks(parsed: Parsed, links: Group[]): Set<string> {
  const names = links.map((group) => group.name);
  return new Set(parsed.flows.filter(({ kind }) => kind !== "ping").flatMap(({ index, direction }) => {
    const said = at(parsed.values, ["flow", index, "ue"]);
    const radio = `radio.${typeof said === "string" ? said : parsed.ues?.[0]}.${direction}`;
    const wire = names.findLast((name) => name.startsWith(`${direction}.`));
    return (direction === "down" && names.includes(radio) ? radio : wire ?? names.find((name) => name === radio)) ?? [];
  }));
}

/** Column, title and unit of what the radio's chart can show. */
export const RADIO_FIGURES: [column: string, title: string, unit: string][] = [
  ["mcs", "MCS", "index"],
  ["prbs", "resource blocks", "per interval"],
  ["throughput_mbps", "throughput", "Mb/s"],
  ["bler", "blocks that failed", "share"],
  ["harq_retransmissions", "HARQ retransmissions", "per interval"],
  ["rlc_retransmissions", "RLC retransmissions", "per interval"],
  ["queue_delay_ms", "delay in the buffer", "ms"],
  ["scheduling_requests", "scheduling requests", "per interval"],
  ["grants", "grants", "per interval"],
  ["awake", "share of time awake (DRX)", "share"],
];

/** A figure; null is the completion time of a transfer that did not complete. */
export interface Figure {
  name: string;
  metric: string;
  value: number | null;
}

/** The figures of a run that stand beside the charts: what, of which flow or link, how much. */
export function figures(summary: Summary): Figure[] {
  const found: { name: string; metric: string; value: number | null | undefined }[] = [];
  for (const flow of summary.flows) {
    found.push({ name: flow.id, metric: "goodput_mbps", value: flow.goodput_mbps });
    found.push({ name: flow.id, metric: "rtt_ms.p50", value: flow.rtt_ms?.p50 });
    if (flow.kind === "file")
      found.push({ name: flow.id, metric: "completed_s", value: flow.completed_s });
    if (flow.kind !== "udp")
      found.push({ name: flow.id, metric: "retransmissions", value: flow.retransmitted_segments });
    found.push({ name: flow.id, metric: "delay_ms.p95", value: flow.delay_ms?.p95 });
  }
  for (const ping of summary.pings) {
    found.push({ name: ping.id, metric: "rtt_ms.p50", value: ping.rtt_ms?.p50 });
    found.push({ name: ping.id, metric: "rtt_ms.p95", value: ping.rtt_ms?.p95 });
  }
  for (const link of summary.links.slice(0, 6)) {
    found.push({ name: link.id, metric: "queue_delay_ms.p95", value: link.queue_delay_ms?.p95 });
  }
  return found.filter((one): one is Figure =>
    Number.isFinite(one.value) || one.value === null && one.metric === "completed_s",
  );
}

/** Rows of one flow, link, or UE and direction, in the order of time. */
export interface Group {
  name: string;
  times: Float64Array;
  values: (column: string) => (number | null)[];
}

export function rowsBy(table: ArrowTable | undefined, names: string[], time = "time_ns"): Group[] {
  if (!table || table.numRows === 0) return [];
  const times = table.getChild(time);
  const columns = names.map((name) => table.getChild(name));
  if (!times || columns.some((column) => !column)) return [];
  const parts = columns.map((column) => texts(column!));
  const rows = new Map<string, number[]>();
  for (let row = 0; row < table.numRows; row++) {
    const name = parts.length === 1 ? parts[0]!(row) : parts.map((part) => part(row)).join(".");
    const known = rows.get(name);
    if (known) known.push(row);
    else rows.set(name, [row]);
  }
  const when = numbers(times);
  return [...rows].map(([name, at]) => ({
    name,
    times: Float64Array.from(at, (row) => (when(row) ?? NaN) / NS_PER_S),
    values: (column) => at.map(numbers(table.getChild(column))),
  }));
}

/** What a column of texts has in a row. A text of a dictionary is decoded once, not in each row. */
function texts(column: Vector): (row: number) => string {
  const data = column.data[0];
  const { values, dictionary } = data ?? {};
  if (column.data.length !== 1 || !dictionary) return (row) => String(column.get(row));
  const known = Array.from({ length: dictionary.length }, (_, at) => String(dictionary.get(at)));
  return (row) => known[Number(values[row])] ?? "";
}

/** What a column of numbers has in a row. One batch is read where it lies. */
function numbers(column: Vector | null): (row: number) => number | null {
  const data = column?.data[0];
  if (column?.data.length !== 1 || !data || data.offset !== 0 || !ArrayBuffer.isView(data.values)) {
    return (row) => {
      const value: unknown = column?.get(row);
      return value === null || value === undefined ? null : Number(value);
    };
  }
  const values = data.values as unknown as ArrayLike<number | bigint>;
  if (data.nullCount === 0) return (row) => Number(values[row]);
  return (row) => (data.getValid(row) ? Number(values[row]) : null);
}

function shows(series: Series): boolean {
  return series.y.some((value) => value !== null);
}

function most(series: Series[]): number {
  return series.flatMap((one) => one.y).reduce<number>((max, value) => Math.max(max, value ?? 0), 1);
}

/** The mean of what a series shows; null without a value. */
export function mean(series: Series): number | null {
  const values = series.y.filter((value): value is number => value !== null);
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

/** A table as text, for other programs. */
export function csv(table: ArrowTable): string {
  const names = table.schema.fields.map((field) => field.name);
  const columns = names.map((name) => table.getChild(name));
  const cell = (value: unknown) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [names.join(",")];
  for (let row = 0; row < table.numRows; row++) {
    lines.push(columns.map((column) => cell(column?.get(row))).join(","));
  }
  return lines.join("\n") + "\n";
}
