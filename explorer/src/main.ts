// The page: what its parts have to do with each other.

import { open } from "./app";
import { byId } from "./dom";
import { inlined, inside, served, start, stateOf } from "./start";
import { figureOf, fromFragment } from "./state";

async function main(): Promise<void> {
  const own = inside();
  if (own) {
    // A report: its text is given, and its address is the report's.
    for (const id of ["share", "text-panel"]) byId(id).hidden = true;
    return open(inlined(own), stateOf(own.start), {});
  }
  const linked = fromFragment(location.hash);
  const figure = figureOf(location.hash);
  if (linked && figure) {
    document.body.classList.add("figure");
    if (figure.chart === "path") document.body.classList.add("of-path");
    return open(served(), linked, { given: true, figure });
  }
  await open(served(), linked ?? stateOf(await start()), { linked: true, given: linked !== null });
}

main().catch((error: unknown) => {
  byId("status").textContent = `The explorer did not start: ${String(error)}`;
});
