// The laboratory: workers that answer requests. One that panics or has to be stopped is ended, and
// another one takes its place; the compiled module is theirs in common.

import type { Message, Order, Problem, Request } from "./protocol";

/** The scenario cannot be run. */
export class ScenarioError extends Error {
  constructor(
    readonly problems: Problem[],
    text: string,
  ) {
    super(text);
  }
}

/** Somebody asked for something else meanwhile, or for an end. */
export class StoppedError extends Error {}

/** The run would handle so many events or take so long, which is more than was allowed. */
export class ExpensiveError extends Error {
  constructor(
    readonly events: number,
    readonly whole_ms: number,
  ) {
    super("the run is expensive");
  }
}

export interface Answered<T> {
  ok: T;
  tables: Uint8Array<ArrayBuffer>;
  wall_ms: number;
}

export interface Limits {
  mostEvents?: number;
  most_ms?: number;
  duration_s?: number;
  onProgress?: (value: number) => void;
}

interface Waiting {
  id: number;
  done: (answer: Answered<unknown>) => void;
  failed: (error: Error) => void;
  onProgress: ((value: number) => void) | undefined;
}

/** Where a module comes from: the page's own server, or what stands in a file of its own. */
export interface Source {
  module: Promise<WebAssembly.Module>;
  start: () => Worker;
}

export class Lab {
  #worker: Worker | undefined;
  #waiting: Waiting | undefined;
  #number = 0;

  constructor(readonly source: Source) {}

  get busy(): boolean {
    return this.#waiting !== undefined;
  }

  /** Ask for something; what is being worked on is stopped. */
  ask<T>(request: Request, limits: Limits = {}): Promise<Answered<T>> {
    this.stop();
    const id = ++this.#number;
    const { onProgress, ...allowed } = limits;
    const answer = new Promise<Answered<unknown>>((done, failed) => {
      this.#waiting = { id, done, failed, onProgress };
    });
    const order: Order = { id, request, ...allowed };
    this.#started().then(
      (worker) => {
        if (this.#waiting?.id === id) worker.postMessage(order);
      },
      (error: unknown) => this.#end(new Error(`the engine cannot be loaded: ${String(error)}`)),
    );
    return answer as Promise<Answered<T>>;
  }

  /** Stop what is being worked on. */
  stop(): void {
    if (!this.#waiting) return;
    const { failed } = this.#waiting;
    this.#waiting = undefined;
    this.#renew();
    failed(new StoppedError("stopped"));
  }

  /** A worker that is ready before somebody waits for it. */
  async warm(): Promise<void> {
    await this.#started();
  }

  async #started(): Promise<Worker> {
    const module = await this.source.module;
    if (!this.#worker) {
      const worker = this.source.start();
      worker.onmessage = (message: MessageEvent<Message>) => this.#take(message.data);
      worker.onerror = (event) => {
        event.preventDefault();
        this.#renew();
        this.#end(new Error(event.message || "the worker does not start"));
      };
      worker.postMessage(module);
      this.#worker = worker;
    }
    return this.#worker;
  }

  #take(message: Message): void {
    const waiting = this.#waiting;
    if (waiting?.id !== message.id) return;
    if ("progress" in message) {
      waiting.onProgress?.(message.progress);
    } else if ("panic" in message) {
      this.#renew();
      this.#end(new Error(`The simulator failed, which is a bug in airpath: ${message.panic}`));
    } else if ("events" in message) {
      this.#end(new ExpensiveError(message.events, message.whole_ms));
    } else {
      const document = JSON.parse(message.document) as {
        ok?: unknown;
        problems?: Problem[];
        text?: string;
        error?: string;
      };
      if (document.problems) this.#end(new ScenarioError(document.problems, document.text ?? ""));
      else if (document.ok === undefined) this.#end(new Error(document.error ?? "stopped"));
      else {
        this.#waiting = undefined;
        waiting.done({ ok: document.ok, tables: message.tables, wall_ms: message.wall_ms });
      }
    }
  }

  #end(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.failed(error);
  }

  #renew(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    void this.#started().catch(() => undefined);
  }
}
