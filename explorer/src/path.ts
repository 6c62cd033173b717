// The path of one run, and what happens on it: the server, the stages of each direction, the cell, the
// UEs. A box leads to the controls of its keys; a strip in it shows the packets that are there.

import { fill, h, write } from "./dom";
import { at, list, table } from "./keys";
import type { Moments, UeState } from "./moments";
import { digits } from "./numbers";
import type { Parsed, Value } from "./protocol";
import { after, type Changes, type Flight, type Flights, type RadioLog } from "./timing";

/** What is shown of a run at one time. */
export interface Scene {
  parsed: Parsed;
  moments: Moments;
  flights: Flights | null;
  /** The sender whose windows are shown. */
  flow: string | null;
  time: number;
  /** How long the place of a drop is marked. */
  mark_s: number;
}

const MOST_UES = 6;
/** Nothing is gained by more pixels for squares of a few of them. */
const MOST_RATIO = 2;

interface Strip {
  element: HTMLElement;
  /** Packets go to the left. */
  left: boolean;
  queue: string | null;
  live: HTMLElement | null;
  box: DOMRect;
}

/** Where the windows of a sender are shown. */
interface Gauge {
  direction: string;
  ue: string | null;
  element: HTMLElement;
  cwnd: HTMLElement;
  inFlight: HTMLElement;
  said: HTMLElement;
}

export class PathView {
  readonly root: HTMLElement;
  readonly #canvas = h("canvas", { class: "flights", "aria-hidden": "true" });
  readonly #place = h("div", { class: "path" });
  readonly #strips = new Map<string, Strip>();
  readonly #ues = new Map<string, { box: HTMLElement; said: HTMLElement }>();
  readonly #gauges: Gauge[] = [];
  #shape = "";
  #colours: Record<string, string> = {};
  #size = { width: 0, height: 0 };

