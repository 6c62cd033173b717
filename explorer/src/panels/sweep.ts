// Runs the scenario with several values of one key.

import { byId, fill, h } from "../dom";
import { agreed } from "../expensive";
import type { Key } from "../keys";
import { ExpensiveError, StoppedError, type Limits, type Source } from "../lab";
import { Pool } from "../pool";
import type { Run, Summary } from "../protocol";
import { MOST_EVENTS, MOST_MS, textOf, type Runs } from "../runs";
import { withSet } from "../state";
import type { Store } from "../store";
import { showSweep, values } from "../sweep";

export class SweepPanel {
  readonly #pool: Pool;
  readonly #list = byId<HTMLSelectElement>("sweep");
  readonly #chart = byId("sweep-chart");
  /** The keys that can be swept, as the list has them. */
  #keys: Key[] = [];
  #offered = "";
  /** The key to sweep according to the link. */
  #wanted: string | null = null;

  constructor(readonly store: Store, readonly runs: Runs, source: Source) {
    this.#pool = new Pool(source);
    byId("run-sweep").addEventListener("click", () => void this.#sweep());
    store.on("replaced", () => {
      fill(this.#chart);
      this.#wanted = store.state.sweep;
    });
    store.on("changed", () => this.#forget());
    store.on("stop", () => this.#pool.stop());
    store.on("shown", (run) => this.#offer(store.sections(run).flatMap((section) => section.keys)));
    store.on("begun", () => {
      const wanted = this.#wanted;
      if (wanted) void runs.idle().then(() => {
        this.#list.value = wanted;
        return this.#sweep();
      });
    });
  }

  #offer(all: Key[]): void {
    const rank = (key: Key) => (key.given && key.path.startsWith("path") ? 0 : key.given ? 1 : 2);
    this.#keys = all.filter((key) => values(key).length > 1 && key.name !== "seed").sort((one, other) => rank(one) - rank(other));
    const paths = this.#keys.map((key) => key.path);
    const former = this.#list.value;
    if (paths.join() === this.#offered) return;
    this.#offered = paths.join();
    fill(this.#list, ...paths.map((path) => h("option", { value: path }, path)));
    if (paths.includes(former)) this.#list.value = former;
  }

  async #sweep(): Promise<void> {
    const { store } = this;
    const key = this.#keys.find((one) => one.path === this.#list.value);
    if (!key) return;
    store.note({ sweep: key.path });
    const taken = values(key);
    const points: (Summary | null)[] = taken.map(() => null);
    const given = store.given();
    const requests = taken.map((value) => ({ op: "simulate" as const, ...store.seeded(), ...given,
      sets: withSet(given.sets, `${key.path}=${JSON.stringify(value)}`) }));
    // A value may make a run longer, and each of the runs may be as expensive as one that is asked for.
    const lasts = (value: Key["value"]) => (key.path === "run.duration_s" ? Number(value) : store.shown!.summary.duration_s);
    const limits = taken.map((value) => ({ mostEvents: MOST_EVENTS, most_ms: MOST_MS, duration_s: lasts(value) }));
    const run = async (allowed: Limits[]) => {
      showSweep(this.#chart, key, points, taken);
      await this.runs.during(this.#pool.each<Run>(requests, (answer, index) => {
        points[index] = answer.ok.summary;
        showSweep(this.#chart, key, points, taken);
      }, allowed));
    };
    try {
      await run(limits).catch(async (error: unknown) => {
        if (!(error instanceof ExpensiveError)) throw error;
        this.#pool.stop();
        if (!(await agreed(error))) throw new StoppedError("not run");
        await run([]);
      });
    } catch (error) {
      if (!(error instanceof StoppedError)) fill(this.#chart, h("p", { class: "wrong" }, textOf(error)));
    }
  }

  /** Something else is shown now than what was swept. */
  #forget(): void {
    this.#pool.stop();
    if (this.#chart.hasChildNodes()) fill(this.#chart, h("p", { class: "help" }, "The scenario has changed: run the sweep again."));
    this.store.state.sweep = null;
  }
}
