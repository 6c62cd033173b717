// Several workers that share a list of requests: seeds, the points of a sweep.

import { Lab, StoppedError, type Answered, type Limits, type Source } from "./lab";
import type { Request } from "./protocol";

const MOST_WORKERS = 4;

export class Pool {
  readonly #labs: Lab[];
  #stopped = 0;

  constructor(source: Source) {
    const cores = Math.max(1, (navigator.hardwareConcurrency || 2) - 1);
    this.#labs = Array.from({ length: Math.min(MOST_WORKERS, cores) }, () => new Lab(source));
  }

  /** Ask for all of them, each within its limits; `onAnswer` gets each as soon as it is there. */
  async each<T>(requests: Request[], onAnswer: (answer: Answered<T>, index: number) => void, limits: Limits[] = []): Promise<void> {
    this.stop();
    const run = this.#stopped;
    let next = 0;
    const work = async (lab: Lab) => {
      while (next < requests.length) {
        const index = next++;
        const answer = await lab.ask<T>(requests[index]!, limits[index]);
        if (run !== this.#stopped) throw new StoppedError("stopped");
        onAnswer(answer, index);
      }
    };
    await Promise.all(this.#labs.map(work));
  }

  stop(): void {
    this.#stopped++;
    for (const lab of this.#labs) lab.stop();
  }
}