  /** `onBox` gets the part of the scenario whose box was pressed; without it, boxes are no buttons. */
  constructor(name: string, readonly onBox: ((id: string) => void) | null, readonly onChange: () => void) {
    this.root = h("div", { class: `path-view${onBox ? "" : " former"}`, role: "group", "aria-label": name },
      h("p", { class: "path-name", "aria-hidden": "true" }, name), this.#canvas, this.#place);
    new ResizeObserver(() => {
      this.measure();
      this.onChange();
    }).observe(this.root);
  }

  /** Draw the boxes of a scenario. The elements stay where the path has the same parts. */
  show(parsed: Parsed, moments: Moments): void {
    const shape = JSON.stringify([parsed.values["path"], parsed.values["radio"], parsed.ues, moments.queues]);
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.#strips.clear();
    this.#ues.clear();
    this.#gauges.length = 0;
    const place = this.#place;
    const focused = place.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset["section"] : undefined;
    const radio = parsed.ues !== null;
    fill(place,
      this.#end("Server", "down", null),
      parsed.values["proxy"] === undefined ? null : this.#box("proxy", "TCP proxy", "", []),
      h("div", { class: "lanes" }, this.#lane(parsed, moments, "down"), this.#lane(parsed, moments, "up")),
      radio ? this.#box("radio.cell", "Cell", cellOf(parsed), []) : null,
      radio ? this.#radio(parsed, moments) : this.#end("UE", "up", null));
    // Who was at a box stays there.
    if (focused !== undefined) {
      [...place.querySelectorAll<HTMLElement>(".box")].find((one) => one.dataset["section"] === focused)?.focus();
    }
    this.measure();
  }

  /** Find out where the strips are, and which colours the page has. */
  measure(): void {
    const outer = this.root.getBoundingClientRect();
    for (const strip of this.#strips.values()) {
      const box = strip.element.getBoundingClientRect();
      strip.box = new DOMRect(box.x - outer.x, box.y - outer.y, box.width, box.height);
    }
    const css = getComputedStyle(this.root);
    for (const name of ["c0", "c1", "c2", "c7", "bad", "queue", "ghost"]) this.#colours[name] = css.getPropertyValue(`--${name}`).trim();
    const ratio = Math.min(MOST_RATIO, devicePixelRatio);
    this.#size = { width: outer.width, height: outer.height };
    const [width, height] = [Math.round(outer.width * ratio), Math.round(outer.height * ratio)];
    if (this.#canvas.width !== width || this.#canvas.height !== height) [this.#canvas.width, this.#canvas.height] = [width, height];
    this.#canvas.getContext("2d")?.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** Show one time; `numbers`: write its numbers as well. */
  draw(scene: Scene, numbers: boolean): void {
    const context = this.#canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, this.#size.width, this.#size.height);
    this.#queues(context, scene);
    if (scene.flights) this.#packets(context, scene, scene.flights);
    for (const [name, { box, said }] of this.#ues) {
      const state = stateOf(scene, name);
      const shown = state?.state ?? "";
      if (box.dataset["state"] !== shown) box.dataset["state"] = shown;
      if (numbers) write(said, state?.said ?? "");
    }
    this.#windows(scene, numbers);
    if (numbers) this.#waiting(scene);
  }

  #queues(context: CanvasRenderingContext2D, { moments, time }: Scene): void {
    for (const { queue, left, box } of this.#strips.values()) {
      if (queue === null) continue;
      const width = box.width * moments.filled(queue, time);
      context.fillStyle = this.#colours["queue"]!;
      // The head of a queue is where packets leave it.
      context.fillRect(left ? box.x : box.right - width, box.y, width, box.height);
    }
  }

  #waiting({ moments, time }: Scene): void {
    for (const { queue, live } of this.#strips.values()) {
      if (live && queue !== null) write(live, `${digits(moments.waiting(queue, time))} waiting`);
    }
  }

  #packets(context: CanvasRenderingContext2D, { moments, time, mark_s }: Scene, flights: Flights): void {
    const { all, sent_s } = flights;
    const end = after(sent_s, time);
    for (let index = after(sent_s, time - flights.longest_s - mark_s); index < end; index++) {
      const flight = all[index]!;
      if (time > flight.end_s) {
        if (flight.lost && time < flight.end_s + mark_s) this.#cross(context, flight);
        continue;
      }
      const part = after(flight.leaves_s, time);
      const track = flight.tracks[part];
      const strip = track === undefined ? undefined : this.#strips.get(track);
      if (!strip) continue;
      const begin = part === 0 ? flight.packet.sent_s : flight.leaves_s[part - 1]!;
      const way = (time - begin) / (flight.leaves_s[part]! - begin || 1);
      this.#packet(context, flight, strip, strip.queue === null ? way : 1 - moments.filled(strip.queue, begin) * (1 - way), index);
    }
  }

  #packet(context: CanvasRenderingContext2D, { packet }: Flight, { box, left }: Strip, way: number, index: number): void {
    const { kind } = packet;
    const small = kind === "ack";
    const size = small ? 3 : kind === "data" ? 4 : 6;
    const x = left ? box.right - way * box.width : box.x + way * box.width;
    // Side by side in the strip; which one is where does not matter, so long as it stays there.
    const y = box.y + 2 + ((index * 7) % Math.max(1, Math.floor(box.height - size - 3)));
    context.fillStyle = this.#colours[COLOURS[kind] ?? "c2"]!;
    context.fillRect(x - size / 2, y, size, size);
  }

  #cross(context: CanvasRenderingContext2D, flight: Flight): void {
    const strip = this.#strips.get(flight.tracks[flight.tracks.length - 1] ?? "");
    if (!strip) return;
    const { box, left, queue } = strip;
    const [x, y] = [left ? (queue ? box.right : box.x) : queue ? box.x : box.right, box.y + box.height / 2];
    context.strokeStyle = this.#colours["bad"]!;
    context.lineWidth = 2;
    context.beginPath();
    for (const sign of [-1, 1]) {
      context.moveTo(x - 5, y - 5 * sign);
      context.lineTo(x + 5, y + 5 * sign);
    }
    context.stroke();
  }

