// The figures of a run as a table.

import { fill, h } from "./dom";
import { words } from "./findings";
import { figure } from "./numbers";
import type { Summary } from "./protocol";
import { figures } from "./series";

/** The figures of a run, beside those of the former one. */
export function showFigures(place: HTMLElement, now: Summary, former: Summary | undefined): void {
  const before = new Map((former ? figures(former) : []).map((one) => [`${one.name} ${one.metric}`, one.value]));
  const rows = figures(now).map(({ name, metric, value }) =>
    h("tr", { "data-figure": `${name} ${metric}` }, h("th", { scope: "row" }, name), h("td", {}, words(metric)),
      h("td", { class: "number now" }, figure(metric, value)),
      former ? h("td", { class: "number" }, figure(metric, before.get(`${name} ${metric}`))) : null));
  fill(place, h("table", {},
    h("thead", {}, h("tr", {}, ...["of", "figure", "now", ...(former ? ["before"] : [])].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows)));
}
