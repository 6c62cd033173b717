// What is expensive is asked for first.

import { byId } from "./dom";
import type { ExpensiveError } from "./lab";
import { digits } from "./numbers";

/** Ask whether an expensive run is wanted. */
export function agreed(error: ExpensiveError): Promise<boolean> {
  const dialog = byId<HTMLDialogElement>("expensive");
  const about = Number.isFinite(error.events) ? ` about ${digits(error.events / 1e6)} million events` : " very many events";
  const long = Number.isFinite(error.whole_ms) ? `, some ${digits(error.whole_ms / 1000)} s of computing` : "";
  byId("expensive-said").textContent = `This run would take${about}${long}. Run it anyway?`;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "run"), { once: true });
  });
}
