// Packets between server and UE: time goes down, each line is a packet on its way, with the moment
// at the base station where there is one. Between base station and UE stands what the radio did:
// scheduling requests, buffer status reports, grants, blocks and their repetitions.

import type { Table } from "apache-arrow";
import { fill, h, s } from "./dom";
import { digits } from "./numbers";
import type { Packet, Packets } from "./protocol";
import { tablesOf } from "./series";

const [TOP, HEIGHT, BOTTOM] = [40, 640, 20];
const [NARROWEST, WIDEST] = [340, 900];
const MOST_ROWS = 3000;

interface RadioRow {
  time_s: number;
  until_s: number | null;
  event: string;
  direction: string | null;
  ue: string;
  transmission: number | null;
  received: boolean | null;
  bytes: number | null;
  prbs: number | null;
  mcs: number | null;
}

/** Draw the packets and what the radio did from one time to another: of one UE, or of all (null). */
export function showPackets(
  place: HTMLElement,
  found: Packets,
  bytes: Uint8Array,
  [from, to]: [number, number],
  ue: string | null,
  isOf: (flow: number) => boolean,
): void {
  const log = tablesOf(found.tables, bytes).get("radio_log");
  const radio = radioRows(log, from, to).filter((one) => ue === null || one.ue === ue);
  const shown = found.packets.filter((one) => isOf(one.flow));
  const width = Math.min(WIDEST, Math.max(NARROWEST, place.clientWidth));
  const [server, end] = [76, width - 28];
  const base = log ? server + 0.62 * (end - server) : end;
  const ends = { server, base, ue: end };
  const y = (time: number) => TOP + ((time - from) / (to - from)) * (HEIGHT - TOP - BOTTOM);
  const rail = (x: number, name: string) =>
    s("g", { class: "rail" }, s("line", { x1: x, y1: TOP - 4, x2: x, y2: HEIGHT - BOTTOM }), s("text", { x, y: 24, "text-anchor": "middle" }, name));
  const clip = s("clipPath", { id: "packets-clip" }, s("rect", { x: 0, y: TOP - 4, width, height: HEIGHT - BOTTOM - TOP + 8 }));
  const sent = counted(shown.map((one) => one.kind), PACKETS);
  const did = counted(radio.map((one) => (one.event === "block" && (one.transmission ?? 1) > 1 ? "again" : one.event)), EVENTS);
  const span = `Between ${from.toFixed(4)} s and ${to.toFixed(4)} s`;
  const said = `${span}, ${sent || "no packets"}${log ? `; on the radio, ${did || "nothing"}` : ""}.`;
  const kinds = [...new Set(shown.map((one) => CLASSES[one.kind] ?? one.kind)), ...new Set(radio.map((one) => one.event)),
    ...(radio.some((one) => (one.transmission ?? 1) > 1) ? ["again"] : [])];
  fill(place,
    h("p", { id: "packets-said" }, said, found.more > 0 ? ` ${found.more} more packets are left out: choose a shorter time.` : null),
    h("ul", { class: "legend" }, ...Object.entries(NAMES).filter(([kind]) => kinds.includes(kind))
      .map(([kind, name]) => h("li", {}, h("span", { class: `key line ${kind}` }), name)),
      shown.some(isLost) || radio.some((one) => one.received === false)
        ? h("li", {}, h("span", { class: "cross" }, "×"), "lost, not received, or under way at the end") : null),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Packets as lines" },
      s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, class: "packets", role: "img", "aria-label": said },
        s("defs", {}, clip),
        rail(server, "server"), log ? rail(base, "base station") : null, rail(end, "UE"),
        ...ticks(from, to).map(({ time, text }) => s("g", { class: "tick" },
          s("line", { x1: server - 5, y1: y(time), x2: end, y2: y(time) }),
          s("text", { x: server - 9, y: y(time) + 4, "text-anchor": "end" }, text))),
        s("g", { "clip-path": "url(#packets-clip)" },
          ...radio.map((one) => drawnEvent(one, ends, y)),
          ...shown.map((one) => drawnPacket(one, found.flows[one.flow] ?? "", log !== undefined, ends, y))))));
}

interface Ends {
  server: number;
  base: number;
  ue: number;
}

function isLost(one: Packet): boolean {
  return one.arrived_s === null;
}

function drawnPacket(one: Packet, flow: string, radio: boolean, { server, base, ue }: Ends, y: (time: number) => number): SVGElement {
  const { sent_s, base_s, arrived_s, down } = one;
  const [begin, finish] = down ? [server, ue] : [ue, server];
  const points: [x: number, y: number][] = [[begin, y(sent_s)]];
  if (base_s !== null) points.push([base, y(base_s)]);
  if (arrived_s !== null) points.push([finish, y(arrived_s)]);
  // Where it was lost is not known: somewhere after it was last seen.
  else if (base_s !== null) points.push([base + (finish - base) / 4, y(base_s) + 8]);
  else points.push([begin + ((radio ? base : finish) - begin) / 3, y(sent_s) + 12]);
  const [x, at] = points[points.length - 1]!;
  const after = (time: number) => `${digits((time - sent_s) * 1000)} ms`;
  const words = [`${flow} ${one.kind} ${one.sequence}, ${one.bytes} bytes: sent at ${sent_s.toFixed(4)} s`,
    base_s !== null && `at the base station after ${after(base_s)}`,
    arrived_s === null ? "lost or under way" : `arrived after ${after(arrived_s)}`];
  return s("g", { class: `packet ${one.kind}${isLost(one) ? " lost" : ""}` },
    s("title", {}, words.filter(Boolean).join(", ")),
    s("polyline", { points: points.map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" ") }),
    isLost(one) ? s("text", { x, y: at + 4 }, "×") : null);
}

