// The answer in words: what the flows get, what a round trip takes, what limits it and what would help.

import { h } from "./dom";
import { words } from "./findings";
import { figure, title, unit } from "./numbers";
import type { Finding, Summary } from "./protocol";
import { keyOf } from "./state";

type Words = (Node | string)[];
type Transfer = Summary["flows"][number];

const MOST_FLOWS = 3;

/** What the flows get, the chosen sender first, beside what they got before. */
export function verdict(now: Summary, former: Summary | undefined, flow: string | null): Words {
  const flows = now.flows.filter((one) => one.goodput_mbps !== null).sort((one, other) => Number(other.id === flow) - Number(one.id === flow));
  const said = flows.slice(0, MOST_FLOWS).map((one) => transfer(one, former?.flows.find(({ id }) => id === one.id), now));
  if (flows.length > MOST_FLOWS) said.push([`${flows.length - MOST_FLOWS} more flows are in the table of figures. `]);
  return [...said.flat(), ...roundTrip(now, former, flows[0])];
}

function transfer(now: Transfer, former: Transfer | undefined, summary: Summary): Words {
  const name = h("strong", {}, now.id);
  if (now.kind === "file") {
    const [done, before] = [now.completed_s, former?.completed_s].map((value) => (value === undefined ? undefined : figure("completed_s", value)));
    return now.completed_s === null ? [name, " does not complete", past(before), ". "]
      : [name, " takes ", strong(done!), past(before), ". "];
  }
  const slowest = summary.links
    .filter(({ id }) => id.startsWith(`${now.direction}.`) || id === `radio.${now.ue}.${now.direction}`)
    .sort((one, other) => one.capacity_mbps - other.capacity_mbps)[0];
  const of = slowest ? [` of the ${figure("goodput_mbps", slowest.capacity_mbps)} of ${slowest.id}`] : [];
  return [name, " gets ", strong(figure("goodput_mbps", now.goodput_mbps)), past(former && figure("goodput_mbps", former.goodput_mbps)), ...of, ". "];
}

/** The time of a ping, or without one the RTT of the first flow. */
function roundTrip(now: Summary, former: Summary | undefined, first: Transfer | undefined): Words {
  const ping = now.pings.find(({ rtt_ms }) => rtt_ms !== null);
  const rtt = ping?.rtt_ms ?? first?.rtt_ms;
  if (!rtt) return [];
  const before = ping ? former?.pings.find(({ id }) => id === ping.id)?.rtt_ms : former?.flows.find(({ id }) => id === first?.id)?.rtt_ms;
  const ms = (value: number) => figure("rtt_ms", value);
  return [ping ? "A ping takes " : `A round trip of ${first!.id} takes `, strong(ms(rtt.p50)), " (median)", past(before && ms(before.p50)),
    `; the fastest took ${ms(rtt.min)}.`];
}

function strong(text: string): Node {
  return h("strong", { class: "figure" }, text);
}

function past(text: string | null | undefined): Node | string {
  return text ? h("span", { class: "help" }, ` (before: ${text})`) : "";
}

/** A cause and where it is. */
export function causeOf({ cause, subject }: Finding): Words {
  return [h("strong", {}, cause), ` at ${subject}`];
}

/** What a cure changes and what it gains, as a button says it. */
export function cure({ set, gain }: Finding): string {
  const said = new Set((set ?? []).map((one) => {
    const key = keyOf(one).replace(/^.*\.\d+\./, "");
    const value = one.slice(one.indexOf("=") + 1).trim().replaceAll('"', "");
    return `${title(key)} ${value} ${unit(key)}`.trim();
  }));
  // The same keys of several UEs read alike, and parameters of a choice come after it.
  const all = said.size > 2 ? [[...said][0]!, `${said.size - 1} more keys`] : [...said];
  if (!gain) return all.join(", ");
  const { metric, flow, before, after } = gain;
  return `${all.join(", ")}: ${words(metric)} of ${flow} ${figure(metric, after)} instead of ${figure(metric, before)}`;
}
