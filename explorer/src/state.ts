// What a link holds: the whole state of the page, in its fragment. It is data and nothing else: the
// page takes from it a scenario's text, settings and numbers, each within limits.

export interface State {
  /** A shipped scenario by name, or a text of one's own. */
  shipped: string | null;
  text: string | null;
  name: string;
  /** `KEY=VALUE`, on top of the text. */
  sets: string[];
  seed: number | null;
  /** Settings that a recommendation added last: they stand at the end of `sets`. */
  tried: string[];
  /** The part of the time that is shown, in seconds. */
  zoom: [number, number] | null;
  /** How many seeds are shown as a band. */
  seeds: number;
  /** The key that is swept. */
  sweep: string | null;
  /** The sender whose windows are shown; null: the first. */
  flow: string | null;
  /** The figure that the radio's chart shows; null: the first. */
  radio: string | null;
  /** The packets that are shown: from when, in seconds, and for how many milliseconds. */
  packets: [number, number] | null;
  /** The UE whose packets are shown: null is that of the sender, and "" all of them. */
  ue: string | null;
  /** The time that the path and all charts show, in seconds; null: nobody has chosen one. */
  time: number | null;
}

const MOST_TEXT = 200_000;
const MOST_SETS = 200;
const MOST_SET = 2_000;
export const MOST_SEEDS = 20;
/** The shortest time whose packets are shown. */
export const LEAST_PACKETS_MS = 0.1;

export function emptyState(): State {
  return {
    shipped: null,
    text: null,
    name: "scenario.toml",
    sets: [],
    seed: null,
    tried: [],
    zoom: null,
    seeds: 1,
    sweep: null,
    flow: null,
    radio: null,
    packets: null,
    ue: null,
    time: null,
  };
}

export function toFragment(state: State): string {
  const said = new URLSearchParams();
  if (state.text !== null) {
    said.set("text", state.text);
    said.set("name", state.name);
  } else if (state.shipped) said.set("scenario", state.shipped);
  for (const set of state.sets) said.append("set", set);
  for (const set of state.tried) said.append("tried", set);
  if (state.seed !== null) said.set("seed", String(state.seed));
  if (state.zoom) said.set("zoom", state.zoom.map((value) => value.toFixed(3)).join(","));
  if (state.seeds > 1) said.set("seeds", String(state.seeds));
  if (state.sweep) said.set("sweep", state.sweep);
  if (state.flow) said.set("flow", state.flow);
  if (state.radio) said.set("radio", state.radio);
  if (state.packets) said.set("packets", state.packets.join(","));
  if (state.ue !== null) said.set("ue", state.ue);
  if (state.time !== null) said.set("time", String(Number(state.time.toFixed(6))));
  return `#${said}`;
}

/** The state of a fragment; null if it has none. What is out of its limits is left out. */
export function fromFragment(fragment: string): State | null {
  const said = new URLSearchParams(fragment.replace(/^#/, ""));
  const [text, shipped] = [said.get("text"), said.get("scenario")];
  if (text === null && shipped === null) return null;
  const state = emptyState();
  if (text !== null) {
    state.text = text.slice(0, MOST_TEXT);
    state.name = fileName(said.get("name") ?? state.name);
  } else state.shipped = shipped;
  const sets = (name: string) =>
    said
      .getAll(name)
      .filter((set) => set.length <= MOST_SET && set.includes("="))
      .slice(0, MOST_SETS);
  state.sets = sets("set");
  state.tried = sets("tried");
  state.seed = count(said.get("seed"), 0, Number.MAX_SAFE_INTEGER);
  state.seeds = count(said.get("seeds"), 1, MOST_SEEDS) ?? 1;
  const zoom = pair(said.get("zoom"));
  if (zoom && zoom[0] < zoom[1]) state.zoom = zoom;
  state.sweep = word(said.get("sweep"));
  state.flow = word(said.get("flow"));
  state.radio = word(said.get("radio"));
  const packets = pair(said.get("packets"));
  if (packets && packets[0] >= 0 && packets[1] >= LEAST_PACKETS_MS) state.packets = packets;
  state.ue = said.get("ue") === "" ? "" : word(said.get("ue"));
  const time = said.get("time");
  if (time !== null && /^\d{1,9}(\.\d{1,9})?$/.test(time)) state.time = Number(time);
  return state;
}

/** A figure in a page of text: some keys and one chart of a scenario, and nothing else. */
export interface Figure {
  keys: string[];
  chart: string;
}

/** The figure that a fragment asks for. */
export function figureOf(fragment: string): Figure | null {
  const said = new URLSearchParams(fragment.replace(/^#/, ""));
  const chart = said.get("chart");
  return chart === null ? null : { keys: said.getAll("key").slice(0, MOST_SETS), chart };
}

/** A name that is a file's and no path. */
export function fileName(text: string): string {
  const last = text.split(/[/\\]/).pop() ?? "";
  return last.replace(/[^\w. -]/g, "").slice(0, 80) || "scenario.toml";
}

/** Two numbers with a comma between them. */
function pair(text: string | null): [number, number] | null {
  const [first, second, ...rest] = (text ?? "").split(",").map(Number);
  if (rest.length > 0 || !Number.isFinite(first) || !Number.isFinite(second)) return null;
  return [first!, second!];
}

/** A name of a key, a flow or a column. */
function word(text: string | null): string | null {
  return text && /^[\w.-]{1,200}$/.test(text) ? text : null;
}

function count(text: string | null, least: number, most: number): number | null {
  if (text === null || !/^\d{1,16}$/.test(text)) return null;
  return Math.min(Math.max(Number(text), least), most);
}

/** Settings with one more: of each key the last one counts, so an earlier one goes. */
export function withSet(sets: string[], set: string): string[] {
  const key = keyOf(set);
  const known = sets.findIndex((one) => keyOf(one) === key);
  return known < 0 ? [...sets, set] : sets.map((one, index) => (index === known ? set : one));
}

export function keyOf(set: string): string {
  return set.slice(0, set.indexOf("=")).trim();
}
