// The page: what its parts have to do with each other.

import { App } from "./app";
import { byId } from "./dom";
import { served, start, stateOf } from "./start";
import { fromFragment } from "./state";

async function main(): Promise<void> {
  const source = served();
  const app = new App(source);
  const linked = fromFragment(location.hash);
  await app.begin(linked ?? stateOf(await start()), linked !== null);
}

main().catch((error: unknown) => {
  byId("status").textContent = `The explorer did not start: ${String(error)}`;
});
