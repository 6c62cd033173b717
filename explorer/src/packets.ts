// Packets between server and UE: time goes down, each line is a packet on its way. On the UE's side
// stand what its radio did: scheduling requests, buffer reports, grants, blocks and their repetitions.

import { fill, h, s } from "./dom";
import { digits } from "./numbers";
import type { Packets } from "./protocol";
import { tablesOf } from "./series";

const WIDTH = 760;
const [SERVER, BASE, UE] = [90, 520, 640];
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

export function showPackets(place: HTMLElement, found: Packets, bytes: Uint8Array, [from, to]: [number, number]): void {
  const radio = radioRows(found, bytes, from, to);
  const height = 640;
  const y = (time: number) => 40 + ((time - from) / (to - from)) * (height - 60);
  const packets = found.packets.map((one) => {
    const arrived = one.arrived_s;
    const ends = one.down ? [SERVER, UE] : [UE, SERVER];
    const end = arrived === null ? [(ends[0]! + ends[1]!) / 2, y(one.sent_s) + 12] : [ends[1]!, y(arrived)];
    const said = `${found.flows[one.flow] ?? ""} ${one.kind} ${one.sequence}, ${one.bytes} bytes: sent at ` +
      `${one.sent_s.toFixed(4)} s, ${arrived === null ? "lost or under way" : `arrived after ${digits((arrived - one.sent_s) * 1000)} ms`}`;
    return s("g", { class: `packet ${one.kind}${arrived === null ? " lost" : ""}` },
      s("title", {}, said),
      s("line", { x1: ends[0]!, y1: y(one.sent_s), x2: end[0]!, y2: end[1]! }),
      arrived === null ? s("text", { x: end[0]!, y: end[1]! + 4 }, "×") : null);
  });
  const events = radio.map((one) => {
    const up = one.direction !== "down";
    const at = y(one.time_s);
    const low = Math.min(y(one.until_s ?? one.time_s), height - 20);
    const [x1, x2] = one.event === "grant" || !up ? [BASE, UE] : [UE, BASE];
    const again = (one.transmission ?? 1) > 1;
    const words = [one.ue, one.event.replaceAll("_", " "), one.direction, one.bytes !== null && `${one.bytes} bytes`,
      one.prbs !== null && `${one.prbs} PRBs`, one.mcs !== null && `MCS ${one.mcs}`,
      again && `transmission ${one.transmission}`, one.received === false && "not received"];
    return s("g", { class: `radio-event ${one.event}${again ? " again" : ""}${one.received === false ? " lost" : ""}` },
      s("title", {}, `${one.time_s.toFixed(4)} s: ${words.filter(Boolean).join(", ")}`),
      s("line", { x1: x1 + (x1 < x2 ? 2 : -2), y1: at, x2: x2 + (x1 < x2 ? -2 : 2), y2: Math.max(low, at + 2) }));
  });
  const rail = (x: number, name: string) =>
    s("g", { class: "rail" }, s("line", { x1: x, y1: 36, x2: x, y2: height - 16 }), s("text", { x, y: 24, "text-anchor": "middle" }, name));
  const ticks = Array.from({ length: 9 }, (_, step) => from + ((to - from) * step) / 8);
  const counts = new Map<string, number>();
  for (const { kind } of found.packets) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  for (const { event } of radio) counts.set(event, (counts.get(event) ?? 0) + 1);
  const listed = [...counts].map(([kind, count]) => `${count} × ${kind.replaceAll("_", " ")}`).join(", ");
  const said = `${found.packets.length} packets are sent between ${digits(from)} s and ${digits(to)} s: ${listed || "none"}.`;
  fill(place,
    h("p", { id: "packets-said" }, said, found.more > 0 ? ` ${found.more} more are left out: choose a shorter time.` : null),
    h("ul", { class: "legend" }, ...["data", "retransmission", "ack", "request", ...(radio.length ? ["sr", "bsr", "grant", "block", "block again"] : [])]
      .map((kind) => h("li", {}, h("span", { class: `key line ${kind}` }), NAMES[kind] ?? kind))),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Packets as lines" },
      s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "packets", role: "img", "aria-label": said },
        rail(SERVER, "server"), radio.length ? rail(BASE, "base station") : null, rail(UE, "UE"),
        ...ticks.map((time) => s("text", { class: "tick", x: SERVER - 10, y: y(time) + 4, "text-anchor": "end" }, `${time.toFixed(3)} s`)),
        ...packets, ...events)));
}

const NAMES: Record<string, string> = {
  sr: "scheduling request", bsr: "buffer status report", "block again": "HARQ repetition", request: "ping or datagram",
};

const DRAWN = new Set(["sr", "bsr", "grant", "block", "block_lost", "preamble", "random_access"]);

function radioRows(found: Packets, bytes: Uint8Array, from: number, to: number): RadioRow[] {
  const table = tablesOf(found.tables, bytes).get("radio_log");
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