function drawnEvent(one: RadioRow, { base, ue }: Ends, y: (time: number) => number): SVGElement {
  const [x1, x2] = one.event === "grant" || one.direction === "down" ? [base + 2, ue - 2] : [ue - 2, base + 2];
  const again = (one.transmission ?? 1) > 1 && one.event === "block";
  const words = [one.ue, one.event.replaceAll("_", " "), one.direction, one.bytes !== null && `${one.bytes} bytes`,
    one.prbs !== null && `${one.prbs} PRBs`, one.mcs !== null && `MCS ${one.mcs}`,
    again && `transmission ${one.transmission}`, one.received === false && "not received"];
  const [y1, y2] = [y(one.time_s), Math.max(y(one.until_s ?? one.time_s), y(one.time_s) + 2)];
  return s("g", { class: `radio-event ${one.event}${again ? " again" : ""}${one.received === false ? " lost" : ""}` },
    s("title", {}, `${one.time_s.toFixed(4)} s: ${words.filter(Boolean).join(", ")}`),
    s("line", { x1, y1, x2, y2 }),
    one.received === false ? s("text", { x: x2 + (x2 < x1 ? 8 : -8), y: y2 + 4 }, "×") : null);
}

/** How many of each, as a list of words. */
function counted(all: string[], names: Record<string, [one: string, many: string]>): string {
  const counts = new Map<string, number>();
  for (const kind of all) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => {
    const [one, many] = names[kind] ?? [kind, kind];
    return `${count} ${count === 1 ? one : many}`;
  }).join(", ");
}

/** Round times, six to twelve of them, with as many digits as they differ in. */
function ticks(from: number, to: number): { time: number; text: string }[] {
  const least = (to - from) / 12;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= least * 0.999)!;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(from / step - 1e-6);
  const count = Math.floor(to / step + 1e-6) - first + 1;
  return Array.from({ length: count }, (_, index) => {
    const time = (first + index) * step;
    return { time, text: `${time.toFixed(decimals)} s` };
  });
}

/** The legend's words, by class. */
const NAMES: Record<string, string> = {
  data: "data segment", retransmission: "retransmission", ack: "ACK", syn: "SYN or FIN", request: "ping or datagram",
  preamble: "random access preamble", sr: "scheduling request", bsr: "buffer status report", grant: "grant (until its PUSCH)",
  block: "block", again: "HARQ retransmission",
};
const CLASSES: Record<string, string> = { reply: "request", datagram: "request", fin: "syn" };

const PACKETS: Record<string, [string, string]> = {
  data: ["data segment", "data segments"], retransmission: ["retransmission", "retransmissions"], ack: ["ACK", "ACKs"],
  syn: ["SYN", "SYNs"], fin: ["FIN", "FINs"], request: ["request", "requests"], reply: ["reply", "replies"],
  datagram: ["datagram", "datagrams"],
};
const EVENTS: Record<string, [string, string]> = {
  sr: ["scheduling request", "scheduling requests"], bsr: ["buffer status report", "buffer status reports"],
  grant: ["grant", "grants"], block: ["block", "blocks"], again: ["HARQ repetition", "HARQ repetitions"],
  block_lost: ["lost block", "lost blocks"], preamble: ["preamble", "preambles"],
  random_access: ["end of random access", "ends of random access"],
};

const DRAWN = new Set(["sr", "bsr", "grant", "block", "block_lost", "preamble", "random_access"]);

function radioRows(table: Table | undefined, from: number, to: number): RadioRow[] {
  if (!table) return [];
  const column = (name: string) => table.getChild(name);
  const [time, until, event, direction, ue, transmission, received, size, prbs, mcs] = [
    "time_ns", "until_ns", "event", "direction", "ue", "transmission", "received", "bytes", "prbs", "mcs",
  ].map(column);
  const number = (value: unknown) => (value === null || value === undefined ? null : Number(value));
  const rows: RadioRow[] = [];
  for (let row = 0; row < table.numRows && rows.length < MOST_ROWS; row++) {
    const time_s = Number(time?.get(row)) / 1e9;
    const name = String(event?.get(row));
    if (time_s < from || time_s > to || !DRAWN.has(name)) continue;
    const end = number(until?.get(row));
    rows.push({
      time_s, until_s: end === null ? null : end / 1e9, event: name,
      direction: (direction?.get(row) as string | null) ?? null, ue: String(ue?.get(row)),
      transmission: number(transmission?.get(row)), received: (received?.get(row) as boolean | null) ?? null,
      bytes: number(size?.get(row)), prbs: number(prbs?.get(row)), mcs: number(mcs?.get(row)),
    });
  }
  return rows;
}
