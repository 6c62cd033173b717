// The engine: airpath as WebAssembly. A worker of the page and the parity test of `crates/wasm`
// (in Node) use this file as it is, so it stands on what both have.
//
// @ts-check

/** @typedef {(kind: "run" | "runs", value: number, events: number) => boolean} Progress */
/** @typedef {{ document: string, tables: Uint8Array<ArrayBuffer> }} Answer */

/** The engine has panicked: this instance is of no use any more. */
export class PanicError extends Error {
  name = "PanicError";
}

/**
 * Make an instance.
 *
 * @param {WebAssembly.Module} module
 * @returns {Promise<(request: string, progress?: Progress) => Answer>} what answers requests; it
 *   throws a {@link PanicError} when the engine panics or has no memory left
 */
export async function engine(module) {
  /** @type {Progress} */
  let told = () => true;
  let panic = "";
  const instance = await WebAssembly.instantiate(module, {
    airpath: {
      /** @type {(kind: number, value: number, events: number) => number} */
      progress: (kind, value, events) => (told(kind === 0 ? "run" : "runs", value, events) ? 1 : 0),
      /** @type {(place: number, bytes: number) => void} */
      panicked: (place, bytes) => {
        panic = text(place, bytes);
      },
    },
  });
  const exports = /** @type {Record<string, any>} */ (instance.exports);

  /** @type {(place: number, bytes: number) => Uint8Array} */
  const memory = (place, bytes) => new Uint8Array(exports.memory.buffer, place >>> 0, bytes >>> 0);
  /** @type {(place: number, bytes: number) => string} */
  const text = (place, bytes) => new TextDecoder().decode(memory(place, bytes));

  return (request, progress = () => true) => {
    told = progress;
    panic = "";
    try {
      const bytes = new TextEncoder().encode(request);
      memory(exports.request_room(bytes.length), bytes.length).set(bytes);
      exports.run_request();
      const document = text(exports.document_place(), exports.document_bytes());
      // The one copy: out of the engine's memory, into a buffer that goes to the page as it is.
      const tables = memory(exports.tables_place(), exports.tables_bytes()).slice();
      return { document, tables: /** @type {Uint8Array<ArrayBuffer>} */ (tables) };
    } catch (error) {
      throw new PanicError(panic || String(error));
    }
  };
}
