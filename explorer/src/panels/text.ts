// Shows the scenario's text in an editor, and the scenario's problems.

import { byId, fill, h } from "../dom";
import type { Editor } from "../editor";
import type { Problem } from "../protocol";
import type { Store } from "../store";

/** A file of its own: it is larger than the rest of the page, and not always wanted. */
const EDITOR = "./editor.js";
const TYPED_MS = 300;

export class TextPanel {
  readonly #panel = byId<HTMLDetailsElement>("text-panel");
  #editor: Editor | undefined;
  #wrong: Problem[] = [];

  constructor(readonly store: Store) {
    this.#panel.addEventListener("toggle", () => void this.#open());
    store.on("write", () => (this.#panel.open = true));
    store.on("replaced", () => this.#editor?.show(store.text));
    store.on("problems", (problems, text) => this.#problems(problems, text));
  }

  /** Problems of the scenario, with their places in the text. */
  #problems(problems: Problem[], text: string): void {
    this.#wrong = problems;
    this.#editor?.mark(problems);
    const go = (one: Problem) => () => void this.#open(true).then(() => this.#editor?.go(one.line ?? 1, one.column ?? 1));
    const items = problems.map((one) => h("li", {},
      one.line === null ? h("code", {}, one.set ?? "")
        : h("button", { type: "button", class: "place", click: go(one) }, `line ${one.line}, column ${one.column}`),
      ` ${one.message}`, one.help ? h("span", { class: "help" }, ` ${one.help}`) : null));
    fill(byId("problems"), problems.length ? h("ul", {}, ...items) : text ? h("p", {}, text) : null);
    if (problems.some((one) => one.line !== null)) void this.#open(true);
  }

  /** Open the editor, which is loaded when it is first wanted. */
  async #open(force = false): Promise<void> {
    if (force) this.#panel.open = true;
    if (!this.#panel.open || this.#panel.hidden || this.#editor) return;
    const { Editor } = (await import(EDITOR)) as typeof import("../editor");
    if (this.#editor) return;
    let typed: ReturnType<typeof setTimeout> | undefined;
    this.#editor = new Editor(byId("editor"), this.store.text, this.store.keys, (text) => {
      clearTimeout(typed);
      typed = setTimeout(() => this.store.edit(text), TYPED_MS);
    });
    this.#editor.mark(this.#wrong);
  }
}
