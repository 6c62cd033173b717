// Shows a control for each key of the scenario, and the changes so far.

import { complaints, Controls } from "../controls";
import { byId, fill, h, rest } from "../dom";
import type { Section } from "../keys";
import type { Store } from "../store";

export class KeysPanel {
  readonly #controls: Controls;

  constructor(readonly store: Store) {
    this.#controls = new Controls(byId("controls"), (set) => store.set(set));
    store.on("changed", () => this.#showChanges());
    store.on("tried", () => this.#showChanges());
    store.on("reveal", (id) => this.#controls.reveal(id));
    store.on("problems", (problems) => this.#controls.complain(complaints(problems)));
    store.on("shown", async (run) => {
      const sections = store.sections(run);
      await rest();
      this.#controls.show(store.figure ? only(sections, store.figure.keys) : sections);
    });
  }

  #showChanges(): void {
    fill(byId("changes"), ...this.store.state.sets.map((set) => h("li", {}, h("code", {}, set),
      h("button", { type: "button", "aria-label": `Undo ${set}`, click: () => this.store.unset(set) }, "×"))));
  }
}

/** These keys alone, in one section. */
function only(sections: Section[], paths: string[]): Section[] {
  const keys = sections.flatMap((section) => section.keys).filter((key) => paths.includes(key.path));
  return [{ id: "figure", title: "Change it", help: "", keys: keys.map((key) => ({ ...key, name: key.path.replace(/^.*\.\d+\./, ""), given: true })) }];
}
