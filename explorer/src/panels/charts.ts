// Shows the curves of the run, with those of the previous run and of more seeds behind them.

import { bandsOf } from "../bands";
import type { Band, Charts } from "../charts";
import { byId, fill, h, say } from "../dom";
import { showFigures } from "../figures";
import { StoppedError, type Source } from "../lab";
import { Pool } from "../pool";
import type { Run } from "../protocol";
import type { Runs } from "../runs";
import { charts, RADIO_FIGURES, tablesOf, type Chart } from "../series";
import { MOST_SEEDS, type State } from "../state";
import type { Shown, Store } from "../store";

export class ChartsPanel {
  readonly #pool: Pool;
  readonly #flow = byId<HTMLSelectElement>("flow");
  readonly #radio = byId<HTMLSelectElement>("radio");
  readonly #seeds = byId<HTMLInputElement>("seeds");
  readonly #from = byId<HTMLInputElement>("zoom-from");
  readonly #to = byId<HTMLInputElement>("zoom-to");
  #bands = new Map<string, Band[]>();
  /** The charts of a run; `of` names the flow and the radio figure that they show. */
  readonly #made = new WeakMap<Shown, { of: string; all: Chart[] }>();

  constructor(readonly store: Store, readonly runs: Runs, source: Source, readonly charts: Charts) {
    this.#pool = new Pool(source);
    fill(this.#radio, ...RADIO_FIGURES.map(([name, title]) => h("option", { value: name }, title)));
    this.#listen();
    store.on("replaced", () => {
      this.#seeds.value = String(store.state.seeds);
      this.#radio.value = store.radio;
    });
    store.on("changed", () => {
      this.#pool.stop();
      this.#bands.clear();
    });
    store.on("stop", () => this.#pool.stop());
    store.on("shown", () => {
      this.#offerFlows();
      this.#draw();
    });
    store.on("settled", () => {
      if (store.state.seeds > 1) void this.#band();
    });
    store.on("zoom", () => this.#showZoom());
    store.on("time", (numbers) => this.charts.at(store.time, numbers));
  }

  #listen(): void {
    const { store } = this;
    const typed = () => {
      const [from, to] = [Number(this.#from.value), Number(this.#to.value)];
      if (this.#to.value !== "" && from >= 0 && to > from) this.#zoom([from, to]);
      else store.emit("zoom");
    };
    for (const end of [this.#from, this.#to]) end.addEventListener("change", typed);
    byId("whole").addEventListener("click", () => this.#zoom(null));
    this.#flow.addEventListener("change", () => {
      store.note({ flow: this.#flow.value });
      this.#draw();
    });
    this.#radio.addEventListener("change", () => {
      store.note({ radio: this.#radio.value });
      this.#draw();
    });
    this.#seeds.addEventListener("change", () => {
      const seeds = Math.min(MOST_SEEDS, Math.max(1, Math.round(Number(this.#seeds.value)) || 1));
      this.#seeds.value = String(seeds);
      store.note({ seeds });
      void this.#band();
    });
  }

  #offerFlows(): void {
    const { senders, flow } = this.store;
    const list = this.#flow;
    if ([...list.options].map((one) => one.value).join() !== senders.join())
      fill(list, ...senders.map((name) => h("option", { value: name }, name)));
    list.value = flow ?? "";
    list.disabled = senders.length < 2;
  }

  #draw(): void {
    const { shown, shadow, state } = this.store;
    if (!shown) return;
    this.charts.show(this.#chartsOf(shown), shadow ? this.#chartsOf(shadow) : [], shown.summary.duration_s, this.#bands);
    this.charts.zoom(state.zoom);
    this.charts.at(this.store.time, true);
    this.store.emit("zoom");
    showFigures(byId("figures"), shown.summary, shadow?.summary);
  }

  #chartsOf(run: Shown): Chart[] {
    const { flow, radio, figure } = this.store;
    const of = `${flow} ${radio}`;
    let made = this.#made.get(run);
    if (made?.of !== of) this.#made.set(run, (made = { of, all: charts(run.tables, run.parsed, flow, radio) }));
    return figure ? made.all.filter((chart) => chart.id === figure.chart) : made.all;
  }

  #zoom(zoom: State["zoom"]): void {
    this.charts.zoom(zoom);
    this.store.zoom(zoom);
  }

  #showZoom(): void {
    const { zoom } = this.store.state;
    byId("whole").hidden = zoom === null;
    const [from, to] = zoom ?? [0, this.store.shown?.summary.duration_s ?? 0];
    this.#from.value = String(Number(from.toFixed(3)));
    this.#to.value = String(Number(to.toFixed(3)));
  }

  /** Lowest and highest values of more seeds, behind the curves of the first. */
  async #band(): Promise<void> {
    const { store } = this;
    const { shown } = store;
    const { seeds } = store.state;
    this.#bands.clear();
    if (!shown || seeds < 2) return this.#draw();
    const first = store.state.seed ?? shown.parsed.seed;
    const requests = Array.from({ length: seeds - 1 }, (_, index) => ({ op: "simulate" as const, seed: first + index + 1, ...store.given() }));
    const all = [this.#chartsOf(shown)];
    const drawn = this.#pool.each<Run>(requests, ({ ok: run, tables }) => {
      all.push(charts(tablesOf(run.tables, tables), shown.parsed, store.flow, store.radio));
      this.#bands = bandsOf(all);
      this.#draw();
    });
    try {
      await this.runs.during(drawn);
    } catch (error) {
      if (this.runs.running) return;
      if (error instanceof StoppedError) say("Stopped.");
      else await this.runs.failed(error);
    }
  }
}
