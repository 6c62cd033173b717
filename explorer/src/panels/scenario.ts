// Chooses the scenario (shipped, from a published study, or a text) and makes a link to it.

import { byId, fill, h, say } from "../dom";
import { studies, type Studies } from "../start";
import { toFragment } from "../state";
import type { Store } from "../store";

/** Before the id of a study's figure, where a shipped scenario has its name. */
const FIGURE = "figure:";

export class ScenarioPanel {
  readonly #choice = byId<HTMLSelectElement>("scenario");
  #studies: Studies = { texts: {}, figures: [] };

  constructor(readonly store: Store) {
    fill(this.#choice, h("option", { value: "" }, "Your own text"),
      h("optgroup", { label: "Shipped scenarios" },
        ...store.shipped.map(({ name, title }) => h("option", { value: name }, `${name}: ${title}`))));
    if (!store.figure) void this.#offerStudies();
    this.#choice.addEventListener("change", () => this.#choose(this.#choice.value));
    byId("share").addEventListener("click", () => void this.#share());
    store.on("replaced", () => this.#show());
    store.on("edited", () => (this.#choice.value = ""));
  }

  async #offerStudies(): Promise<void> {
    this.#studies = await studies();
    const options = this.#studies.figures.map(({ id }) => h("option", { value: `${FIGURE}${id}` }, id));
    if (options.length > 0) this.#choice.append(h("optgroup", { label: "Figures of published studies" }, ...options));
    this.#show();
  }

  #choose(name: string): void {
    const { state, text } = this.store;
    const figure = this.#studies.figures.find(({ id }) => `${FIGURE}${id}` === name);
    const given = { sets: [], tried: [], zoom: null, seed: null, sweep: null, flow: null, packets: null, ue: null };
    if (!name) this.store.emit("write");
    if (figure) {
      const { file, sets } = figure;
      this.store.replace({ ...state, ...given, shipped: null, text: this.#studies.texts[file] ?? "", name: file, sets });
    } else if (name) this.store.replace({ ...state, ...given, shipped: name, text: null });
    else this.store.replace({ ...state, shipped: null, text, name: "scenario.toml" });
  }

  #show(): void {
    const { shipped, text, sets } = this.store.state;
    const same = this.#studies.figures.find(
      (one) => text === this.#studies.texts[one.file] && one.sets.every((set, at) => set === sets[at]),
    );
    this.#choice.value = shipped ?? (same ? `${FIGURE}${same.id}` : "");
  }

  async #share(): Promise<void> {
    history.replaceState(null, "", toFragment(this.store.state));
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is in the clipboard and holds the full state of this page.");
    } catch {
      say("The address of this page is the link and holds its full state.");
    }
  }
}
