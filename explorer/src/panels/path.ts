// Shows the path and what happens on it at the chosen time: of the run, and above it of the former one.

import { byId, fill, h, rest } from "../dom";
import type { Following } from "../flights";
import { described, PathView, type Scene } from "../path";
import type { Shown, Store } from "../store";

/** For how long, on the screen, the place of a drop is marked while time passes. */
const MARK_MS = 400;
/** For how long of the run it is marked while time stands still. */
const MARK_S = 0.02;
/** The words follow the time that passes this often; a screen reader hears them when it stands still. */
const WORDS_MS = 250;

export class PathPanel {
  readonly #now: PathView;
  readonly #former: PathView;
  readonly #said = byId("moment");
  #drawn = false;
  #spoken = 0;

  constructor(readonly store: Store, readonly following: Following) {
    const again = () => this.#draw();
    this.#former = new PathView("before", null, again);
    this.#now = new PathView("now", (id) => store.emit("reveal", id), again);
    this.#former.root.hidden = true;
    fill(byId("path"), this.#former.root, this.#now.root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#now.measure();
      this.#former.measure();
      this.#draw();
    });
    store.on("shown", async (run) => {
      await rest();
      this.#show(run);
    });
    store.on("time", () => this.#draw());
    store.on("followed", () => this.#draw());
    store.on("playing", () => {
      this.#said.setAttribute("aria-live", store.playing ? "off" : "polite");
      this.#draw();
    });
    store.on("replaced", () => (this.#former.root.hidden = true));
  }

  #show(run: Shown): void {
    const { parsed } = run;
    const left = parsed.programs.length > 0 ? ` Programs are not simulated: ${parsed.programs.join(", ")}.` : "";
    fill(byId("title"), parsed.title || parsed.name, left ? h("span", { class: "help" }, left) : null);
    const { shadow } = this.store;
    this.#now.show(parsed, this.following.moments(run));
    this.#former.root.hidden = !shadow;
    byId("path").classList.toggle("two", Boolean(shadow));
    if (shadow) {
      this.#former.show(shadow.parsed, this.following.moments(shadow));
      this.#former.measure();
    }
    this.#draw();
  }

  /** Draw both paths with the next frame. */
  #draw(): void {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      const { shown, shadow } = this.store;
      if (!shown) return;
      const scene = this.#scene(shown);
      this.#now.draw(scene);
      if (shadow && !this.#former.root.hidden) this.#former.draw(this.#scene(shadow));
      this.#speak(scene);
    });
  }

  #scene(run: Shown): Scene {
    const { store, following } = this;
    const time = Math.min(store.time, run.summary.duration_s);
    const mark_s = store.playing ? (MARK_MS / 1000) * store.speed : MARK_S;
    return { parsed: run.parsed, moments: following.moments(run), flights: following.at(run, time), flow: store.flow, time, mark_s };
  }

  #speak(scene: Scene): void {
    const now = performance.now();
    if (this.store.playing && now - this.#spoken < WORDS_MS) return;
    this.#spoken = now;
    const every = scene.flights?.every ?? 0;
    const sample = every > 1 ? ` Each square stands for ${every} packets.` : this.following.busy && every === 0 ? " The packets are being followed." : "";
    const text = described(scene) + sample;
    if (this.#said.textContent !== text) this.#said.textContent = text;
  }
}