  #windows({ parsed, moments, flow, time }: Scene, numbers: boolean): void {
    const info = parsed.flows.find((one) => one.id === flow);
    const windows = moments.windows(flow, time);
    const ue = info ? at(parsed.values, ["flow", info.index, "ue"]) ?? parsed.ues?.[0] ?? null : null;
    for (const gauge of this.#gauges) {
      const mine = windows !== null && gauge.direction === info?.direction && (gauge.ue === null || gauge.ue === ue);
      gauge.element.hidden = !mine;
      if (!mine) continue;
      gauge.cwnd.style.transform = `scaleX(${windows.cwnd / windows.most})`;
      gauge.inFlight.style.transform = `scaleX(${windows.inFlight / windows.most})`;
      if (numbers) write(gauge.said, `${flow}: cwnd ${digits(windows.cwnd)}, in flight ${digits(windows.inFlight)}`);
    }
  }

  #lane(parsed: Parsed, moments: Moments, direction: "down" | "up"): HTMLElement {
    const path = list(table(parsed.values["path"])[direction]);
    const stages = path.map((stage, index) => {
      const track = `${direction}.${index}`;
      const queue = moments.queues.find((link) => link.startsWith(`${track}.`)) ?? null;
      const delay_ms = Number(table(stage)["delay_ms"] ?? 0) || 0;
      const item = h("li", {}, this.#box(`path.${track}`, String(table(stage)["stage"]), detail(stage), this.#strip(track, direction === "up", queue)));
      // Wide is what takes long.
      item.style.flexGrow = String(queue ? 3 : 1 + Math.min(3, delay_ms / 20));
      return item;
    });
    // The downlink is written from the server on, the uplink from the UE on: both are drawn from
    // left to right as the server stands left.
    const ordered = direction === "down" ? stages : stages.reverse();
    return h("ol", { class: `lane ${direction}`, "aria-label": direction === "down" ? "Downlink, from server to UE" : "Uplink, drawn from server to UE" }, ...ordered);
  }

  #radio(parsed: Parsed, moments: Moments): HTMLElement {
    const ues = parsed.ues ?? [];
    const buffer = (name: string, direction: "down" | "up") => {
      const link = `radio.${name}.${direction}`;
      const queue = moments.queues.includes(link) ? link : null;
      return h("div", { class: `leg buffer ${direction}` }, h("span", { class: "help" }, direction === "down" ? "RLC buffer" : "uplink buffer"),
        ...this.#strip(`buffer.${name}.${direction}`, direction === "up", queue));
    };
    const air = (name: string, direction: "down" | "up") =>
      h("div", { class: `leg air ${direction}` }, ...this.#strip(`air.${name}.${direction}`, direction === "up", null));
    return h("div", { class: "ues" }, ...ues.slice(0, MOST_UES).map((name, index) => {
      const said = h("span", { class: "ue-state" });
      const box = this.#box(`radio.ue.${index}`, name, quality(parsed, index), [said, this.#gauge("up", name)]);
      this.#ues.set(name, { box, said });
      return h("div", { class: "ue-row" },
        h("div", { class: "legs" }, buffer(name, "down"), air(name, "down"), air(name, "up"), buffer(name, "up")), box);
    }), ues.length > MOST_UES ? h("p", {}, `and ${ues.length - MOST_UES} more`) : null);
  }

  /** A strip for packets, and beside a queue how many wait. */
  #strip(track: string, left: boolean, queue: string | null): HTMLElement[] {
    const element = h("span", { class: `strip${queue ? " queue" : ""}` });
    const live = queue ? h("span", { class: "live" }) : null;
    this.#strips.set(track, { element, left, queue, live, box: new DOMRect() });
    return live ? [live, element] : [element];
  }

  /** The windows of a sender. */
  #gauge(direction: string, ue: string | null): HTMLElement {
    const [cwnd, inFlight, said] = [h("span", { class: "cwnd" }), h("span", { class: "in-flight" }), h("span", { class: "live" })];
    const element = h("span", { class: "gauge", hidden: true }, h("span", { class: "bars" }, cwnd, inFlight), said);
    this.#gauges.push({ direction, ue, element, cwnd, inFlight, said });
    return element;
  }

  #end(title: string, direction: string, ue: string | null): HTMLElement {
    return h("div", { class: "box end" }, h("strong", {}, title), this.#gauge(direction, ue));
  }

  #box(id: string, title: string, said: string, more: HTMLElement[]): HTMLElement {
    const inner = [h("strong", {}, title), said ? h("span", { class: "detail" }, said) : null, ...more];
    const { onBox } = this;
    if (!onBox) return h("div", { class: "box" }, ...inner);
    return h("button", { type: "button", class: "box", "data-section": id, click: () => onBox(id) }, ...inner);
  }
}

/** The colour of each kind of packet. */
const COLOURS: Record<string, string> = { data: "c0", ack: "c7", retransmission: "c1", syn: "c0", fin: "c0" };

const SAID: Record<UeState, string> = {
  asleep: "asleep", waiting: "waits for a grant", sending: "sending", receiving: "receiving", awake: "awake",
};

