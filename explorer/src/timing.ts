// Where each packet is at any time. It is known when a packet was sent, was at the base station and
// arrived. Between them it crosses stages: fixed delays take their time, and what remains is waiting in
// queues, divided between them by their mean delay then.

import type { Table } from "apache-arrow";
import { at, list, table } from "./keys";
import type { Moments } from "./moments";
import type { Packet, Packets, Parsed } from "./protocol";

/** One part of the way: a stage, a buffer, or the radio link itself. */
interface Leg {
  /** Name of the part: `down.0`, `buffer.UE.down`, `air.UE.down`. */
  track: string;
  fixed_s: number;
  /** The link whose queue is here. */
  queue: string | null;
}

/** One packet. */
export interface Flight {
  packet: Packet;
  /** When it has arrived, or is last seen. */
  end_s: number;
  lost: boolean;
  /** The parts of its way, and when it leaves each. */
  tracks: string[];
  leaves_s: Float64Array;
}

/** What the radio did in a short time. */
export interface RadioLog {
  drx: Map<string, Changes>;
  rrc: Map<string, Changes>;
  blocks: Map<string, { from_s: number; until_s: number; up: boolean }[]>;
  /** Times of scheduling requests and buffer status reports, and of grants, by UE. */
  asked: Map<string, number[]>;
  granted: Map<string, number[]>;
  /** Length of a slot. */
  slot_s: number | null;
}

/** States in the order of time. */
export interface Changes {
  times: number[];
  states: string[];
}

/** The packets of a stretch of time, in the order in which they were sent. */
export interface Flights {
  all: Flight[];
  sent_s: Float64Array;
  /** The longest time that one is on its way. */
  longest_s: number;
  /** One packet in this many is there. */
  every: number;
  from_s: number;
  to_s: number;
  log: RadioLog | null;
  /** When something happens to a packet, in order. */
  events_s: Float64Array;
}

export function flightsOf(
  found: Packets,
  log: Table | undefined,
  parsed: Parsed,
  moments: Moments,
  [from_s, to_s]: [number, number],
): Flights {
  const last = lastArrived(found.packets);
  const legs = new Map<string, { wire: Leg[]; radio: Leg[] }>();
  const shortest = shortestRadio(found.packets);
  const way = (packet: Packet) => {
    const ue = ueOf(parsed, packet.flow) ?? "";
    const key = `${packet.down} ${ue}`;
    let known = legs.get(key);
    if (!known) legs.set(key, (known = legsOf(parsed, moments, packet.down, ue, shortest[packet.down ? "down" : "up"])));
    return known;
  };
  const all = found.packets.map((packet) => flightOf(packet, way(packet), moments, last[packet.down ? "down" : "up"]));
  const events = all.flatMap(({ packet, end_s }) =>
    [packet.sent_s, packet.base_s ?? NaN, end_s].filter((time) => time >= from_s && time <= to_s));
  return {
    all,
    sent_s: Float64Array.from(all, ({ packet }) => packet.sent_s),
    longest_s: all.reduce((most, { packet, end_s }) => Math.max(most, end_s - packet.sent_s), 0),
    every: found.every,
    from_s,
    to_s,
    log: log ? logOf(log) : null,
    events_s: Float64Array.from(new Set(events)).sort(),
  };
}

/** The UE of a flow, by its place among those that run: the scenario may list others. */
export function ueOf(parsed: Parsed, flow: number): string | undefined {
  const said = at(parsed.values, ["flow", parsed.flows[flow]?.index ?? flow, "ue"]);
  return typeof said === "string" ? said : parsed.ues?.[0];
}

/** The packet that was sent last of those that arrived: what was sent later may be on its way when the run ends. */
interface Last {
  sent_s: number;
  took_s: number;
}

function lastArrived(packets: Packet[]): { down: Last; up: Last } {
  const found = { down: { sent_s: 0, took_s: 0 }, up: { sent_s: 0, took_s: 0 } };
  for (const { down, sent_s, arrived_s } of packets) {
    if (arrived_s !== null && sent_s >= found[down ? "down" : "up"].sent_s) found[down ? "down" : "up"] = { sent_s, took_s: arrived_s - sent_s };
  }
  return found;
}

/** The least time on the radio in each direction: the way without waiting. */
function shortestRadio(packets: Packet[]): { down: number; up: number } {
  const least = { down: Infinity, up: Infinity };
  for (const { down, sent_s, base_s, arrived_s } of packets) {
    if (base_s === null || arrived_s === null) continue;
    const key = down ? "down" : "up";
    least[key] = Math.min(least[key], down ? arrived_s - base_s : base_s - sent_s);
  }
  return least;
}

