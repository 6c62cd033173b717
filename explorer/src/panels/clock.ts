// Lets time pass, stand still, or go by one packet or slot; and shows which time it is.

import { byId, write } from "../dom";
import type { Following } from "../flights";
import { digits } from "../numbers";
import type { Store } from "../store";
import { after } from "../timing";

/** "The whole run": in so many seconds. */
const WHOLE_S = 20;
/** Where motion is not wanted, time goes in steps of this length. */
const STILL_MS = 1000;
/** A page that was in the background does not catch up. */
const LONGEST_FRAME_MS = 100;
/** Reading the packets of a stretch takes a phone about as long as one picture, which is not to be lost often. */
const LEAST_STRETCH_MS = 2000;
const STEPS = 1000;
/** Every packet is followed once time has stood still for so long. */
const REST_MS = 400;

export class ClockPanel {
  readonly #play = byId<HTMLButtonElement>("play");
  readonly #speed = byId<HTMLSelectElement>("speed");
  readonly #slider = byId<HTMLInputElement>("time");
  readonly #said = byId<HTMLOutputElement>("time-said");
  readonly #unit = byId<HTMLSelectElement>("step-by");
  readonly #still = matchMedia("(prefers-reduced-motion: reduce)");
  #last = 0;
  #frame = 0;
  #rest: ReturnType<typeof setTimeout> | undefined;
  /** A step that waits for the packets. */
  #pending: 1 | -1 | null = null;
  #visible = true;
  /** Time passes by itself when a page opens, until somebody touches it. */
  #begun = false;

  constructor(readonly store: Store, readonly following: Following) {
    this.#listen();
    store.on("shown", ({ parsed }) => {
      byId("step-slot").hidden = parsed.ues === null;
      if (parsed.ues === null && this.#unit.value === "slot") this.#unit.value = "packet";
      this.#setSpeed();
      this.#show();
    });
    store.on("settled", () => {
      if (!store.hasPath) return;
      for (const run of [store.shown, store.shadow]) if (run) following.whole(run);
      this.#closer();
    });
    store.on("time", (numbers) => {
      if (numbers) this.#show();
      if (!store.playing) this.#closer();
    });
    store.on("playing", () => {
      this.#play.textContent = store.playing ? "Pause" : "Play";
      if (store.playing) this.#tick();
      else this.#closer();
    });
    store.on("followed", () => this.#followed());
    store.on("replaced", () => {
      store.play(false);
      this.#begun = store.state.time !== null;
    });
    for (const event of ["stop", "reveal"] as const) store.on(event, () => store.play(false));
  }

  #listen(): void {
    const { store } = this;
    this.#play.addEventListener("click", () => {
      this.#begun = true;
      // At the end, from the beginning.
      if (!store.playing && store.time >= store.duration) store.seek(0);
      store.play(!store.playing);
    });
    for (const button of document.querySelectorAll<HTMLElement>(".time-step")) {
      button.addEventListener("click", () => this.#step(button.dataset["step"] === "back" ? -1 : 1));
    }
    this.#speed.addEventListener("change", () => this.#setSpeed());
    this.#slider.addEventListener("input", () => {
      this.#hold();
      store.seek((Number(this.#slider.value) / STEPS) * store.duration);
    });
    // Nobody sees what is outside of the window.
    new IntersectionObserver(([entry]) => {
      this.#visible = entry!.isIntersecting;
      if (this.#visible && store.playing) this.#tick();
    }).observe(byId("path-panel"));
  }

  /** Time stands still, because somebody chooses it. */
  #hold(): void {
    this.#begun = true;
    this.#pending = null;
    this.store.play(false);
  }

  #setSpeed(): void {
    const { store } = this;
    store.speed = Number(this.#speed.value) || store.duration / WHOLE_S;
  }

  #show(): void {
    const { time, duration, playing } = this.store;
    // Packets follow each other within microseconds.
    const said = `${time.toFixed(playing ? decimals(duration) : 6)} s of ${digits(duration)} s`;
    if (document.activeElement !== this.#slider || this.store.playing) this.#slider.value = String(Math.round((STEPS * time) / (duration || 1)));
    this.#slider.setAttribute("aria-valuetext", said);
    write(this.#said, said);
  }

  /** Packets of a run are there: time may begin, and a step be made. */
  #followed(): void {
    const { store } = this;
    const pending = this.#pending;
    this.#pending = null;
    if (pending !== null) this.#step(pending, false);
    if (this.#begun || this.#still.matches || !store.shown) return;
    this.#begun = true;
    store.state.time = 0;
    store.play(true);
  }

  #tick(): void {
    cancelAnimationFrame(this.#frame);
    this.#last = performance.now();
    const frame = (now: number) => {
      const { store } = this;
      if (!store.playing || !this.#visible) return;
      const passed = now - this.#last;
      if (!this.#still.matches || passed >= STILL_MS) {
        this.#last = now;
        const least = this.#still.matches ? STILL_MS : LONGEST_FRAME_MS;
        store.seek(store.time + (Math.min(Math.max(0, passed), least) / 1000) * store.speed);
        this.#ahead();
        if (store.time >= store.duration) store.play(false);
      }
      this.#frame = requestAnimationFrame(frame);
    };
    this.#frame = requestAnimationFrame(frame);
  }

  /** While time passes slowly, follow every packet, before the time comes. */
  #ahead(): void {
    const { store, following } = this;
    const run = store.shown;
    if (!run) return;
    const near = following.near(run, store.time);
    // A stretch has to last longer than it takes to follow it. If it is over soon, a sample is enough.
    const lasts_ms = (1000 * following.stretch(run, store.time)) / store.speed;
    if (lasts_ms < Math.max(LEAST_STRETCH_MS, 2 * run.wall_ms)) return;
    if (!near) following.closer(run, store.time);
    else if (near.to_s < store.duration) following.ahead(run, store.time);
  }

  /** Time stands still: follow every packet around it. */
  #closer(): void {
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => {
      const { store, following } = this;
      if (store.playing || !store.hasPath) return;
      for (const run of [store.shadow, store.shown]) if (run) following.closer(run, store.time);
    }, REST_MS);
  }

