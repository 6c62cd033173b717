// Shows packets in flight during a short interval.

import { byId, fill, h } from "../dom";
import { Lab, type Source } from "../lab";
import { showPackets } from "../packets";
import type { Packets, Parsed } from "../protocol";
import type { Runs } from "../runs";
import { LEAST_PACKETS_MS } from "../state";
import type { Store } from "../store";
import { ueOf } from "../timing";

const MOST_PACKETS = 2000;
const LASTS_MS = 200;

export class PacketsPanel {
  readonly #lab: Lab;
  readonly #place = byId("packets");
  readonly #from = byId<HTMLInputElement>("packets-from");
  readonly #lasts = byId<HTMLInputElement>("packets-ms");
  readonly #list = byId<HTMLSelectElement>("packets-ue");
  /** The packets that are drawn: shows them for the UE that is chosen. */
  #show: (() => void) | undefined;

  constructor(readonly store: Store, readonly runs: Runs, source: Source) {
    this.#lab = new Lab(source);
    byId("run-packets").addEventListener("click", () => void this.#follow());
    for (const button of document.querySelectorAll<HTMLElement>(".packets-step")) {
      button.addEventListener("click", () => void this.#step(button.dataset["step"] ?? ""));
    }
    this.#list.addEventListener("change", () => {
      store.note({ ue: this.#list.value });
      this.#show?.();
    });
    store.on("replaced", () => {
      const { packets } = store.state;
      if (packets) [this.#from.value, this.#lasts.value] = packets.map(String) as [string, string];
      fill(this.#place);
      this.#show = undefined;
    });
    for (const event of ["changed", "stop"] as const) store.on(event, () => this.#lab.stop());
    store.on("shown", ({ parsed }) => this.#offer(parsed));
    store.on("zoom", () => {
      const { zoom } = store.state;
      if (zoom) this.#from.value = zoom[0].toFixed(3);
    });
    store.on("settled", () => {
      if (store.state.packets) void this.#follow();
    });
  }

  #offer(parsed: Parsed): void {
    const ues = parsed.ues ?? [];
    fill(this.#list, h("option", { value: "" }, "all UEs"), ...ues.map((name) => h("option", { value: name }, name)));
    this.#list.value = this.#ue(parsed);
    // What is seen of a cell in a fifth of a second is only colour.
    if (!this.store.state.packets) this.#lasts.value = parsed.ues ? "20" : String(LASTS_MS);
  }

  /** The UE whose packets are shown: the one that the state wants, or the sender's; "": all. */
  #ue(parsed: Parsed): string {
    const { state, flow } = this.store;
    const { ue } = state;
    if (ue === "" || (ue !== null && parsed.ues?.includes(ue))) return ue;
    return ueOf(parsed, Math.max(0, parsed.flows.findIndex((one) => one.id === flow))) ?? "";
  }

  /** The interval in the input fields: start in seconds, length in milliseconds. */
  #asked(): [number, number] {
    return [Number(this.#from.value) || 0, Math.max(LEAST_PACKETS_MS, Number(this.#lasts.value) || LASTS_MS)];
  }

  /** Show the packets of another time: before, after, half or twice as long. */
  #step(step: string): Promise<void> {
    const [begin, ms] = this.#asked();
    const part = { earlier: -0.5, later: 0.5, closer: 0.25, wider: -0.5 }[step] ?? 0;
    const factor = { closer: 0.5, wider: 2 }[step] ?? 1;
    this.#from.value = String(Number(Math.max(0, begin + (part * ms) / 1000).toFixed(6)));
    this.#lasts.value = String(Number((ms * factor).toPrecision(4)));
    return this.#follow();
  }

  async #follow(): Promise<void> {
    const { store } = this;
    const [begin, ms] = this.#asked();
    const from_s = Math.max(0, begin);
    store.note({ packets: [from_s, ms] });
    await this.runs.beside(this.#place, "Following the packets", async (onProgress) => {
      const to_s = from_s + ms / 1000;
      const request = { op: "packets" as const, from_s, to_s, most: MOST_PACKETS, ...store.seeded(), ...store.given() };
      const { ok, tables } = await this.#lab.ask<Packets>(request, { onProgress });
      const { parsed } = store.shown!;
      this.#show = () => {
        const ue = this.#ue(parsed) || null;
        showPackets(this.#place, ok, tables, [from_s, to_s], ue, (flow) => ue === null || ueOf(parsed, flow) === ue);
      };
      this.#show();
    }, true);
  }
}
