// Shows what limits the run, and the effect of advice that the user tries.

import { byId, fill, h } from "../dom";
import { showDifferences, showFindings } from "../findings";
import { Lab, type Source } from "../lab";
import type { Explanation, Row } from "../protocol";
import type { Runs } from "../runs";
import type { Store } from "../store";

const COMPARED_SEEDS = 3;

export class CausesPanel {
  readonly #lab: Lab;
  readonly #findings = byId("findings");

  constructor(readonly store: Store, readonly runs: Runs, source: Source) {
    this.#lab = new Lab(source);
    byId("explain").addEventListener("click", () => void this.#explain());
    store.on("changed", () => {
      fill(this.#findings);
      this.#lab.stop();
    });
    store.on("stop", () => this.#lab.stop());
    store.on("tried", () => this.#showTried());
    store.on("begun", () => this.#showTried());
  }

  /** Start a worker before the user asks for findings. */
  warm(): Promise<void> {
    return this.#lab.warm();
  }

  async #explain(): Promise<void> {
    const { store } = this;
    await this.runs.beside(this.#findings, "Running without each possible cause", async (onProgress) => {
      const request = { op: "explain" as const, budget: "quick" as const, ...store.seeded(), ...store.given() };
      const { ok } = await this.#lab.ask<Explanation>(request, { onProgress });
      showFindings(this.#findings, ok, ({ set }) => this.#try(set ?? []));
    });
  }

  /** Try advice, and keep the findings, because they are about the run without it. */
  #try(set: string[]): void {
    const kept = [...this.#findings.childNodes];
    this.store.try(set);
    this.#findings.replaceChildren(...kept);
  }

  #showTried(): void {
    const { store } = this;
    const { tried } = store.state;
    if (tried.length === 0) return fill(byId("trying"));
    fill(byId("trying"), h("p", {}, "Tried: ", ...tried.map((set) => h("code", {}, set)), " ",
      h("button", { type: "button", id: "keep", click: () => store.keep() }, "Keep it"), " ",
      h("button", { type: "button", id: "back", click: () => store.back() }, "Back")), h("div", { id: "compared" }));
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
      const { ok } = await this.#lab.ask<Row[]>(request, { onProgress });
      showDifferences(place, ok, seeds.length);
    });
  }
}
