// Where the page gets its engine and what it begins with: from its own server, or, in a report that
// is one file, from what stands in that file.

import type { Source } from "./lab";
import { emptyState, fileName, type State } from "./state";

/** What a page begins with where its link says nothing. */
export interface Start {
  shipped?: string;
  text?: string;
  name?: string;
  sets?: string[];
  seed?: number;
}

/** What a report that runs again has inside. */
interface Inside {
  start: Start;
  /** The engine, gzip in base64. */
  engine: string;
  /** The worker's script. */
  worker: string;
}

/** What is inside the page; null where it comes from a server. */
export function inside(): Inside | null {
  const element = document.getElementById("inside");
  return element ? (JSON.parse(element.textContent ?? "") as Inside) : null;
}

/** The engine from the page itself. */
export function inlined({ engine, worker }: Inside): Source {
  const script = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
  const packed = Uint8Array.from(atob(engine), (char) => char.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const module = new Response(unpacked).arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
  return { module, start: () => new Worker(script) };
}

export async function start(): Promise<Start> {
  const answer = await fetch("start.json");
  if (!answer.ok) throw new Error(`start.json: ${answer.status}`);
  return (await answer.json()) as Start;
}

/** Figures of published studies: each a text and what it sets. */
export interface Studies {
  texts: Record<string, string>;
  figures: { id: string; how: string; file: string; sets: string[] }[];
}

/** The figures that the server has; none where there is no server. */
export async function studies(): Promise<Studies> {
  const none: Studies = { texts: {}, figures: [] };
  if (inside()) return none;
  const answer = await fetch("studies.json");
  return answer.ok ? ((await answer.json()) as Studies) : none;
}

export function stateOf(begin: Start): State {
  const state = emptyState();
  if (begin.text !== undefined) {
    state.text = begin.text;
    state.name = fileName(begin.name ?? state.name);
  } else state.shipped = begin.shipped ?? "bufferbloat";
  state.sets = begin.sets ?? [];
  state.seed = begin.seed ?? null;
  return state;
}

/** The engine from the page's server: compiled once, for all workers. */
export function served(): Source {
  const module = fetch("airpath.wasm").then((answer) => {
    if (!answer.ok) throw new Error(`airpath.wasm: ${answer.status}`);
    return WebAssembly.compileStreaming(answer);
  });
  return { module, start: () => new Worker("worker.js") };
}
