// Answers requests in Node, for `parity.rs`: node.mjs ENGINE.wasm, requests in JSON, one a line.
// Each answer is four numbers (seconds, bytes of the document, bytes of the tables, 1 if the engine
// panicked) as 8-byte floats, the least significant byte first, then both.

import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { engine } from "../../../explorer/src/engine.js";

const module = await WebAssembly.compile(readFileSync(process.argv[2]));
let ask = await engine(module);

for await (const request of createInterface({ input: process.stdin })) {
  const began = performance.now();
  let answer = { document: "", tables: new Uint8Array() };
  let panicked = 0;
  try {
    answer = ask(request);
  } catch (error) {
    answer.document = String(error.message);
    panicked = 1;
    ask = await engine(module);
  }
  const seconds = (performance.now() - began) / 1000;
  const document = Buffer.from(answer.document);
  const head = new Float64Array([seconds, document.length, answer.tables.length, panicked]);
  for (const part of [Buffer.from(head.buffer), document, answer.tables]) write(part);
}

/** Write all of it; a pipe takes a part at a time. */
function write(bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
