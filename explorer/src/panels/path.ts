// Shows the path and what happens on it at the chosen time: of the run, and above it of the former one.

import { byId, fill, h, rest, write } from "../dom";
import type { Following } from "../flights";
import { described, PathView, type Scene } from "../path";
import type { Shown, Store } from "../store";

/** For how long, on the screen, the place of a drop is marked while time passes. */
const MARK_MS = 400;
/** For how long of the run it is marked while time stands still. */
const MARK_S = 0.02;

export class PathPanel {
  readonly #now: PathView;
  readonly #former: PathView;
  readonly #said = byId("moment");
  #drawn = false;
  /** The next frame has other numbers. */
  #numbers = false;

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
      this.#arrange(run);
    });
    store.on("time", (numbers) => {
      // While time passes, this is called in an animation frame.
      if (store.playing) this.#show(numbers);
      else this.#draw(numbers);
    });
    store.on("followed", () => this.#draw(true));
    // A screen reader hears the words when time stands still.
    store.on("playing", () => this.#said.setAttribute("aria-live", store.playing ? "off" : "polite"));
    store.on("replaced", () => (this.#former.root.hidden = true));
  }

  #arrange(run: Shown): void {
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
    this.#draw(true);
  }

  /** Draw both paths with the next frame, and write their numbers if they are due. */
  #draw(numbers = false): void {
    this.#numbers ||= numbers;
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      const due = this.#numbers;
      this.#drawn = this.#numbers = false;
      this.#show(due);
    });
  }

  #show(numbers: boolean): void {
    const { shown, shadow } = this.store;
    if (!shown) return;
    const scene = this.#scene(shown);
    this.#now.draw(scene, numbers);
    if (shadow && !this.#former.root.hidden) this.#former.draw(this.#scene(shadow), numbers);
    if (numbers) this.#speak(scene);
  }

  #scene(run: Shown): Scene {
    const { store, following } = this;
    const time = Math.min(store.time, run.summary.duration_s);
    const mark_s = store.playing ? (MARK_MS / 1000) * store.speed : MARK_S;
    return { parsed: run.parsed, moments: following.moments(run), flights: following.at(run, time), flow: store.flow, time, mark_s };
  }

  #speak(scene: Scene): void {
    const every = scene.flights?.every ?? 0;
    const sample = every > 1 ? ` Each square stands for ${every} packets.` : this.following.busy && every === 0 ? " The packets are being followed." : "";
    write(this.#said, described(scene) + sample);
  }
}
