// The store holds the page's state and the last runs. Panels change it and are notified of changes;
// they do not know each other.

import type { Keys, Section } from "./keys";
import type { Explanation, Given, Parsed, Problem, Shipped, Summary } from "./protocol";
import { RADIO_FIGURES, type Tables } from "./series";
import { keyOf, toFragment, withSet, type Figure, type State } from "./state";

/** Changes that follow each other sooner are one change: the shadow stays what was there before. */
export const ONE_CHANGE_MS = 1500;
const SAVED_AFTER_MS = 200;
/** While time passes, numbers change this often: nobody reads faster, and text is what costs a phone most. */
const NUMBERS_MS = 100;

/** A completed run. */
export interface Shown {
  /** What was run. */
  given: Given;
  parsed: Parsed;
  summary: Summary;
  tables: Tables;
  wall_ms: number;
  /** The keys that can be changed in the run's scenario, computed on first use. */
  sections?: Section[];
}

/** What is known about the causes of the run without tried advice. */
export interface Causes {
  /** Null: they are being sought, or nobody has sought them. */
  found: Explanation | null;
  /** The number of runs so far; null: no search is in progress. */
  runs: number | null;
  /** Why there is no result: stopped, not begun, or an error. */
  without: string | null;
}

/** Events for panels, which receive them in the order of their subscriptions. */
interface Events {
  /** The whole state was replaced. */
  replaced: [];
  /** The run of a replaced state has started. */
  begun: [];
  /** The scenario changed: it must be run, and results of the former scenario are out of date. */
  changed: [];
  /** The text was edited. */
  edited: [];
  /** The user started or stopped trying advice. */
  tried: [];
  /** A run is complete. Panels with much to draw first let the page respond. */
  shown: [run: Shown];
  /** All requested runs are done, and the last one is shown. */
  settled: [];
  /** Problems of the scenario, or the message of another failure. */
  problems: [problems: Problem[], text: string];
  /** The displayed time range changed. */
  zoom: [];
  /** The time changed that the path and all charts show. Numbers are due ten times a second while it passes, otherwise always. */
  time: [numbers: boolean];
  /** Time started or stopped to pass. */
  playing: [];
  /** More is known about the causes. */
  causes: [];
  /** Packets of a run were followed. */
  followed: [];
  /** All computations must stop. */
  stop: [];
  /** Scroll to the controls of a part of the scenario. */
  reveal: [id: string];
  /** Show the scenario's text. */
  write: [];
}

type Listener<K extends keyof Events> = (...values: Events[K]) => unknown;

export class Store {
  /** The last run, and the earlier run that charts show behind it. */
  shown: Shown | undefined;
  shadow: Shown | undefined;
  causes: Causes = { found: null, runs: null, without: null };
  playing = false;
  /** How many seconds of the run pass in one second. */
  speed = 1;
  readonly #listeners: { [K in keyof Events]?: Listener<K>[] } = {};
  #changed = { key: "", at: -Infinity };
  #numbers = -Infinity;
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

  /** Call the listeners of an event at once, one after the other. */
  emit<K extends keyof Events>(event: K, ...values: Events[K]): void {
    for (const listener of this.#listeners[event] ?? []) void listener(...values);
  }

  /** Show a run: its curves at once, and the other panels in separate tasks. */
  async show(run: Shown): Promise<void> {
    this.shown = run;
    for (const listener of this.#listeners.shown ?? []) await listener(run);
  }

  // --- Queries

  get text(): string {
    const { text, shipped } = this.state;
    return text ?? this.shipped.find((one) => one.name === shipped)?.text ?? "";
  }

  /** The sender whose windows are shown: the one in the state, or the first. */
  get flow(): string | null {
    const senders = this.senders;
    return (senders.find((id) => id === this.state.flow) ?? senders[0]) ?? null;
  }

  get senders(): string[] {
    return (this.shown?.parsed.flows ?? []).filter((flow) => flow.congestion !== null).map((flow) => flow.id);
  }

  /** The radio figure that is shown: the one in the state, or the first. */
  get radio(): string {
    return (RADIO_FIGURES.find(([name]) => name === this.state.radio) ?? RADIO_FIGURES[0]!)[0];
  }

  /** The keys that can be changed in a run's scenario. */
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

  /** Whether the page has the path: all do except figures of a chart. */
  get hasPath(): boolean {
    return this.figure === null || this.figure.chart === "path";
  }

  /** Length of the shown run in seconds. */
  get duration(): number {
    return this.shown?.summary.duration_s ?? 0;
  }

  /** The time that is shown, in seconds; unless one was chosen, the middle of the run. */
  get time(): number {
    return Math.min(this.state.time ?? this.duration / 2, this.duration);
  }

  // --- Changes

  /** Show another time of the run. While time passes, the address stays as it is. */
  seek(time: number): void {
    this.state.time = Math.min(this.duration, Math.max(0, time));
    if (!this.playing) this.save();
    const now = performance.now();
    const numbers = !this.playing || now - this.#numbers >= NUMBERS_MS;
    if (numbers) this.#numbers = now;
    this.emit("time", numbers);
  }

  /** Show the time that somebody points at, unless time passes. */
  point(time: number): void {
    if (!this.playing) this.seek(time);
  }

  play(playing: boolean): void {
    if (playing === this.playing) return;
    this.playing = playing;
    if (!playing) this.save();
    this.emit("playing");
    this.emit("time", true);
  }

  learn(causes: Partial<Causes>): void {
    this.causes = { ...this.causes, ...causes };
    this.emit("causes");
  }

  /** Replace the whole state, and forget earlier runs. */
  replace(state: State): void {
    this.state = state;
    this.shown = this.shadow = undefined;
    this.#changed = { key: "", at: -Infinity };
    this.emit("replaced");
    this.#change();
    this.emit("begun");
  }

  /** Change values of the state that do not affect the run. */
  note(values: Partial<State>): void {
    Object.assign(this.state, values);
    this.save();
  }

  zoom(zoom: State["zoom"]): void {
    this.note({ zoom });
    this.emit("zoom");
  }

  /** Set a key by a control. */
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

  /** Try the settings of some advice, in addition to earlier changes. */
  try(tried: string[]): void {
    this.keep();
    this.shadow = this.shown;
    this.state.tried = tried;
    this.#changed = { key: "", at: -Infinity };
    this.#change();
    this.emit("tried");
  }

  /** Keep tried advice as a normal change. */
  keep(): void {
    for (const set of this.state.tried) this.state.sets = withSet(this.state.sets, set);
    this.state.tried = [];
    this.emit("tried");
    this.save();
  }

  /** Undo tried advice. */
  back(): void {
    this.state.tried = [];
    this.emit("tried");
    this.#change();
  }

  /** Put the state into the address, once it stops changing. */
  save(): void {
    if (!this.linked) return;
    clearTimeout(this.#saved);
    this.#saved = setTimeout(() => history.replaceState(null, "", toFragment(this.state)), SAVED_AFTER_MS);
  }

  #change(): void {
    this.emit("changed");
    this.save();
  }

  /** The displayed run becomes the shadow, unless the same key changed just before. */
  #former(key: string): void {
    const now = performance.now();
    if (key !== this.#changed.key || now - this.#changed.at > ONE_CHANGE_MS) this.shadow = this.shown;
    this.#changed = { key, at: now };
  }
}
