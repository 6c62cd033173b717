// What holds the run back, with advice to try; and the table of differences once it is tried.

import { fill, h } from "./dom";
import { figure } from "./numbers";
import type { Explanation, Finding, Gain, Row } from "./protocol";

export function showFindings(
  place: HTMLElement,
  explanation: Explanation,
  onTry: (finding: Finding) => void,
): void {
  const { findings, runs, seeds } = explanation;
  fill(place,
    findings.length === 0 ? h("p", {}, "None of the changes tried would improve it.") : null,
    h("ol", { class: "findings" }, ...findings.map((one) => shown(one, onTry))),
    h("p", { class: "help" }, `Found by ${runs} runs with ${counted(seeds, findings)}.`),
    tried(explanation));
}

/** With how many seeds: what they leave in doubt is seen on more. */
function counted(seeds: number, findings: Finding[]): string {
  const most = Math.max(seeds, ...findings.map((one) => one.gain?.seeds ?? 0));
  return most > seeds ? `${seeds} seeds, and ${most} where these were inconclusive` : `${seeds} seeds`;
}

function shown(finding: Finding, onTry: (finding: Finding) => void): HTMLElement {
  const { cause, subject, evidence, advice, set, gain, costs } = finding;
  return h("li", { "data-cause": cause },
    h("h3", {}, cause, h("span", { class: "unit" }, ` at ${subject}`)),
    h("p", {}, evidence),
    advice === null ? null : h("p", {}, h("strong", {}, "Advice: "), advice),
    gain === null ? null : h("p", {}, `Gain: ${gained(gain)}.`),
    ...costs.map((cost) => h("p", {}, `Cost: ${gained(cost)}.`)),
    set === null ? null : h("p", {}, ...set.map((one) => h("code", {}, one)), " ",
      h("button", { type: "button", class: "try", click: () => onTry(finding) }, "Try it")));
}

function gained(gain: Gain): string {
  const { metric, flow, before, after } = gain;
  // Jain's index is of a direction.
  const of = metric === "jain_index" ? `${flow}link flows` : flow;
  return `${words(metric)} of ${of}: ${figure(metric, after)} instead of ${figure(metric, before)}`;
}

function tried({ tried: all }: Explanation): HTMLElement | null {
  if (all.length === 0) return null;
  const rows = all.map((one) => h("tr", {}, h("td", {}, one.cause),
    h("td", {}, one.subject), h("td", {}, one.set.join(" ")), h("td", {}, one.outcome)));
  return h("details", {}, h("summary", {}, "What else was tried"),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "What else was tried" }, h("table", {},
      h("thead", {}, h("tr", {}, ...["for", "at", "change", "outcome"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...rows))));
}

/** The scenario and one variant, figure by figure, over some seeds. */
export function showDifferences(place: HTMLElement, rows: Row[], seeds: number): void {
  // Without intervals nothing is random: each difference is one.
  const exact = !rows.some((row) => row.cells.some((cell) => cell?.ci95));
  const body = rows.map((row) => {
    const [before, after] = row.cells;
    if (!before || !after) return null;
    const more = (after.mean ?? 0) - (before.mean ?? 0);
    const differs = before.mean !== null && after.mean !== null && more !== 0;
    const winner = !exact ? row.winner : !differs ? null : more > 0 === row.more_is_better ? 1 : 0;
    const none = exact ? "the same" : "no clear difference";
    const better = winner === null ? none : winner === 1 ? "better" : "worse";
    return h("tr", { class: winner === 1 ? "good" : winner === 0 ? "bad" : "" },
      h("th", { scope: "row" }, row.flow), h("td", {}, words(row.metric)),
      h("td", { class: "number" }, figure(row.metric, before.mean)),
      h("td", { class: "number" }, figure(row.metric, after.mean)), h("td", {}, better));
  });
  fill(place,
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Differences" }, h("table", { id: "differences" },
      h("caption", {}, exact
        ? "Before and with the advice: all seeds give the same run" : `Before and with the advice: means of ${seeds} seeds`),
      h("thead", {}, h("tr", {}, ...["of", "figure", "before", "with it", ""].map((name) => h("th", { scope: "col" }, name || "verdict")))),
      h("tbody", {}, ...body))));
}

const WORDS: [start: string, words: string][] = [
  ["goodput_mbps", "goodput"],
  ["total_mbps", "goodput of all bulk flows"],
  ["completed_s", "completion time"],
  ["rtt_ms.p50", "median RTT"],
  ["rtt_ms.p95", "RTT (p95)"],
  ["rtt_ms.mean", "mean RTT"],
  ["delay_ms.p95", "one-way delay (p95)"],
  ["queue_delay_ms.p95", "delay in the queue (p95)"],
  ["jain_index", "Jain's index"],
  ["answered_share", "reply rate"],
  ["retransmitted_share", "share of retransmitted segments"],
];

/** A figure's name in `--json`, as it stands in a sentence. */
export function words(metric: string): string {
  return WORDS.find(([start]) => metric.startsWith(start))?.[1] ?? metric.replaceAll("_", " ");
}
