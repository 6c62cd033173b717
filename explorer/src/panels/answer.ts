// Says on top what the run got, what limits it, and offers what would help.

import { causeOf, cure, verdict } from "../answer";
import { byId, fill, h } from "../dom";
import type { Finding } from "../protocol";
import type { Store } from "../store";

/** More cures than these are among the causes below. */
const MOST_CURES = 3;

export class AnswerPanel {
  readonly #cause = byId("cause-said");
  readonly #cures = byId("cures");
  readonly #tried = byId("tried");

  constructor(readonly store: Store) {
    store.on("shown", ({ summary }) => {
      fill(byId("verdict"), ...verdict(summary, store.shadow?.summary, store.flow));
    });
    for (const event of ["causes", "tried", "begun"] as const) store.on(event, () => this.#show());
    store.on("changed", () => this.#show());
    store.on("replaced", () => fill(byId("verdict")));
  }

  #show(): void {
    const { found, runs, without } = this.store.causes;
    const first = found?.findings[0];
    const cures = (found?.findings ?? []).filter(({ set }) => set !== null && set.length > 0);
    if (runs !== null) fill(this.#cause, `Looking for what limits it: ${runs} ${runs === 1 ? "run" : "runs"} without one possible cause each … `);
    else if (first) fill(this.#cause, first.set === null && first.advice === null ? "Limit: " : "First cause: ", ...causeOf(first), ". ", first.evidence);
    else fill(this.#cause, found ? "Nothing that was removed or changed would improve it." : without ?? "");
    fill(this.#cures, ...cures.slice(0, MOST_CURES).map((one) => h("li", {}, this.#chip(one))));
    this.#showTried();
  }

  #chip(finding: Finding): HTMLElement {
    const { store } = this;
    const set = finding.set ?? [];
    const pressed = store.state.tried.join("\n") === set.join("\n");
    return h("button", { type: "button", class: "chip", "aria-pressed": String(pressed), "data-cure": finding.cause,
      click: () => (pressed ? store.back() : store.try(set)) }, pressed ? "Tried: " : "Try: ", cure(finding));
  }

  #showTried(): void {
    const { store } = this;
    const { tried } = store.state;
    if (tried.length === 0) return fill(this.#tried);
    fill(this.#tried, "Tried: ", ...tried.map((set) => h("code", {}, set)), " ",
      h("button", { type: "button", id: "keep", click: () => store.keep() }, "Keep it"), " ",
      h("button", { type: "button", id: "back", click: () => store.back() }, "Back"));
  }
}
