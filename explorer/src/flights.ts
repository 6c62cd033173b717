// Follows the packets of runs: a sample of the whole run, and every packet of a short time.

import { StoppedError, type Lab } from "./lab";
import { Moments } from "./moments";
import type { Packets } from "./protocol";
import { MOST_MS } from "./runs";
import { tablesOf } from "./series";
import type { Shown, Store } from "./store";
import { after, flightsOf, type Flights } from "./timing";

/** Packets of a whole run: as many as a phone draws and searches within a frame. */
const MOST_SAMPLED = 6000;
/** Every packet of a short time, those that wait all the while included. */
const MOST_NEAR = 20_000;
/** The short time has about this many packets. */
const NEAR = 1000;
const LONGEST_NEAR_S = 1;
const SHORTEST_NEAR_S = 0.002;

/** A run, and the time from which every packet is to be followed; null: a sample of the whole run. */
interface Wanted {
  run: Shown;
  time: number | null;
  next?: boolean;
}

interface Followed {
  moments: Moments;
  whole: Flights | null;
  near: Flights | null;
  /** The stretch after that. */
  next: Flights | null;
}

export class Following {
  readonly #runs = new WeakMap<Shown, Followed>();
  #busy = false;
  /** What is to be followed next, the most urgent first. */
  #wanted: Wanted[] = [];

  constructor(readonly store: Store, readonly lab: Lab) {
    for (const event of ["changed", "stop", "replaced"] as const) {
      store.on(event, () => {
        this.#wanted = [];
        this.lab.stop();
      });
    }
  }

  moments(run: Shown): Moments {
    return this.#of(run).moments;
  }

  /** The best that is known about the packets at a time: every packet, or a sample of the run's. */
  at(run: Shown, time: number): Flights | null {
    return this.near(run, time) ?? this.#of(run).whole;
  }

  /** Every packet around a time, if they were followed. */
  near(run: Shown, time: number): Flights | null {
    const known = this.#of(run);
    const holds = (one: Flights | null) => one !== null && time >= one.from_s && time <= one.to_s;
    if (!holds(known.near) && holds(known.next)) [known.near, known.next] = [known.next, null];
    if (holds(known.near)) return known.near;
    const { whole } = known;
    return whole?.every === 1 && run.parsed.ues === null ? whole : null;
  }

  /** How long a stretch of time has every packet followed at once, in seconds. */
  stretch(run: Shown, time: number): number {
    const { whole } = this.#of(run);
    if (!whole || whole.all.length === 0) return LONGEST_NEAR_S;
    // The packets of the fiftieth part of the run around this time.
    const part = run.summary.duration_s / 50;
    const count = (after(whole.sent_s, time + part / 2) - after(whole.sent_s, time - part / 2)) * whole.every;
    return Math.min(LONGEST_NEAR_S, Math.max(SHORTEST_NEAR_S, (NEAR * part) / Math.max(1, count)));
  }

  /** Whether packets are being followed. */
  get busy(): boolean {
    return this.#busy;
  }

  /** Follow a sample of a run's packets, unless the run is one that is asked for first. */
  whole(run: Shown): void {
    if (this.#of(run).whole || run.wall_ms > MOST_MS) return;
    this.#wanted.push({ run, time: null });
    void this.#work();
  }

  /** Follow every packet from a time on. */
  closer(run: Shown, time: number): void {
    if (this.near(run, time) || run.wall_ms > MOST_MS) return;
    this.#wanted = [{ run, time }, ...this.#wanted.filter((one) => one.time === null || one.run !== run)];
    void this.#work();
  }

  /** Follow the packets after those of this time, before they are needed. */
  ahead(run: Shown, time: number): void {
    const { near, next } = this.#of(run);
    if (!near || this.#busy || next || time < (near.from_s + near.to_s) / 2) return;
    this.#wanted.unshift({ run, time: near.to_s, next: true });
    void this.#work();
  }

  #of(run: Shown): Followed {
    let known = this.#runs.get(run);
    if (!known) this.#runs.set(run, (known = { moments: new Moments(run.parsed, run.tables), whole: null, near: null, next: null }));
    return known;
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    try {
      for (let next = this.#wanted.shift(); next; next = this.#wanted.shift()) {
        await this.#follow(next);
        this.store.emit("followed");
      }
    } catch (error) {
      // The path shows its queues and windows without packets.
      if (!(error instanceof StoppedError)) this.#wanted = [];
    } finally {
      this.#busy = false;
    }
    if (this.#wanted.length > 0) void this.#work();
  }

  async #follow({ run, time, next = false }: Wanted): Promise<void> {
    const known = this.#of(run);
    const { duration_s, seed } = run.summary;
    const span = time === null ? duration_s : this.stretch(run, time);
    // A little earlier is there, too, so that a step back needs no other run.
    const from_s = time === null ? 0 : next ? time : Math.max(0, time - span / 4);
    const to_s = time === null ? duration_s : from_s + span;
    const most = time === null ? MOST_SAMPLED : MOST_NEAR;
    const request = { op: "packets" as const, ...run.given, seed, from_s, to_s, most, sampled: time === null, in_flight: time !== null };
    const { ok, tables } = await this.lab.ask<Packets>(request);
    const log = tablesOf(ok.tables, tables).get("radio_log");
    // What did not fit is not known: the window ends before it.
    const last = ok.more > 0 ? ok.packets[ok.packets.length - 1]!.sent_s : to_s;
    const flights = flightsOf(ok, log, run.parsed, known.moments, [from_s, last]);
    if (time === null) known.whole = flights;
    else if (next) known.next = flights;
    else known.near = flights;
  }
}
