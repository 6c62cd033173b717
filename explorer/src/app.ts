// The application: a store, the runs of its scenario, and the panels that show them.

import { Charts } from "./charts";
import { byId, say } from "./dom";
import { Following } from "./flights";
import { Keys, type Schema } from "./keys";
import { Lab, type Source } from "./lab";
import { AnswerPanel } from "./panels/answer";
import { CausesPanel } from "./panels/causes";
import { ChartsPanel } from "./panels/charts";
import { ClockPanel } from "./panels/clock";
import { DownloadsPanel } from "./panels/downloads";
import { KeysPanel } from "./panels/keys";
import { PacketsPanel } from "./panels/packets";
import { PathPanel } from "./panels/path";
import { ScenarioPanel } from "./panels/scenario";
import { SweepPanel } from "./panels/sweep";
import { TextPanel } from "./panels/text";
import type { Shipped } from "./protocol";
import { Runs } from "./runs";
import { fromFragment, toFragment, type Figure, type State } from "./state";
import { Store } from "./store";

/** How the page is embedded and was opened. */
interface Options {
  /** The page's address holds its state. */
  linked?: boolean;
  /** The state came from a link. */
  given?: boolean;
  figure?: Figure;
}

/** Open the page in the given state. */
export async function open(source: Source, state: State, { linked = false, given = false, figure }: Options): Promise<void> {
  const lab = new Lab(source);
  const shipped = (await lab.ask<Shipped[]>({ op: "shipped" })).ok;
  const keys = new Keys((await lab.ask<Schema>({ op: "schema" })).ok);
  const store = new Store(state, shipped, keys, linked, figure ?? null);
  const runs = new Runs(store, lab);
  const following = new Following(store, new Lab(source));
  const charts = new Charts(byId("charts"), (zoom) => store.zoom(zoom), (time) => store.point(time));
  arrange(store);
  // Panels are notified of a run in the order of their creation: curves first.
  new ChartsPanel(store, runs, source, charts);
  new AnswerPanel(store);
  new PathPanel(store, following);
  new ClockPanel(store, following);
  new PacketsPanel(store, runs, source);
  new KeysPanel(store);
  new SweepPanel(store, runs, source);
  new DownloadsPanel(store, charts);
  new TextPanel(store);
  new ScenarioPanel(store);
  const causes = new CausesPanel(store, runs, source);
  if (state.shipped !== null && !shipped.some(({ name }) => name === state.shipped)) {
    say(`There is no shipped scenario ${state.shipped}; this is bufferbloat instead.`);
    state.shipped = "bufferbloat";
    state.sets = state.tried = [];
  }
  if (!given) store.save();
  await causes.warm();
  store.replace(state);
}

/** Set up what belongs to no panel: the page's address, and which parts are visible. */
function arrange(store: Store): void {
  if (store.linked) addEventListener("hashchange", () => {
    const state = fromFragment(location.hash);
    if (state && toFragment(state) !== toFragment(store.state)) store.replace(state);
  });
  store.on("shown", ({ parsed }) => {
    for (const one of document.querySelectorAll<HTMLElement>(".radio-only")) one.hidden = parsed.ues === null;
  });
  // On a phone the charts stay in sight while something is changed, and no longer.
  const charts = byId("charts");
  const away = ([entry]: IntersectionObserverEntry[]) => charts.classList.toggle("away", !entry!.isIntersecting);
  new IntersectionObserver(away, { rootMargin: "-264px 0px 0px 0px" }).observe(byId("keys-panel"));
}
