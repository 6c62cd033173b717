// Runs the current scenario, and tracks whether a computation is in progress.

import { byId, fill, h, say } from "./dom";
import { agreed } from "./expensive";
import { ExpensiveError, Lab, ScenarioError, StoppedError } from "./lab";
import { digits } from "./numbers";
import type { Given, Parsed, Run } from "./protocol";
import { tablesOf } from "./series";
import type { Shown, Store } from "./store";

/** A run that would take more than these asks first. */
export const MOST_EVENTS = 20_000_000;
export const MOST_MS = 15_000;
/** A newer run replaces a run that has taken longer than this. */
const PATIENCE_MS = 250;

export class Runs {
  #running = false;
  #wanted = false;
  #began = 0;
  /** Number of computations beside the run. */
  #jobs = 0;
  #allowed = { events: MOST_EVENTS, ms: MOST_MS };

  constructor(
    readonly store: Store,
    readonly lab: Lab,
  ) {
    store.on("replaced", () => void (this.#allowed = { events: MOST_EVENTS, ms: MOST_MS }));
    store.on("changed", () => this.#run());
    store.on("stop", () => {
      this.#wanted = false;
      this.lab.stop();
    });
    byId("stop").addEventListener("click", () => store.emit("stop"));
  }

  get running(): boolean {
    return this.#running;
  }

  /** Wait until no run is in progress. */
  async idle(): Promise<void> {
    while (this.#running) await new Promise((done) => setTimeout(done, 20));
  }

  /** Show the stop button during a computation. */
  async during(work: Promise<void>): Promise<void> {
    this.#jobs++;
    byId("stop").hidden = false;
    try {
      await work;
    } finally {
      this.#jobs--;
      byId("stop").hidden = this.#jobs === 0 && !this.#running;
    }
  }

  /** Compute something beside the run and show its progress in `place`. With `kept`, only the first element of `place` is replaced. */
  async beside(place: HTMLElement, saying: string, work: (onProgress: (value: number) => void) => Promise<void>, kept = false): Promise<void> {
    const said = h("p", { role: "status" }, `${saying} …`);
    const former = kept ? place.firstElementChild : null;
    if (former) former.replaceWith(said);
    else fill(place, said);
    try {
      await this.during(work((value) => (said.textContent = `${saying}: ${digits(value)} …`)));
    } catch (error) {
      if (!said.isConnected) return;
      const stopped = error instanceof StoppedError;
      fill(place, h("p", { class: stopped ? "help" : "wrong" }, stopped ? "Stopped." : textOf(error)));
    }
  }

  /** Show why a run failed, and ask whether to go on with an expensive run. */
  async failed(error: unknown): Promise<void> {
    // The charts still show the previous run, if there was one.
    if (!(error instanceof StoppedError && this.#wanted)) document.body.classList.add(this.store.shown ? "stale" : "nothing");
    if (error instanceof StoppedError) {
      if (!this.#wanted) say("Stopped.");
    } else if (error instanceof ScenarioError) {
      this.store.emit("problems", error.problems, error.message);
      say("The scenario cannot be run.");
    } else if (error instanceof ExpensiveError) {
      if (await agreed(error)) {
        this.#allowed = { events: 2 * error.events, ms: Infinity };
        this.#wanted = true;
      } else say("Not run.");
    } else {
      this.store.emit("problems", [], textOf(error));
      say("The run failed.");
    }
  }

  /** Run the scenario, and run it again if it changed meanwhile. */
  #run(): void {
    this.#wanted = true;
    if (this.#running) {
      if (performance.now() - this.#began > PATIENCE_MS) this.lab.stop();
      return;
    }
    this.#running = true;
    void (async () => {
      let done = false;
      while (this.#wanted) {
        this.#wanted = false;
        this.#began = performance.now();
        done = await this.#once();
      }
      this.#running = false;
      byId("stop").hidden = this.#jobs === 0;
      if (done) this.store.emit("settled");
    })();
  }

  /** Run once; false if the run failed or was stopped. */
  async #once(): Promise<boolean> {
    const { store } = this;
    try {
      const { tried } = store.state;
      // Tried advice is compared with the scenario without it, also if a link opened both.
      if (tried.length > 0 && !store.shadow) store.shadow = await this.#simulated(store.given([]));
      const shown = await this.#simulated(store.given(tried));
      document.body.classList.remove("stale", "nothing");
      store.emit("problems", [], "");
      await store.show(shown);
      const { duration_s, events } = shown.summary;
      say(`${digits(duration_s)} s simulated in ${digits(shown.wall_ms)} ms, ${digits(events)} events.`);
      return true;
    } catch (error) {
      await this.failed(error);
      return false;
    }
  }

  async #simulated(given: Given): Promise<Shown> {
    const parsed = (await this.lab.ask<Parsed>({ op: "parse", ...given })).ok;
    const limits = {
      mostEvents: this.#allowed.events,
      most_ms: this.#allowed.ms,
      duration_s: parsed.duration_s,
      onProgress: (time: number) => {
        byId("stop").hidden = false;
        say(`Simulating: ${digits(time)} of ${digits(parsed.duration_s)} s.`);
      },
    };
    const run = await this.lab.ask<Run>({ op: "simulate", ...this.store.seeded(), ...given }, limits);
    const { summary, tables } = run.ok;
    return { given, parsed, summary, tables: tablesOf(tables, run.tables), wall_ms: run.wall_ms };
  }
}

/** The message of an error. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
