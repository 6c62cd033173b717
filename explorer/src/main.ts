// The page: what its parts have to do with each other.

import { App } from "./app";
import { byId } from "./dom";
import { inlined, inside, served, start, stateOf } from "./start";
import { figureOf, fromFragment } from "./state";

async function main(): Promise<void> {
  const own = inside();
  if (own) {
    // A report: its text is given, and its address is the report's.
    for (const id of ["share", "text-panel"]) byId(id).hidden = true;
    await new App(inlined(own), false).begin(stateOf(own.start), false);
    return;
  }
  const linked = fromFragment(location.hash);
  const figure = figureOf(location.hash);
  if (linked && figure) {
    document.body.classList.add("figure");
    return new App(served(), false, figure).begin(linked, true);
  }
  await new App(served(), true).begin(linked ?? stateOf(await start()), linked !== null);
}

main().catch((error: unknown) => {
  byId("status").textContent = `The explorer did not start: ${String(error)}`;
});
