// The application: one state, from which everything that is seen follows. A change of the state runs
// the scenario again.

import { bandsOf } from "./bands";
import { Charts, type Band } from "./charts";
import { complaints, Controls } from "./controls";
import { byId, download, fill, h } from "./dom";
import type { Editor } from "./editor";
import { agreed } from "./expensive";
import { showFigures } from "./figures";
import { showDifferences, showFindings } from "./findings";
import { at, Keys, type Key, type Schema, type Section } from "./keys";
import { ExpensiveError, Lab, ScenarioError, StoppedError, type Limits, type Source } from "./lab";
import { digits } from "./numbers";
import { showPackets } from "./packets";
import { drawPath } from "./path";
import { Pool } from "./pool";
import type { Explanation, Finding, Given, Packets, Parsed, Problem, Row, Run, Shipped, Summary } from "./protocol";
import { charts, csv, RADIO_FIGURES, tablesOf, type Chart, type Tables } from "./series";
import { studies, type Studies } from "./start";
import { fromFragment, keyOf, toFragment, withSet, type Figure, type State } from "./state";
import { showSweep, values } from "./sweep";

/** A run that would take more than these asks first. */
const MOST_EVENTS = 20_000_000;
const MOST_MS = 15_000;
/** A run that has taken longer is given up for a newer one. */
const PATIENCE_MS = 250;
/** Changes that follow each other sooner are one change: the shadow stays what was there before. */
const ONE_CHANGE_MS = 1500;
/** Before the id of a study's figure, where a shipped scenario has its name. */
const FIGURE = "figure:";
const COMPARED_SEEDS = 3;
/** A file of its own: it is larger than the rest of the page, and not always wanted. */
const EDITOR = "./editor.js";
const MOST_PACKETS = 2000;

interface Shown {
  parsed: Parsed;
  summary: Summary;
  tables: Tables;
  wall_ms: number;
  /** Its charts, for the flow and the radio's figure of `of`. */
  charts?: { of: string; all: Chart[] };
}

export class App {
  #state!: State;
  #shipped: Shipped[] = [];
  #studies: Studies = { texts: {}, figures: [] };
  #keys!: Keys;
  #sections: Section[] = [];
  readonly #lab: Lab;
  /** For findings and comparisons, which run beside. */
  readonly #side: Lab;
  /** For packets, which findings are not to stop. */
  readonly #following: Lab;
  /** For seeds. */
  readonly #pool: Pool;
  /** For sweeps, which a band of seeds is not to stop. */
  readonly #sweeps: Pool;
  readonly #controls: Controls;
  readonly #charts: Charts;
  #editor: Editor | undefined;
  #shown: Shown | undefined;
  #shadow: Shown | undefined;
  #bands = new Map<string, Band[]>();
  #running = false;
  /** The packets that are drawn: shows them for the UE that is chosen. */
  #showFollowed: (() => void) | undefined;
  /** What is done beside the run. */
  #jobs = 0;
  #wanted = false;
  #began = 0;
  #changed = { key: "", at: -Infinity };
  #allowed = { events: MOST_EVENTS, ms: MOST_MS };
  /** The sender whose windows are shown: the one that the state wants, or the first. */
  #flow: string | null = null;
  #saved: ReturnType<typeof setTimeout> | undefined;
  /** The keys that can be swept, as the list has them. */
  #offered = "";
  /** What is wrong with the scenario now. */
  #wrong: Problem[] = [];