/** The parts of a way, in the order in which packets meet them. */
function legsOf(parsed: Parsed, moments: Moments, down: boolean, ue: string, air_s: number): { wire: Leg[]; radio: Leg[] } {
  const direction = down ? "down" : "up";
  const wire = list(at(parsed.values, ["path", direction])).map((stage, index): Leg => {
    const track = `${direction}.${index}`;
    const delay_ms = table(stage)["enabled"] === false ? 0 : Number(table(stage)["delay_ms"] ?? 0);
    return { track, fixed_s: delay_ms / 1000 || 0, queue: moments.queues.find((link) => link.startsWith(`${track}.`)) ?? null };
  });
  if (parsed.ues === null) return { wire, radio: [] };
  const link = `radio.${ue}.${direction}`;
  const buffer: Leg = { track: `buffer.${ue}.${direction}`, fixed_s: 0, queue: link };
  const air: Leg = { track: `air.${ue}.${direction}`, fixed_s: Number.isFinite(air_s) ? air_s : 0, queue: null };
  return { wire, radio: [buffer, air] };
}

function flightOf(packet: Packet, { wire, radio }: { wire: Leg[]; radio: Leg[] }, moments: Moments, last: Last): Flight {
  const { sent_s, base_s, arrived_s, down } = packet;
  const parts: Leg[][] = radio.length === 0 ? [wire] : down ? [wire, radio] : [radio, wire];
  const times = radio.length === 0 ? [sent_s, arrived_s] : [sent_s, base_s, arrived_s];
  const [tracks, leaves_s]: [string[], number[]] = [[], []];
  let [end_s, lost] = [sent_s, false];
  for (const [index, legs] of parts.entries()) {
    const [from, to] = [times[index]!, times[index + 1] ?? null];
    if (to === null) {
      // It was dropped, or the run ended while it was on its way.
      const reached = sent_s < last.sent_s ? untilDropped(legs, moments) : null;
      lost = reached !== null;
      cross(reached ?? legs, from, lost ? null : Math.max(from, sent_s + last.took_s), moments, tracks, leaves_s);
      end_s = leaves_s[leaves_s.length - 1] ?? from;
      break;
    }
    cross(legs, from, to, moments, tracks, leaves_s);
    end_s = to;
  }
  return { packet, end_s, lost, tracks, leaves_s: Float64Array.from(leaves_s) };
}

/** The parts up to the one that drops packets; null where none does. */
function untilDropped(legs: Leg[], moments: Moments): Leg[] | null {
  const place = moments.drops.find((drop) => legs.some((leg) => drops(drop, leg)));
  return place === undefined ? null : legs.slice(0, legs.findIndex((leg) => drops(place, leg)) + 1);
}

function drops(place: string, leg: Leg): boolean {
  return place.startsWith(`${leg.track}.`) || place === leg.queue;
}

/** When a packet that goes in at `from` and out at `to` leaves each part. Without `to`, queues take no time. */
function cross(legs: Leg[], from: number, to: number | null, moments: Moments, tracks: string[], leaves_s: number[]): void {
  const fixed = legs.reduce((sum, leg) => sum + leg.fixed_s, 0);
  const whole = to === null ? fixed : to - from;
  const waits = legs.some((leg) => leg.queue !== null) ? Math.max(0, whole - fixed) : 0;
  const delays = legs.map((leg) => (leg.queue === null ? 0 : moments.delay(leg.queue, from) + 1e-6));
  const sum = delays.reduce((all, one) => all + one, 0);
  // Jitter and small differences: fixed parts take what there is.
  const stretch = fixed > 0 ? (whole - waits) / fixed : 0;
  let time = from;
  for (const [index, leg] of legs.entries()) {
    time += leg.fixed_s * stretch + (sum > 0 ? (waits * delays[index]!) / sum : 0);
    if (fixed === 0 && sum === 0) time = from + (whole * (index + 1)) / legs.length;
    tracks.push(leg.track);
    leaves_s.push(time);
  }
}

function logOf(log: Table): RadioLog {
  const [time, until, event, ue, direction, state] = ["time_ns", "until_ns", "event", "ue", "direction", "state"].map((name) => log.getChild(name));
  const found: RadioLog = { drx: new Map(), rrc: new Map(), blocks: new Map(), asked: new Map(), granted: new Map(), slot_s: null };
  const push = <T>(map: Map<string, T[]>, key: string, value: T) => {
    const known = map.get(key);
    if (known) known.push(value);
    else map.set(key, [value]);
  };
  for (let row = 0; row < log.numRows; row++) {
    const [name, kind, from_s] = [String(ue?.get(row)), String(event?.get(row)), Number(time?.get(row)) / 1e9];
    if (kind === "drx" || kind === "rrc") {
      const changes = found[kind].get(name) ?? { times: [], states: [] };
      changes.times.push(from_s);
      changes.states.push(String(state?.get(row)));
      found[kind].set(name, changes);
    } else if (kind === "sr" || kind === "bsr" || kind === "preamble") push(found.asked, name, from_s);
    else if (kind === "grant") push(found.granted, name, from_s);
    else if (kind === "block") {
      const until_s = Number(until?.get(row)) / 1e9;
      found.slot_s ??= until_s - from_s;
      push(found.blocks, name, { from_s, until_s, up: direction?.get(row) === "up" });
    }
  }
  return found;
}

/** The first place whose value is larger than `value`, in sorted values. */
export function after(values: ArrayLike<number>, value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
