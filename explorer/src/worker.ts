// A worker: it has one instance of the engine and does one request after another.

import { engine, PanicError } from "./engine.js";
import type { Message, Order } from "./protocol";

/** Events after which a run's length can be told from what it has done. */
const ENOUGH_EVENTS = 100_000;
const PROGRESS_MS = 50;

let ask: ReturnType<typeof engine> | undefined;

self.onmessage = async (message: MessageEvent<WebAssembly.Module | Order>) => {
  if (message.data instanceof WebAssembly.Module) {
    ask = engine(message.data);
    return;
  }
  const { id, request, mostEvents, duration_s } = message.data;
  const began = performance.now();
  let told = began;
  let expensive: number | undefined;
  const progress = (kind: "run" | "runs", value: number, events: number) => {
    if (kind === "run" && mostEvents !== undefined && duration_s && events > ENOUGH_EVENTS) {
      const whole = value > 0 ? (events * duration_s) / value : Infinity;
      if (whole > mostEvents) {
        expensive = whole;
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
    if (expensive !== undefined) say({ id, expensive, wall_ms });
    else say({ id, ...answer, wall_ms }, [answer.tables.buffer]);
  } catch (error) {
    say({ id, panic: error instanceof Error ? error.message : String(error) });
  }
};

function say(message: Message, given: Transferable[] = []): void {
  self.postMessage(message, { transfer: given });
}
