// What the page knows: its state, what runs, and what was run. Panels change it and hear of changes;
// no panel knows another.

import type { Keys, Section } from "./keys";
import type { Given, Parsed, Problem, Shipped, Summary } from "./protocol";
import { RADIO_FIGURES, type Tables } from "./series";
import { keyOf, toFragment, withSet, type Figure, type State } from "./state";

/** Changes that follow each other sooner are one change: the shadow stays what was there before. */
const ONE_CHANGE_MS = 1500;
const SAVED_AFTER_MS = 200;

/** A run that ended well. */
export interface Shown {
  parsed: Parsed;
  summary: Summary;
  tables: Tables;
  wall_ms: number;
  /** What can be changed in it, once somebody asked. */
  sections?: Section[];
}

/** What panels hear of, in the order of their subscriptions. */
interface Events {
  /** Another state is there as a whole. */
  replaced: [];
  /** The run of a state that is there as a whole has begun. */
  begun: [];
  /** Something else is to be run; what is known of the former scenario no longer holds. */
  changed: [];
  /** The text was edited. */
  edited: [];
  /** The settings of a recommendation are tried, or no longer. */
  tried: [];
  /** A run is there. Those who have much to draw wait until the page had its turn. */
  shown: [run: Shown];
  /** All runs that were wanted are done, and the last one is shown. */
  settled: [];
  /** What is wrong with the scenario, or what else failed. */
  problems: [problems: Problem[], text: string];
  /** The stretch of time that is shown. */
  zoom: [];
  /** Whoever computes is to stop. */
  stop: [];
  /** The controls of a part of the scenario are to be seen. */
  reveal: [id: string];
  /** The scenario's text is to be seen. */
  write: [];
}

type Listener<K extends keyof Events> = (...values: Events[K]) => unknown;

export class Store {
  /** The last run, and the one that is its shadow. */
  shown: Shown | undefined;
  shadow: Shown | undefined;
  readonly #listeners: { [K in keyof Events]?: Listener<K>[] } = {};
  #changed = { key: "", at: -Infinity };
  #saved: ReturnType<typeof setTimeout> | undefined;

  /** `linked`: the page's address holds its state. */
  constructor(
    public state: State,
    readonly shipped: Shipped[],
    readonly keys: Keys,
    readonly linked: boolean,
    readonly figure: Figure | null,
  ) {}

  on<K extends keyof Events>(event: K, listener: Listener<K>): void {
    const all: Listener<K>[] = (this.#listeners[event] ??= []);
    all.push(listener);
  }

  /** Those who listen hear of it at once, one after the other. */
  emit<K extends keyof Events>(event: K, ...values: Events[K]): void {
    for (const listener of this.#listeners[event] ?? []) void listener(...values);
  }

  /** Show a run: its curves at once, and what stands around them in tasks of their own. */
  async show(run: Shown): Promise<void> {
    this.shown = run;
    for (const listener of this.#listeners.shown ?? []) await listener(run);
  }

  // --- What is asked

  get text(): string {
    const { text, shipped } = this.state;
    return text ?? this.shipped.find((one) => one.name === shipped)?.text ?? "";
  }

  /** The sender whose windows are shown: the one that the state wants, or the first. */
  get flow(): string | null {
    const senders = this.senders;
    return (senders.find((id) => id === this.state.flow) ?? senders[0]) ?? null;
  }

  get senders(): string[] {
    return (this.shown?.parsed.flows ?? []).filter((flow) => flow.congestion !== null).map((flow) => flow.id);
  }

  /** The figure of the radio that is shown: the one that the state wants, or the first. */
  get radio(): string {
    return (RADIO_FIGURES.find(([name]) => name === this.state.radio) ?? RADIO_FIGURES[0]!)[0];
  }

  /** What can be changed in a run's scenario. */
  sections(run: Shown): Section[] {
    return (run.sections ??= this.keys.sections(run.parsed));
  }

  /** The scenario as the engine takes it. */
  given(tried: string[] = this.state.tried): Given {
    const { shipped, name, sets } = this.state;
    return { name: shipped ?? name, text: this.text, sets: [...sets, ...tried] };
  }

  seeded(): { seed?: number } {
    return this.state.seed === null ? {} : { seed: this.state.seed };
  }

  // --- What is changed

  /** Another state, with nothing of what was run before. */
  replace(state: State): void {
    this.state = state;
    this.shown = this.shadow = undefined;
    this.#changed = { key: "", at: -Infinity };
    this.emit("replaced");
    this.#change();
    this.emit("begun");
  }

  /** Values of the state that change no run. */
  note(values: Partial<State>): void {
    Object.assign(this.state, values);
    this.save();
  }

  zoom(zoom: State["zoom"]): void {
    this.note({ zoom });
    this.emit("zoom");
  }

  /** A control has set a key. */
  set(set: string): void {
    if (this.state.tried.length > 0) this.keep();
    this.#former(keyOf(set));
    this.state.sets = withSet(this.state.sets, set);
    this.#change();
  }

  unset(set: string): void {
    this.shadow = this.shown;
    this.state.sets = this.state.sets.filter((one) => one !== set);
    this.#change();
  }

  edit(text: string): void {
    if (text === this.text) return;
    this.#former("text");
    const { shipped, name } = this.state;
    this.state = { ...this.state, text, name: shipped === null ? name : `${shipped}.toml`, shipped: null };
    this.emit("edited");
    this.#change();
  }

  /** Try the settings of an advice, on top of the others. */
  try(tried: string[]): void {
    this.keep();
    this.shadow = this.shown;
    this.state.tried = tried;
    this.#changed = { key: "", at: -Infinity };
    this.#change();
    this.emit("tried");
  }

  /** An advice that was tried becomes a change like others. */
  keep(): void {
    for (const set of this.state.tried) this.state.sets = withSet(this.state.sets, set);
    this.state.tried = [];
    this.emit("tried");
    this.save();
  }

  /** An advice that was tried is no longer. */
  back(): void {
    this.state.tried = [];
    this.emit("tried");
    this.#change();
  }

  /** Put the state into the address, once it rests. */
  save(): void {
    if (!this.linked) return;
    clearTimeout(this.#saved);
    this.#saved = setTimeout(() => history.replaceState(null, "", toFragment(this.state)), SAVED_AFTER_MS);
  }

  #change(): void {
    this.emit("changed");
    this.save();
  }

  /** What is shown becomes the shadow, unless the same key changed just now. */
  #former(key: string): void {
    const now = performance.now();
    if (key !== this.#changed.key || now - this.#changed.at > ONE_CHANGE_MS) this.shadow = this.shown;
    this.#changed = { key, at: now };
  }
}
