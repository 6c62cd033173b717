// A worker: it has one instance of the engine and does one request after another.

import { engine, PanicError } from "./engine.js";
import type { Message, Order } from "./protocol";

/** What a run has done after which the rest can be told from it. */
const ENOUGH_EVENTS = 100_000;
const ENOUGH_MS = 500;
const PROGRESS_MS = 50;

let ask: ReturnType<typeof engine> | undefined;

self.onmessage = async (message: MessageEvent<WebAssembly.Module | Order>) => {
  if (message.data instanceof WebAssembly.Module) {
    ask = engine(message.data);
    return;
  }
  const { id, request, mostEvents = Infinity, most_ms = Infinity, duration_s = 0 } = message.data;
  const began = performance.now();
  let told = began;
  let expensive: { events: number; whole_ms: number } | undefined;
  const progress = (kind: "run" | "runs", value: number, events: number) => {
    const took = performance.now() - began;
    if (kind === "run" && (events > ENOUGH_EVENTS || took > ENOUGH_MS)) {
      const times = value > 0 ? duration_s / value : Infinity;
      if (events * times > mostEvents || took * times > most_ms) {
        expensive = { events: events * times, whole_ms: took * times };
        return false;
      }
    }
    const now = performance.now();
    if (now - told > PROGRESS_MS) {
      told = now;
      say({ id, progress: value });
    }
    return true;
  };
  try {
    if (!ask) throw new PanicError("the engine did not start");
    const answer = (await ask)(JSON.stringify(request), progress);
    const wall_ms = performance.now() - began;
    if (expensive !== undefined) say({ id, ...expensive });
    else say({ id, ...answer, wall_ms }, [answer.tables.buffer]);
  } catch (error) {
    say({ id, panic: error instanceof Error ? error.message : String(error) });
  }
};

function say(message: Message, given: Transferable[] = []): void {
  self.postMessage(message, { transfer: given });
}
