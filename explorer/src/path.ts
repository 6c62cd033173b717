// The path as boxes: the server, the stages of each direction, the cell, the UEs. A click leads to
// the controls of a box.

import { fill, h } from "./dom";
import { at, list, table } from "./keys";
import { digits } from "./numbers";
import type { Parsed, Value } from "./protocol";

export function drawPath(place: HTMLElement, parsed: Parsed, onBox: (id: string) => void): void {
  const path = table(parsed.values["path"]);
  const radio = parsed.values["radio"] !== undefined;
  const lane = (direction: "down" | "up") => {
    const stages = list(path[direction]).map((stage, index) =>
      box(`path.${direction}.${index}`, String(table(stage)["stage"]), detail(stage), onBox),
    );
    // The downlink is written from the server on, the uplink from the UE on: both are drawn from
    // left to right as the server stands left.
    const ordered = direction === "down" ? stages : stages.reverse();
    return h("ol", { class: `lane ${direction}`, "aria-label": direction === "down" ? "Downlink, from server to UE" : "Uplink, drawn from server to UE" },
      ...ordered.map((stage) => h("li", {}, stage)));
  };
  const ues = parsed.ues ?? ["ue"];
  const cell = table(table(parsed.values["radio"])["cell"]);
  const proxy = parsed.values["proxy"] !== undefined;
  const focused = place.contains(document.activeElement)
    ? (document.activeElement as HTMLElement).dataset["section"]
    : undefined;
  fill(place,
    node("Server"),
    proxy ? box("proxy", "TCP proxy", "", onBox) : null,
    h("div", { class: "lanes" }, lane("down"), lane("up")),
    radio ? box("radio.cell", "Cell", [String(cell["access"] ?? "").toUpperCase(), cell["bandwidth_mhz"] && `${String(cell["bandwidth_mhz"])} MHz`].filter(Boolean).join(", "), onBox) : null,
    h("div", { class: "ues" }, ...ues.slice(0, 6).map((name, index) =>
      radio ? box(`radio.ue.${index}`, name, quality(parsed, index), onBox) : node("UE")),
      ues.length > 6 ? h("p", {}, `and ${ues.length - 6} more`) : null));
  // Who was at a box stays there.
  if (focused !== undefined) {
    const boxes = [...place.querySelectorAll<HTMLElement>(".box")];
    boxes.find((one) => one.dataset["section"] === focused)?.focus();
  }
}

function box(id: string, title: string, said: string, onBox: (id: string) => void): HTMLElement {
  return h("button", { type: "button", class: "box", "data-section": id, click: () => onBox(id) },
    h("strong", {}, title), said ? h("span", {}, said) : null);
}

function node(title: string): HTMLElement {
  return h("div", { class: "box end" }, h("strong", {}, title));
}

/** Of a UE: that it is one, and how well it hears. */
function quality(parsed: Parsed, index: number): string {
  const sinr = at(parsed.values, ["radio", "ue", index, "channel", "sinr_db"]);
  return typeof sinr === "number" ? `UE, ${digits(sinr)} dB` : "UE";
}

const SHOWN: [key: string, unit: string][] = [
  ["rate_mbps", "Mb/s"],
  ["queue_packets", "packets"],
  ["queue_bytes", "bytes"],
  ["aqm", ""],
  ["delay_ms", "ms"],
  ["interval_ms", "ms"],
  ["timeout_s", "s"],
  ["mtu_bytes", "bytes"],
  ["probability", "%"],
  ["file", ""],
];

/** What matters most of a stage, in a few words. */
function detail(stage: Value): string {
  const keys = table(stage);
  const said = SHOWN.flatMap(([key, unit]) => {
    const value = keys[key];
    if (value === undefined || value === "drop-tail") return [];
    if (key === "probability") return [`${digits(100 * Number(value))} %`];
    return [`${typeof value === "number" ? digits(value) : String(value)} ${unit}`.trim()];
  });
  return (keys["enabled"] === false ? ["off", ...said] : said).slice(0, 3).join(", ");
}
