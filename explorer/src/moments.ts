// What a run's tables say at any time: how full queues are, how large windows are, what a UE does.

import { at, list, table } from "./keys";
import type { Parsed, Value } from "./protocol";
import { rowsBy, type Group, type Tables } from "./series";

/** One quantity over time; a value is that of the interval that ends then. */
interface Curve {
  times: Float64Array;
  values: (number | null)[];
}

/** A queue of a link or of the radio. */
interface Queue {
  packets: Curve;
  /** What is limited: packets or bytes. */
  load: Curve;
  /** The limit of the load, or the largest load of the run if there is no limit. */
  most: number;
  delay_ms: Curve;
  dropped: Curve;
}

/** The windows of a sender. */
export interface Windows {
  cwnd: number;
  inFlight: number;
  receive: number | null;
  /** The largest of them at any time of the run. */
  most: number;
}

/** What a UE does. */
export type UeState = "asleep" | "waiting" | "sending" | "receiving" | "awake";

interface Sender {
  cwnd: Curve;
  inFlight: Curve;
  receive: Curve;
  most: number;
}

interface UeRows {
  awake: Curve;
  used: Curve;
  grants: Curve;
  packets: Curve;
}

export class Moments {
  readonly #queues = new Map<string, Queue>();
  readonly #senders = new Map<string, Sender>();
  readonly #ues = new Map<string, UeRows>();
  /** Where packets were dropped, the most frequent place first. */
  readonly drops: string[];

  constructor(readonly parsed: Parsed, tables: Tables) {
    for (const group of rowsBy(tables.get("links"), ["link"])) this.#queues.set(group.name, queueOf(parsed, group));
    for (const group of rowsBy(tables.get("samples"), ["flow"])) {
      const [cwnd, inFlight] = [curve(group, "cwnd_segments"), curve(group, "inflight_segments")];
      if (cwnd.values.every((value) => value === null)) continue;
      const most = Math.max(1, largest(cwnd), largest(inFlight));
      this.#senders.set(group.name, { cwnd, inFlight, receive: curve(group, "receive_window_segments"), most });
    }
    for (const group of rowsBy(tables.get("radio"), ["ue", "direction"])) {
      this.#ues.set(group.name, {
        awake: curve(group, "awake"), used: curve(group, "used_bytes"),
        grants: curve(group, "grants"), packets: curve(group, "queue_packets"),
      });
    }
    const places = new Map<string, number>();
    for (const group of rowsBy(tables.get("events"), ["kind", "link"])) {
      if (!group.name.startsWith("drop.")) continue;
      const count = group.values("packets").reduce<number>((sum, value) => sum + (value ?? 0), 0);
      places.set(group.name.slice("drop.".length), count);
    }
    this.drops = [...places].sort((one, other) => other[1] - one[1]).map(([place]) => place);
  }

  /** Links and buffers by name. */
  get queues(): string[] {
    return [...this.#queues.keys()];
  }

  /** Packets that wait. */
  waiting(link: string, time: number): number {
    const queue = this.#queues.get(link);
    return queue ? Math.round(between(queue.packets, time)) : 0;
  }

  /** How full a queue is, from 0 to 1. */
  filled(link: string, time: number): number {
    const queue = this.#queues.get(link);
    return queue ? Math.min(1, between(queue.load, time) / queue.most) : 0;
  }

  /** Mean waiting time of the packets that leave, in ms. */
  delay(link: string, time: number): number {
    return valueAt(this.#queues.get(link)?.delay_ms, time) ?? 0;
  }

  /** Packets dropped in the sample interval. */
  dropped(link: string, time: number): number {
    return valueAt(this.#queues.get(link)?.dropped, time) ?? 0;
  }

  windows(flow: string | null, time: number): Windows | null {
    const sender = flow === null ? undefined : this.#senders.get(flow);
    const cwnd = valueAt(sender?.cwnd, time);
    if (!sender || cwnd === null) return null;
    return { cwnd, inFlight: valueAt(sender.inFlight, time) ?? 0, receive: valueAt(sender.receive, time), most: sender.most };
  }

  /** What a UE does in the sample interval; null where it takes no part. */
  ue(name: string, time: number): { state: UeState; awake: number } | null {
    const [up, down] = [this.#ues.get(`${name}.up`), this.#ues.get(`${name}.down`)];
    const awake = valueAt(down?.awake, time) ?? valueAt(up?.awake, time);
    if (awake === null) return null;
    const some = (curve: Curve | undefined) => (valueAt(curve, time) ?? 0) > 0;
    const state: UeState = awake === 0 ? "asleep"
      : some(up?.packets) && !some(up?.grants) && !some(up?.used) ? "waiting"
      : (valueAt(up?.used, time) ?? 0) > (valueAt(down?.used, time) ?? 0) ? "sending"
      : some(down?.used) ? "receiving" : "awake";
    return { state, awake };
  }
}

function curve(group: Group, column: string): Curve {
  return { times: group.times, values: group.values(column) };
}

function largest({ values }: Curve): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

function queueOf(parsed: Parsed, group: Group): Queue {
  const keys = bufferKeys(parsed, group.name);
  const [inPackets, inBytes] = [keys["packets"], keys["bytes"]];
  const packets = curve(group, "queue_packets");
  const load = typeof inPackets !== "number" && typeof inBytes === "number" ? curve(group, "queue_bytes") : packets;
  const limit = load === packets ? inPackets : inBytes;
  const most = typeof limit === "number" ? limit : Math.max(1, largest(load));
  return { packets, load, most, delay_ms: curve(group, "queue_delay_ms"), dropped: curve(group, "dropped_packets") };
}

/** The limits of the queue of `down.0.link` or `radio.UE.down`. */
function bufferKeys(parsed: Parsed, link: string): Record<string, Value | undefined> {
  const wire = /^(down|up)\.(\d+)\./.exec(link);
  if (wire) {
    const stage = table(at(parsed.values, ["path", wire[1]!, Number(wire[2])]));
    return { packets: stage["queue_packets"], bytes: stage["queue_bytes"] };
  }
  const [, name, direction] = /^radio\.(.*)\.(down|up)$/.exec(link) ?? [];
  const ues = list(at(parsed.values, ["radio", "ue"]));
  const ue = table(ues.find((one) => table(one)["name"] === name) ?? ues[0]);
  const rlc = table(ue[direction === "up" ? "rlc_up" : "rlc"]);
  return { packets: rlc["buffer_packets"], bytes: rlc["buffer_bytes"] };
}

/** The place of the interval that a time is in: the first that ends then or later. */
function placeOf(times: Float64Array, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < time - 1e-9) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value of the interval that a time is in; null outside. */
export function valueAt(curve: Curve | undefined, time: number): number | null {
  if (!curve) return null;
  return curve.values[placeOf(curve.times, time)] ?? null;
}

/** A value at the ends of intervals, between them in proportion. */
function between({ times, values }: Curve, time: number): number {
  const place = placeOf(times, time);
  if (place >= times.length) return values[times.length - 1] ?? 0;
  const after = values[place] ?? 0;
  const [begin, before] = place === 0 ? [0, 0] : [times[place - 1]!, values[place - 1] ?? 0];
  const part = (time - begin) / (times[place]! - begin);
  return before + (after - before) * Math.min(1, Math.max(0, part));
}