  /** `linked`: the page's address holds its state. */
  constructor(
    source: Source,
    readonly linked: boolean,
    readonly figure: Figure | null = null,
  ) {
    this.#lab = new Lab(source);
    this.#side = new Lab(source);
    this.#following = new Lab(source);
    this.#pool = new Pool(source);
    this.#sweeps = new Pool(source);
    this.#controls = new Controls(byId("controls"), (set) => this.#set(set));
    this.#charts = new Charts(byId("charts"), (zoom) => {
      this.#state.zoom = zoom;
      this.#showZoom();
      this.#save();
    });
    this.#listen();
  }

  /** Begin with a state; of one that came by a link, what is expensive is asked for first. */
  async begin(state: State, linked: boolean): Promise<void> {
    this.#state = state;
    const [shipped, schema] = [
      await this.#lab.ask<Shipped[]>({ op: "shipped" }),
      await this.#lab.ask<Schema>({ op: "schema" }),
    ];
    this.#shipped = shipped.ok;
    this.#keys = new Keys(schema.ok);
    const list = byId("scenario");
    fill(list, h("option", { value: "" }, "Your own text"),
      h("optgroup", { label: "Shipped scenarios" },
        ...this.#shipped.map(({ name, title }) => h("option", { value: name }, `${name}: ${title}`))));
    if (!this.figure) void studies().then((found) => {
      this.#studies = found;
      const option = (id: string) => h("option", { value: `${FIGURE}${id}` }, id);
      if (found.figures.length > 0)
        list.append(h("optgroup", { label: "Figures of published studies" }, ...found.figures.map(({ id }) => option(id))));
      this.#showChoice();
    });
    if (state.shipped !== null && !this.#known(state.shipped)) {
      this.#say(`There is no shipped scenario ${state.shipped}; this is bufferbloat instead.`);
      state.shipped = "bufferbloat";
      state.sets = state.tried = [];
    }
    if (!linked) this.#save();
    await this.#side.warm();
    this.#restore();
  }

  // --- What happens on the page

  #listen(): void {
    const choice = byId<HTMLSelectElement>("scenario");
    choice.addEventListener("change", () => {
      const name = choice.value;
      const figure = this.#studies.figures.find(({ id }) => `${FIGURE}${id}` === name);
      const given = { sets: [], tried: [], zoom: null, seed: null, sweep: null, flow: null, packets: null, ue: null };
      if (figure) {
        const text = this.#studies.texts[figure.file] ?? "";
        this.#state = { ...this.#state, ...given, shipped: null, text, name: figure.file, sets: figure.sets };
      } else if (name) this.#state = { ...this.#state, ...given, shipped: name, text: null };
      else this.#state = { ...this.#state, shipped: null, text: this.#text(), name: "scenario.toml" };
      this.#shown = this.#shadow = undefined;
      if (!name) byId<HTMLDetailsElement>("text-panel").open = true;
      this.#restore();
    });
    if (this.linked) addEventListener("hashchange", () => {
      const state = fromFragment(location.hash);
      if (!state || toFragment(state) === toFragment(this.#state)) return;
      this.#state = state;
      this.#shown = this.#shadow = undefined;
      this.#restore();
    });
    byId("share").addEventListener("click", () => void this.#share());
    byId("stop").addEventListener("click", () => this.#stop());
    byId("explain").addEventListener("click", () => void this.#explain());
    const ends = [byId<HTMLInputElement>("zoom-from"), byId<HTMLInputElement>("zoom-to")] as const;
    const typed = () => {
      const [from, to] = [Number(ends[0].value), Number(ends[1].value)];
      if (ends[1].value !== "" && from >= 0 && to > from) this.#zoom([from, to]);
      else this.#showZoom();
    };
    for (const end of ends) end.addEventListener("change", typed);
    byId("whole").addEventListener("click", () => this.#zoom(null));
    const flow = byId<HTMLSelectElement>("flow");
    flow.addEventListener("change", () => {
      this.#flow = this.#state.flow = flow.value;
      this.#save();
      this.#draw();
    });
    const radio = byId<HTMLSelectElement>("radio");
    fill(radio, ...RADIO_FIGURES.map(([name, title]) => h("option", { value: name }, title)));
    radio.addEventListener("change", () => {
      this.#state.radio = radio.value;
      this.#save();
      this.#draw();
    });
    const ue = byId<HTMLSelectElement>("packets-ue");
    ue.addEventListener("change", () => {
      this.#state.ue = ue.value;
      this.#save();
      this.#showFollowed?.();
    });
    const seeds = byId<HTMLInputElement>("seeds");
    seeds.addEventListener("change", () => {
      this.#state.seeds = Math.min(20, Math.max(1, Math.round(Number(seeds.value)) || 1));
      seeds.value = String(this.#state.seeds);
      this.#save();
      void this.#band();
    });
    const downloads = byId<HTMLSelectElement>("downloads");
    downloads.addEventListener("change", () => {
      this.#download(downloads.value);
      downloads.value = "";
    });
    byId<HTMLDetailsElement>("text-panel").addEventListener("toggle", () => void this.#open());
    byId("run-sweep").addEventListener("click", () => void this.#sweep());
    byId("run-packets").addEventListener("click", () => void this.#packets());
    // On a phone the charts stay in sight while something is changed, and no longer.
    const charts = byId("charts");
    const away = ([entry]: IntersectionObserverEntry[]) => charts.classList.toggle("away", !entry!.isIntersecting);
    new IntersectionObserver(away, { rootMargin: "-264px 0px 0px 0px" }).observe(byId("keys-panel"));
    for (const button of document.querySelectorAll<HTMLElement>(".packets-step")) {
      button.addEventListener("click", () => void this.#step(button.dataset["step"] ?? ""));
    }
  }

  /** A control has set a key. */
  #set(set: string): void {
    if (this.#state.tried.length > 0) this.#keep();
    const key = keyOf(set);
    const now = performance.now();
    if (key !== this.#changed.key || now - this.#changed.at > ONE_CHANGE_MS) this.#shadow = this.#shown;
    this.#changed = { key, at: now };
    this.#state.sets = withSet(this.#state.sets, set);
    this.#change();
  }

  /** Something else is to be run: the findings are about what was. */
  #change(): void {
    fill(byId("findings"));
    this.#side.stop();
    this.#following.stop();
    this.#pool.stop();
    this.#sweeps.stop();
    this.#bands.clear();
    this.#forgetSweep();
    this.#save();
    this.#showChanges();
    this.#run();
  }

  /** Show a state as a whole. */
  #restore(): void {
    const { seeds, tried, sweep, packets } = this.#state;
    this.#showChoice();
    byId<HTMLInputElement>("seeds").value = String(seeds);
    byId<HTMLSelectElement>("radio").value = this.#radio();
    if (packets) [byId<HTMLInputElement>("packets-from").value, byId<HTMLInputElement>("packets-ms").value] = packets.map(String) as [string, string];
    fill(byId("trying"));
    fill(byId("sweep-chart"));
    fill(byId("packets"));
    this.#showFollowed = undefined;
    this.#allowed = { events: MOST_EVENTS, ms: MOST_MS };
    this.#changed = { key: "", at: -Infinity };
    this.#editor?.show(this.#text());
    this.#change();
    this.#showTried();
    void this.#idle().then(() => {
      if (tried.length > 0) void this.#differences();
      if (sweep) {
        byId<HTMLSelectElement>("sweep").value = sweep;
        void this.#sweep();
      }
    });
  }

  // --- Runs

  /** Run what is wanted, and what is wanted meanwhile after that. */
  #run(): void {
    this.#wanted = true;
    if (this.#running) {
      if (performance.now() - this.#began > PATIENCE_MS) this.#lab.stop();
      return;
    }
    this.#running = true;
    void (async () => {
      let done = false;
      while (this.#wanted) {
        this.#wanted = false;
        this.#began = performance.now();
        done = await this.#once();
      }
      this.#running = false;
      byId("stop").hidden = this.#jobs === 0;
      if (!done) return;
      if (this.#state.seeds > 1) void this.#band();
      if (this.#state.packets) void this.#packets();
    })();
  }

  /** One run; false if it came to nothing. */
  async #once(): Promise<boolean> {
    try {
      const { tried } = this.#state;
      // Beside a recommendation stands the scenario without it, also where a link brought both.
      if (tried.length > 0 && !this.#shadow) this.#shadow = await this.#simulated(this.#given([]));
      const shown = await this.#simulated(this.#given(tried));
      this.#shown = shown;
      document.body.classList.remove("stale", "nothing");
      this.#problems([], "");
      await this.#show();
      const { duration_s, events } = shown.summary;
      this.#say(`${digits(duration_s)} s simulated in ${digits(shown.wall_ms)} ms, ${digits(events)} events.`);
      return true;
    } catch (error) {
      await this.#failed(error);
      return false;
    }
  }

  async #simulated(given: Given): Promise<Shown> {
    const parsed = (await this.#lab.ask<Parsed>({ op: "parse", ...given })).ok;
    const limits = {
      mostEvents: this.#allowed.events,
      most_ms: this.#allowed.ms,
      duration_s: parsed.duration_s,
      onProgress: (time: number) => {
        byId("stop").hidden = false;
        this.#say(`Simulating: ${digits(time)} of ${digits(parsed.duration_s)} s.`);
      },
    };
    const run = await this.#lab.ask<Run>({ op: "simulate", ...this.#seeded(), ...given }, limits);
    const { summary, tables } = run.ok;
    return { parsed, summary, tables: tablesOf(tables, run.tables), wall_ms: run.wall_ms };
  }

  async #failed(error: unknown): Promise<void> {
    // What is drawn is of what ran before, if anything is.
    if (!(error instanceof StoppedError && this.#wanted)) document.body.classList.add(this.#shown ? "stale" : "nothing");
    if (error instanceof StoppedError) {
      if (!this.#wanted) this.#say("Stopped.");
    } else if (error instanceof ScenarioError) {
      this.#problems(error.problems, error.message);
      this.#say("The scenario cannot be run.");
    } else if (error instanceof ExpensiveError) {
      if (await agreed(error)) {
        this.#allowed = { events: 2 * error.events, ms: Infinity };
        this.#wanted = true;
      } else this.#say("Not run.");
    } else {
      const text = error instanceof Error ? error.message : String(error);
      this.#problems([], text);
      this.#say("The run failed.");
    }
  }

  #stop(): void {
    this.#wanted = false;
    this.#lab.stop();
    this.#side.stop();
    this.#following.stop();
    this.#pool.stop();
    this.#sweeps.stop();
  }

  /** Once the run that is under way is done. */
  async #idle(): Promise<void> {
    while (this.#running) await new Promise((done) => setTimeout(done, 20));
  }

  #text(): string {
    const { text, shipped } = this.#state;
    return text ?? this.#known(shipped ?? "")?.text ?? "";
  }

  #known(name: string): Shipped | undefined {
    return this.#shipped.find((one) => one.name === name);
  }

  #given(tried: string[] = this.#state.tried): Given {
    const { shipped, name, sets } = this.#state;
    return { name: shipped ?? name, text: this.#text(), sets: [...sets, ...tried] };
  }

  #seeded(): { seed?: number } {
    return this.#state.seed === null ? {} : { seed: this.#state.seed };
  }

  // --- What is seen

  /** Show a run: its curves at once, and what stands around them in tasks of their own. */
  async #show(): Promise<void> {
    const { parsed } = this.#shown!;
    this.#offerFlows(parsed);
    this.#draw();
    await rest();
    drawPath(byId("path"), parsed, (id) => this.#controls.reveal(id));
    this.#sections = this.#keys.sections(parsed);
    await rest();
    this.#controls.show(this.figure ? only(this.#sections, this.figure.keys) : this.#sections);
    this.#offerSweep();
    this.#offerDownloads();
    const left = parsed.programs.length > 0 ? ` Programs are not simulated: ${parsed.programs.join(", ")}.` : "";
    fill(byId("title"), parsed.title || parsed.name, h("span", { class: "help" }, left));
  }

  #offerFlows(parsed: Parsed): void {
    const senders = parsed.flows.filter((flow) => flow.congestion !== null);
    const wanted = senders.find((flow) => flow.id === this.#state.flow) ?? senders[0];
    this.#flow = wanted?.id ?? null;
    const list = byId<HTMLSelectElement>("flow");
    const names = senders.map((flow) => flow.id);
    if ([...list.options].map((one) => one.value).join() !== names.join())
      fill(list, ...names.map((name) => h("option", { value: name }, name)));
    list.value = this.#flow ?? "";
    list.disabled = senders.length < 2;
    for (const one of document.querySelectorAll<HTMLElement>(".radio-only")) one.hidden = parsed.ues === null;
    const ues = parsed.ues ?? [];
    const ue = byId<HTMLSelectElement>("packets-ue");
    fill(ue, h("option", { value: "" }, "all UEs"), ...ues.map((name) => h("option", { value: name }, name)));
    ue.value = this.#ue();
    // What is seen of a cell in a fifth of a second is only colour.
    if (!this.#state.packets) byId<HTMLInputElement>("packets-ms").value = parsed.ues ? "20" : "200";
  }

  #draw(): void {
    const shown = this.#shown;
    if (!shown) return;
    const shadow = this.#shadow;
    this.#charts.show(this.#chartsOf(shown), shadow ? this.#chartsOf(shadow) : [], shown.summary.duration_s, this.#bands);
    this.#charts.zoom(this.#state.zoom);
    this.#showZoom();
    showFigures(byId("figures"), shown.summary, shadow?.summary);
  }

  #chartsOf(shown: Shown): Chart[] {
    const radio = this.#radio();
    const of = `${this.#flow} ${radio}`;
    if (shown.charts?.of !== of)
      shown.charts = { of, all: charts(shown.tables, shown.parsed, this.#flow, radio) };
    const { all } = shown.charts;
    return this.figure ? all.filter((chart) => chart.id === this.figure?.chart) : all;
  }

  /** The UE whose packets are shown: the one that the state wants, or the sender's; "": all. */
  #ue(): string {
    const { parsed } = this.#shown!;
    const ues = parsed.ues ?? [];
    const { ue } = this.#state;
    if (ue === "" || (ue !== null && ues.includes(ue))) return ue;
    return ueOf(parsed, Math.max(0, parsed.flows.findIndex((flow) => flow.id === this.#flow))) ?? "";
  }

  /** The figure of the radio that is shown: the one that the state wants, or the first. */
  #radio(): string {
    return (RADIO_FIGURES.find(([name]) => name === this.#state.radio) ?? RADIO_FIGURES[0]!)[0];
  }

  #zoom(zoom: [number, number] | null): void {
    this.#state.zoom = zoom;
    this.#charts.zoom(zoom);
    this.#showZoom();
    this.#save();
  }

  #showZoom(): void {
    const { zoom } = this.#state;
    byId("whole").hidden = zoom === null;
    const [from, to] = zoom ?? [0, this.#shown?.summary.duration_s ?? 0];
    byId<HTMLInputElement>("zoom-from").value = String(Number(from.toFixed(3)));
    byId<HTMLInputElement>("zoom-to").value = String(Number(to.toFixed(3)));
    if (zoom) byId<HTMLInputElement>("packets-from").value = zoom[0].toFixed(3);
  }

  /** Which scenario it is: shipped, a study's, or a text. */
  #showChoice(): void {
    const { shipped, text, sets } = this.#state;
    const same = this.#studies.figures.find(
      (one) => text === this.#studies.texts[one.file] && one.sets.every((set, at) => set === sets[at]),
    );
    byId<HTMLSelectElement>("scenario").value = shipped ?? (same ? `${FIGURE}${same.id}` : "");
  }

  #showChanges(): void {
    const { sets } = this.#state;
    const remove = (set: string) => () => {
      this.#shadow = this.#shown;
      this.#state.sets = this.#state.sets.filter((one) => one !== set);
      this.#change();
    };
    fill(byId("changes"), ...sets.map((set) => h("li", {}, h("code", {}, set),
      h("button", { type: "button", "aria-label": `Undo ${set}`, click: remove(set) }, "×"))));
  }

  /** What is wrong, at the control or in the text that it is about. */
  #problems(problems: Problem[], text: string): void {
    this.#controls.complain(complaints(problems));
    this.#wrong = problems;
    this.#editor?.mark(problems);
    const inText = problems.some((one) => one.line !== null);
    const go = (one: Problem) => () => void this.#open(true).then(() => this.#editor?.go(one.line ?? 1, one.column ?? 1));
    const items = problems.map((one) => h("li", {},
      one.line === null ? h("code", {}, one.set ?? "")
        : h("button", { type: "button", class: "place", click: go(one) }, `line ${one.line}, column ${one.column}`),
      ` ${one.message}`, one.help ? h("span", { class: "help" }, ` ${one.help}`) : null));
    fill(byId("problems"), problems.length ? h("ul", {}, ...items) : text ? h("p", {}, text) : null);
    if (inText) void this.#open(true);
  }

  /** Open the editor, which is loaded when it is first wanted. */
  async #open(force = false): Promise<void> {
    const panel = byId<HTMLDetailsElement>("text-panel");
    if (force) panel.open = true;
    if (!panel.open || panel.hidden || this.#editor) return;
    const { Editor } = (await import(EDITOR)) as typeof import("./editor");
    if (this.#editor) return;
    let typed: ReturnType<typeof setTimeout> | undefined;
    this.#editor = new Editor(byId("editor"), this.#text(), this.#keys, (text) => {
      clearTimeout(typed);
      typed = setTimeout(() => this.#edited(text), 300);
    });
    this.#editor.mark(this.#wrong);
  }

  #edited(text: string): void {
    if (text === this.#text()) return;
    const now = performance.now();
    if (this.#changed.key !== "text" || now - this.#changed.at > ONE_CHANGE_MS) this.#shadow = this.#shown;
    this.#changed = { key: "text", at: now };
    const name = this.#state.shipped === null ? this.#state.name : `${this.#state.shipped}.toml`;
    this.#state = { ...this.#state, text, name, shipped: null };
    byId<HTMLSelectElement>("scenario").value = "";
    this.#change();
  }

  // --- Findings

  async #explain(): Promise<void> {
    const place = byId("findings");
    await this.#beside(place, "Running without each possible cause", async (onProgress) => {
      const request = { op: "explain" as const, budget: "quick" as const, ...this.#seeded(), ...this.#given() };
      const { ok } = await this.#side.ask<Explanation>(request, { onProgress });
      showFindings(place, ok, (finding) => this.#try(finding));
    });
  }

  #try(finding: Finding): void {
    this.#keep();
    this.#shadow = this.#shown;
    this.#state.tried = finding.set ?? [];
    this.#changed = { key: "", at: -Infinity };
    const kept = [...byId("findings").childNodes];
    this.#change();
    byId("findings").replaceChildren(...kept);
    this.#showTried();
    void this.#idle().then(() => this.#differences());
  }

  /** An advice that was tried becomes a change like others. */
  #keep(): void {
    for (const set of this.#state.tried) this.#state.sets = withSet(this.#state.sets, set);
    this.#state.tried = [];
    fill(byId("trying"));
    this.#showChanges();
    this.#save();
  }

  #showTried(): void {
    const { tried } = this.#state;
    if (tried.length === 0) return fill(byId("trying"));
    const back = () => {
      this.#state.tried = [];
      fill(byId("trying"));
      this.#change();
    };
    fill(byId("trying"), h("p", {}, "Tried: ", ...tried.map((set) => h("code", {}, set)), " ",
      h("button", { type: "button", id: "keep", click: () => this.#keep() }, "Keep it"), " ",
      h("button", { type: "button", id: "back", click: back }, "Back")), h("div", { id: "compared" }));
  }

  async #differences(): Promise<void> {
    const place = document.getElementById("compared");
    if (!place || !this.#shown) return;
    const first = this.#state.seed ?? this.#shown.parsed.seed;
    const seeds = Array.from({ length: COMPARED_SEEDS }, (_, index) => first + index);
    await this.#beside(place, "Comparing", async (onProgress) => {
      const request = { op: "compare" as const, variants: [this.#state.tried], seeds, ...this.#given([]) };
      const { ok } = await this.#side.ask<Row[]>(request, { onProgress });
      showDifferences(place, ok, seeds.length);
    });
  }

  // --- Seeds, sweeps, packets

  /** Lowest and highest values of more seeds, behind the curves of the first. */
  async #band(): Promise<void> {
    const shown = this.#shown;
    const { seeds } = this.#state;
    this.#bands.clear();
    if (!shown || seeds < 2) return this.#draw();
    const first = this.#state.seed ?? shown.parsed.seed;
    const requests = Array.from({ length: seeds - 1 }, (_, index) => ({ op: "simulate" as const, seed: first + index + 1, ...this.#given() }));
    const all = [this.#chartsOf(shown)];
    const drawn = this.#pool.each<Run>(requests, (answer) => {
      const { ok: run, tables } = answer;
      all.push(charts(tablesOf(run.tables, tables), shown.parsed, this.#flow, this.#radio()));
      this.#bands = bandsOf(all);
      this.#draw();
    });
    try {
      await this.#during(drawn);
    } catch (error) {
      if (this.#running) return;
      if (error instanceof StoppedError) this.#say("Stopped.");
      else await this.#failed(error);
    }
  }

  #offerSweep(): void {
    const list = byId<HTMLSelectElement>("sweep");
    const keys = this.#swept();
    const former = list.value;
    const paths = keys.map((key) => key.path).join();
    if (paths === this.#offered) return;
    this.#offered = paths;
    fill(list, ...keys.map((key) => h("option", { value: key.path }, key.path)));
    if (keys.some((key) => key.path === former)) list.value = former;
  }

  #swept(): Key[] {
    const rank = (key: Key) => (key.given && key.path.startsWith("path") ? 0 : key.given ? 1 : 2);
    const all = this.#sections.flatMap((section) => section.keys).filter((key) => values(key).length > 1 && key.name !== "seed");
    return all.sort((one, other) => rank(one) - rank(other));
  }

  async #sweep(): Promise<void> {
    const chosen = byId<HTMLSelectElement>("sweep").value;
    const key = this.#swept().find((one) => one.path === chosen);
    if (!key) return;
    this.#state.sweep = key.path;
    this.#save();
    const taken = values(key);
    const points: (Summary | null)[] = taken.map(() => null);
    const given = this.#given();
    const requests = taken.map((value) => ({ op: "simulate" as const, ...this.#seeded(), ...given,
      sets: withSet(given.sets, `${key.path}=${JSON.stringify(value)}`) }));
    const place = byId("sweep-chart");
    // A value may make a run longer, and each of the runs may be as expensive as one that is asked for.
    const lasts = (value: Key["value"]) => (key.path === "run.duration_s" ? Number(value) : this.#shown!.summary.duration_s);
    const limits = taken.map((value) => ({ mostEvents: MOST_EVENTS, most_ms: MOST_MS, duration_s: lasts(value) }));
    const run = async (allowed: Limits[]) => {
      showSweep(place, key, points, taken);
      await this.#during(this.#sweeps.each<Run>(requests, (answer, index) => {
        points[index] = answer.ok.summary;
        showSweep(place, key, points, taken);
      }, allowed));
    };
    try {
      await run(limits).catch(async (error: unknown) => {
        if (!(error instanceof ExpensiveError)) throw error;
        this.#sweeps.stop();
        if (!(await agreed(error))) throw new StoppedError("not run");
        await run([]);
      });
    } catch (error) {
      if (!(error instanceof StoppedError)) fill(place, h("p", { class: "wrong" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** Something else is shown now than what was swept. */
  #forgetSweep(): void {
    const place = byId("sweep-chart");
    if (place.hasChildNodes()) fill(place, h("p", { class: "help" }, "The scenario has changed: run the sweep again."));
    this.#state.sweep = null;
  }

  /** Show the packets of another time: before, after, half or twice as long. */
  #step(step: string): Promise<void> {
    const [from, lasts] = [byId<HTMLInputElement>("packets-from"), byId<HTMLInputElement>("packets-ms")];
    const [begin, ms] = [Number(from.value) || 0, Math.max(0.1, Number(lasts.value) || 200)];
    const part = { earlier: -0.5, later: 0.5, closer: 0.25, wider: -0.5 }[step] ?? 0;
    const factor = { closer: 0.5, wider: 2 }[step] ?? 1;
    from.value = String(Number(Math.max(0, begin + (part * ms) / 1000).toFixed(6)));
    lasts.value = String(Number((ms * factor).toPrecision(4)));
    return this.#packets();
  }

  async #packets(): Promise<void> {
    const from_s = Math.max(0, Number(byId<HTMLInputElement>("packets-from").value) || 0);
    const lasts = Math.max(0.1, Number(byId<HTMLInputElement>("packets-ms").value) || 200) / 1000;
    const place = byId("packets");
    this.#state.packets = [from_s, lasts * 1000];
    this.#save();
    await this.#beside(place, "Following the packets", async (onProgress) => {
      const to_s = from_s + lasts;
      const given = this.#given();
      const request = { op: "packets" as const, from_s, to_s, most: MOST_PACKETS, ...this.#seeded(), ...given };
      const { ok, tables } = await this.#following.ask<Packets>(request, { onProgress });
      const { parsed } = this.#shown!;
      this.#showFollowed = () => {
        const ue = this.#ue() || null;
        showPackets(place, ok, tables, [from_s, to_s], ue, (flow) => ue === null || ueOf(parsed, flow) === ue);
      };
      this.#showFollowed();
    }, true);
  }

  /** Do something beside the run, and say so at its place; with `kept` in the first line of what is there. */
  async #beside(place: HTMLElement, saying: string, work: (onProgress: (value: number) => void) => Promise<void>, kept = false): Promise<void> {
    const said = h("p", { role: "status" }, `${saying} …`);
    const former = kept ? place.firstElementChild : null;
    if (former) former.replaceWith(said);
    else fill(place, said);
    try {
      await this.#during(work((value) => (said.textContent = `${saying}: ${digits(value)} …`)));
    } catch (error) {
      if (!said.isConnected) return;
      const text = error instanceof StoppedError ? "Stopped." : error instanceof Error ? error.message : String(error);
      fill(place, h("p", { class: error instanceof StoppedError ? "help" : "wrong" }, text));
    }
  }

  /** Something that can be stopped is being done. */
  async #during(work: Promise<void>): Promise<void> {
    this.#jobs++;
    byId("stop").hidden = false;
    try {
      await work;
    } finally {
      this.#jobs--;
      byId("stop").hidden = this.#jobs === 0 && !this.#running;
    }
  }

  // --- Links and downloads

  #save(): void {
    if (!this.linked) return;
    clearTimeout(this.#saved);
    this.#saved = setTimeout(() => history.replaceState(null, "", toFragment(this.#state)), 200);
  }

  async #share(): Promise<void> {
    const fragment = toFragment(this.#state);
    history.replaceState(null, "", fragment);
    try {
      await navigator.clipboard.writeText(location.href);
      this.#say("The link is in the clipboard and holds the full state of this page.");
    } catch {
      this.#say("The address of this page is the link and holds its full state.");
    }
  }

  #offerDownloads(): void {
    const { tables } = this.#shown!;
    const names = [...tables].filter(([, table]) => table.numRows > 0).map(([name]) => name);
    const option = (value: string, text: string) => h("option", { value }, text);
    fill(byId("downloads"), option("", "Download …"), option("scenario", "scenario (TOML)"),
      ...names.map((name) => option(`csv ${name}`, `table ${name} (CSV)`)),
      ...this.#charts.shown.map((chart) => option(`svg ${chart.id}`, `chart ${chart.title} (SVG)`)));
  }

  #download(what: string): void {
    const shown = this.#shown;
    if (!shown || !what) return;
    const [kind, name] = what.split(" ");
    const stem = shown.parsed.name;
    if (kind === "scenario") download(`${stem}.toml`, "application/toml", shown.parsed.resolved_toml);
    else if (kind === "csv") download(`${stem}-${name}.csv`, "text/csv", csv(shown.tables.get(name!)!));
    else download(`${stem}-${name}.svg`, "image/svg+xml", this.#charts.svg(name!) ?? "");
  }

  #say(text: string): void {
    byId("status").textContent = text;
  }
}

/** The UE of a flow, by its place among those that run: the scenario may list others. */
function ueOf(parsed: Parsed, flow: number): string | undefined {
  const said = at(parsed.values, ["flow", parsed.flows[flow]?.index ?? flow, "ue"]);
  return typeof said === "string" ? said : parsed.ues?.[0];
}

/** Let the page do what it has to do besides. */
function rest(): Promise<void> {
  return new Promise((done) => setTimeout(done, 0));
}

/** These keys alone, in one section. */
function only(sections: Section[], paths: string[]): Section[] {
  const keys = sections.flatMap((section) => section.keys).filter((key) => paths.includes(key.path));
  return [{ id: "figure", title: "Change it", help: "", keys: keys.map((key) => ({ ...key, name: key.path.replace(/^.*\.\d+\./, ""), given: true })) }];
}