/** What a UE does: slot by slot where the radio was followed, otherwise in the sample interval. */
export function stateOf({ moments, flights, time }: Scene, ue: string): { state: UeState; said: string } | null {
  const log = flights?.log;
  const within = moments.ue(ue, time);
  const exact = log ? slotState(log, ue, time, moments) : null;
  if (exact) return { state: exact, said: SAID[exact] };
  if (!within) return null;
  const { state, awake } = within;
  return { state, said: awake > 0 && awake < 1 ? `${SAID[state]} (awake ${digits(100 * awake)} %)` : SAID[state] };
}

function slotState(log: RadioLog, ue: string, time: number, moments: Moments): UeState | null {
  const blocks = (log.blocks.get(ue) ?? []).filter((one) => one.from_s <= time && time < one.until_s);
  if (blocks.length > 0) return blocks.some((one) => one.up) ? "sending" : "receiving";
  if (/sleep/.test(last(log.drx.get(ue), time) ?? "")) return "asleep";
  if (/idle|inactive/.test(last(log.rrc.get(ue), time) ?? "")) return "asleep";
  const [asked, granted] = [log.asked, log.granted].map((one) => {
    const times = one.get(ue) ?? [];
    return times[after(times, time) - 1] ?? -Infinity;
  });
  if (asked! > granted! && moments.waiting(`radio.${ue}.up`, time) > 0) return "waiting";
  return "awake";
}

function last(changes: Changes | undefined, time: number): string | undefined {
  return changes?.states[after(changes.times, time) - 1];
}

function cellOf(parsed: Parsed): string {
  const cell = table(table(parsed.values["radio"])["cell"]);
  return [String(cell["access"] ?? "").toUpperCase(), cell["bandwidth_mhz"] && `${String(cell["bandwidth_mhz"])} MHz`].filter(Boolean).join(", ");
}

/** Of a UE: that it is one, and how well it hears. */
function quality(parsed: Parsed, index: number): string {
  const sinr = at(parsed.values, ["radio", "ue", index, "channel", "sinr_db"]);
  return typeof sinr === "number" ? `UE, ${digits(sinr)} dB` : "UE";
}

const SHOWN: [key: string, unit: string][] = [
  ["rate_mbps", "Mb/s"],
  ["queue_packets", "packets"],
  ["queue_bytes", "bytes"],
  ["aqm", ""],
  ["delay_ms", "ms"],
  ["interval_ms", "ms"],
  ["timeout_s", "s"],
  ["mtu_bytes", "bytes"],
  ["probability", "%"],
  ["file", ""],
];

/** What matters most of a stage, in a few words. */
function detail(stage: Value): string {
  const keys = table(stage);
  const said = SHOWN.flatMap(([key, unit]) => {
    const value = keys[key];
    if (value === undefined || value === "drop-tail") return [];
    if (key === "probability") return [`${digits(100 * Number(value))} %`];
    return [`${typeof value === "number" ? digits(value) : String(value)} ${unit}`.trim()];
  });
  return (keys["enabled"] === false ? ["off", ...said] : said).slice(0, 3).join(", ");
}

/** One time in words, for everybody and for who does not see the path. */
export function described(scene: Scene): string {
  const { parsed, moments, flow, time } = scene;
  const queues = moments.queues.map((link) => ({ link, packets: moments.waiting(link, time), delay: moments.delay(link, time) }))
    .filter(({ packets }) => packets > 0).sort((one, other) => other.packets - one.packets).slice(0, 2)
    .map(({ link, packets, delay }) => `${digits(packets)} ${packets === 1 ? "packet waits" : "packets wait"} at ${link}${delay > 0 ? ` (${waited(delay)})` : ""}`);
  const windows = moments.windows(flow, time);
  const said = windows && `${flow} has ${digits(windows.inFlight)} segments in flight, cwnd ${digits(windows.cwnd)}`;
  const ues = (parsed.ues ?? []).slice(0, MOST_UES).flatMap((name) => {
    const state = stateOf(scene, name);
    return state ? [`${name}: ${state.said}`] : [];
  });
  const all = [queues.length ? queues.join(", ") : "nothing waits in a queue", said, ues.join(", ")].filter(Boolean);
  return `At ${time.toFixed(3)} s, ${all.join("; ")}.`;
}

function waited(ms: number): string {
  return ms >= 1000 ? `${digits(ms / 1000)} s` : `${digits(ms)} ms`;
}
