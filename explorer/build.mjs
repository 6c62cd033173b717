// Bundles the explorer: node build.mjs ENGINE.wasm FOLDER
//
// The folder gets the page, its script, its worker, its style and the engine, and nothing that a
// browser would have to fetch from elsewhere. LICENCES.txt names what is inside and under which terms.

import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const [engine, out] = process.argv.slice(2);
if (!engine || !out) throw new Error("node build.mjs ENGINE.wasm FOLDER");

const MOST_BYTES = 4_500_000;
const MOST_COMPRESSED = 1_300_000;
const ALLOWED = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD"];

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const common = {
  absWorkingDir: here,
  outdir: out,
  bundle: true,
  minify: true,
  target: "es2022",
  format: "esm",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};
const results = [
  await build({ ...common, entryPoints: ["src/main.ts", "src/editor.ts", "src/style.css"] }),
  await build({ ...common, entryPoints: ["src/worker.ts"], format: "iife" }),
];
copyFileSync(join(here, "src/index.html"), join(out, "index.html"));
writeFileSync(join(out, "airpath.wasm"), stripped(readFileSync(engine)));
const packages = bundled(results.flatMap((result) => Object.keys(result.metafile.inputs)));
writeFileSync(join(out, "LICENCES.txt"), packages.map(terms).join("\n"));

const files = readdirSync(out).map((name) => [name, readFileSync(join(out, name))]);
const whole = files.reduce((sum, [, bytes]) => sum + bytes.length, 0);
// The editor comes when it is opened.
const first = files.filter(([name]) => !/^(editor|LICENCES)/.test(name));
const compressed = first.reduce((sum, [, bytes]) => sum + gzipSync(bytes, { level: 9 }).length, 0);
console.log(`explorer: ${whole} bytes, of which the first load is ${compressed} compressed; ${packages.length} packages`);
if (whole > MOST_BYTES) throw new Error(`the assets may have ${MOST_BYTES} bytes`);
if (compressed > MOST_COMPRESSED) throw new Error(`the first load may have ${MOST_COMPRESSED} bytes`);

/** The engine without its custom sections: names of functions, which no browser needs. */
function stripped(bytes) {
  const kept = [bytes.subarray(0, 8)];
  for (let at = 8; at < bytes.length; ) {
    const begin = at++;
    let length = 0;
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = bytes[at++];
      length += (byte & 127) * 2 ** shift;
      more = byte > 127;
    }
    at += length;
    if (bytes[begin] !== 0) kept.push(bytes.subarray(begin, at));
  }
  return Buffer.concat(kept);
}

/** The packages that files of the bundles come from. */
function bundled(inputs) {
  const found = new Set();
  for (const input of inputs) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (name) found.add(name);
  }
  return [...found].sort();
}

/** What a package's licence says. */
function terms(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (!ALLOWED.includes(license)) throw new Error(`${name} is ${license}, which may not be shipped`);
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one) && statSync(join(folder, one)).isFile());
  const text = file ? readFileSync(join(folder, file), "utf8") : "";
  return `${name} ${version}: ${license}\n\n${text}\n`;
}