  /** Go to the next or the former packet event or slot; `waits`: once the packets have been followed. */
  #step(way: 1 | -1, waits = true): void {
    const { store, following } = this;
    const run = store.shown;
    if (!run) return;
    this.#hold();
    const near = following.near(run, store.time);
    const to = near && (this.#unit.value === "slot" ? slot(near.log?.slot_s ?? null, store.time, way) : event(near.events_s, store.time, way));
    if (to !== null && to !== undefined) return store.seek(to);
    // No packet does anything in the stretch that is known: to its end, and follow the next.
    if (near) store.seek(way > 0 ? near.to_s + EDGE_S : Math.max(0, near.from_s - EDGE_S));
    if (waits && store.time > 0 && store.time < store.duration) this.#pending = way;
    following.closer(run, store.time);
  }
}

/** Two times closer than this are one. */
const EDGE_S = 1e-9;

function event(times: Float64Array, time: number, way: 1 | -1): number | null {
  const next = after(times, time + (way > 0 ? EDGE_S : -EDGE_S));
  return (way > 0 ? times[next] : times[next - (times[next - 1] === time ? 2 : 1)]) ?? null;
}

function slot(slot_s: number | null, time: number, way: 1 | -1): number | null {
  if (slot_s === null) return null;
  const number = way > 0 ? Math.floor(time / slot_s + 1e-6) + 1 : Math.ceil(time / slot_s - 1e-6) - 1;
  return number < 0 ? null : number * slot_s;
}

/** Digits after the point by which a thousandth of the run can be told. */
function decimals(duration: number): number {
  return Math.max(3, 3 - Math.floor(Math.log10(duration || 1)));
}
