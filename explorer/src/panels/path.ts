// Draws the path as boxes, below the scenario's title.

import { byId, fill, h, rest } from "../dom";
import { drawPath } from "../path";
import type { Store } from "../store";

export class PathPanel {
  constructor(store: Store) {
    store.on("shown", async ({ parsed }) => {
      await rest();
      drawPath(byId("path"), parsed, (id) => store.emit("reveal", id));
      const left = parsed.programs.length > 0 ? ` Programs are not simulated: ${parsed.programs.join(", ")}.` : "";
      fill(byId("title"), parsed.title || parsed.name, h("span", { class: "help" }, left));
    });
  }
}
