// Saves the scenario, tables and charts as files.

import type { Charts } from "../charts";
import { byId, download, fill, h } from "../dom";
import { csv } from "../series";
import type { Shown, Store } from "../store";

export class DownloadsPanel {
  readonly #list = byId<HTMLSelectElement>("downloads");

  constructor(readonly store: Store, readonly charts: Charts) {
    this.#list.addEventListener("change", () => {
      this.#download(this.#list.value);
      this.#list.value = "";
    });
    store.on("shown", (run) => this.#offer(run));
  }

  #offer({ tables }: Shown): void {
    const names = [...tables].filter(([, table]) => table.numRows > 0).map(([name]) => name);
    const option = (value: string, text: string) => h("option", { value }, text);
    fill(this.#list, option("", "Download …"), option("scenario", "scenario (TOML)"),
      ...names.map((name) => option(`csv ${name}`, `table ${name} (CSV)`)),
      ...this.charts.shown.map((chart) => option(`svg ${chart.id}`, `chart ${chart.title} (SVG)`)));
  }

  #download(what: string): void {
    const { shown } = this.store;
    if (!shown || !what) return;
    const [kind, name] = what.split(" ");
    const stem = shown.parsed.name;
    if (kind === "scenario") download(`${stem}.toml`, "application/toml", shown.parsed.resolved_toml);
    else if (kind === "csv") download(`${stem}-${name}.csv`, "text/csv", csv(shown.tables.get(name!)!));
    else download(`${stem}-${name}.svg`, "image/svg+xml", this.charts.svg(name!) ?? "");
  }
}
