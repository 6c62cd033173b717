// Seeks what limits the run, without being asked, and shows the effect of advice that the user tries.

import { byId, fill, h } from "../dom";
import { showDifferences, showFindings } from "../findings";
import { Lab, StoppedError, type Source } from "../lab";
import type { Explanation, Row } from "../protocol";
import { textOf, type Runs } from "../runs";
import { ONE_CHANGE_MS, type Store } from "../store";

const COMPARED_SEEDS = 3;
/** A search is some tens of runs: with longer ones, a processor would be busy for more than a minute. */
const MOST_UNASKED_MS = 2000;

export class CausesPanel {
  readonly #lab: Lab;
  /** Compares with advice, while the search may go on. */
  readonly #comparing: Lab;
  readonly #findings = byId("findings");
  readonly #button = byId("explain");
  /** The scenario that the causes are of. */
  #of = "";
  #soon: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly store: Store, readonly runs: Runs, source: Source) {
    this.#lab = new Lab(source);
    this.#comparing = new Lab(source);
    this.#button.addEventListener("click", () => void this.#search());
    store.on("replaced", () => this.#forget());
    store.on("changed", () => {
      // Advice that is tried does not change the run that it is about.
      if (this.#scenario() !== this.#of) this.#forget();
    });
    store.on("changed", () => this.#comparing.stop());
    store.on("stop", () => {
      clearTimeout(this.#soon);
      this.#lab.stop();
      this.#comparing.stop();
    });
    store.on("settled", () => this.#unasked());
    store.on("tried", () => {
      this.#showTried();
      if (this.#scenario() !== this.#of) {
        this.#forget();
        this.#unasked();
      }
    });
    store.on("begun", () => this.#showTried());
  }

  /** Start a worker before the user asks for findings. */
  warm(): Promise<void> {
    return this.#lab.warm();
  }

  /** The scenario without the advice that is being tried. */
  #scenario(): string {
    return JSON.stringify([this.store.given([]), this.store.seeded()]);
  }

  #forget(): void {
    clearTimeout(this.#soon);
    this.#of = "";
    this.#lab.stop();
    fill(this.#findings);
    this.store.learn({ found: null, runs: null, without: null });
  }

  /** Search once nothing has changed for a while; at once if nothing has changed yet. */
  #unasked(): void {
    const { store } = this;
    if (store.figure || !store.shown || this.#scenario() === this.#of) return;
    clearTimeout(this.#soon);
    if (store.shown.wall_ms > MOST_UNASKED_MS) {
      store.learn({ without: "A run takes long here: “Find out” below seeks what limits it." });
      return;
    }
    this.#soon = setTimeout(() => void this.#search(), store.shadow ? ONE_CHANGE_MS : 0);
  }

  async #search(): Promise<void> {
    const { store } = this;
    clearTimeout(this.#soon);
    const of = (this.#of = this.#scenario());
    store.learn({ found: null, runs: 0, without: null });
    const said = h("p", {});
    fill(this.#findings, said, h("p", {}, h("button", { type: "button", id: "stop-search", click: () => this.#lab.stop() }, "Stop the search")));
    this.#button.hidden = true;
    try {
      const request = { op: "explain" as const, budget: "quick" as const, ...store.seeded(), ...store.given([]) };
      const onProgress = (runs: number) => {
        if (this.#of !== of) return;
        said.textContent = `Running without each possible cause: ${runs} …`;
        store.learn({ runs });
      };
      const { ok } = await this.#lab.ask<Explanation>(request, { onProgress });
      if (this.#of !== of) return;
      showFindings(this.#findings, ok, ({ set }) => store.try(set ?? []));
      store.learn({ found: ok, runs: null });
    } catch (error) {
      if (this.#of !== of) return;
      const stopped = error instanceof StoppedError;
      const without = stopped ? "The search for what limits it was stopped." : textOf(error);
      fill(this.#findings, h("p", { class: stopped ? "help" : "wrong" }, without));
      store.learn({ found: null, runs: null, without });
    } finally {
      this.#button.hidden = false;
    }
  }

  #showTried(): void {
    const { store } = this;
    if (store.state.tried.length === 0) return fill(byId("trying"));
    fill(byId("trying"), h("div", { id: "compared" }));
    void this.runs.idle().then(() => this.#differences());
  }

  async #differences(): Promise<void> {
    const { store } = this;
    const { state, shown } = store;
    const place = document.getElementById("compared");
    if (!place || !shown) return;
    const first = state.seed ?? shown.parsed.seed;
    const seeds = Array.from({ length: COMPARED_SEEDS }, (_, index) => first + index);
    await this.runs.beside(place, "Comparing", async (onProgress) => {
      const request = { op: "compare" as const, variants: [state.tried], seeds, ...store.given([]) };
      const { ok } = await this.#comparing.ask<Row[]>(request, { onProgress });
      showDifferences(place, ok, seeds.length);
    });
  }
}
