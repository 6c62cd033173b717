// The keys of a scenario: which there are, and what the engine's table of keys says of each.

import { title } from "./numbers";
import type { Parsed, Table, Value } from "./protocol";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  description?: string;
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  oneOf?: Schema[];
  enum?: string[];
  const?: string;
  default?: Value;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
}

export interface Key {
  /** Dotted, as `--set` takes it. */
  path: string;
  /** Its last part. */
  name: string;
  value: string | number | boolean;
  help: string;
  kind: "flag" | "choice" | "number" | "count" | "text";
  choices: string[];
  /** A word that may stand in place of a number: `unlimited`. */
  word: string | null;
  min: number | null;
  max: number | null;
  /** The scenario's text says it. */
  given: boolean;
}

/** Keys that belong together: a stage, a flow, a table of the radio. */
export interface Section {
  id: string;
  title: string;
  help: string;
  keys: Key[];
}

/** Parts of a scenario in the order in which they are shown; others follow. */
const ORDER = ["path", "radio", "proxy", "flow", "run"];

/** Steps from the root of a document to a value in it. */
type Path = (string | number)[];

export class Keys {
  constructor(readonly root: Schema) {}

  /** All keys that have a value, in the order of the resolved scenario. */
  sections(parsed: Parsed): Section[] {
    const sections: Section[] = [];
    const into = (path: Path, title: string) => {
      const help = this.at(path.slice(), parsed.values)?.description?.replaceAll("`", "") ?? "";
      const section = { id: path.join("."), title, help, keys: [] };
      sections.push(section);
      return section;
    };
    const { values } = parsed;
    const order = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
    const parts = Object.entries(values).sort(([one], [other]) => order(one) - order(other));
    for (const [name, value] of parts) {
      if (name === "path") {
        for (const [direction, stages] of Object.entries(table(value))) {
          list(stages).forEach((stage, index) => {
            const path = ["path", direction, index];
            const way = direction === "down" ? "Downlink" : direction === "up" ? "Uplink" : direction;
            const section = into(path, `${way} ${index + 1}: ${String(table(stage)["stage"])}`);
            this.#collect(path, stage, parsed, section.keys);
          });
        }
      } else if (name === "flow") {
        list(value).forEach((flow, index) => {
          const section = into([name, index], `Flow: ${String(table(flow)["id"] ?? index)}`);
          this.#collect([name, index], flow, parsed, section.keys);
        });
      } else if (name === "radio") {
        this.#radio(["radio"], value, "Radio", parsed, into);
      } else if (isTable(value) && name !== "program" && name !== "profile") {
        const section = into([name], name === "run" ? "Run" : name);
        this.#collect([name], value, parsed, section.keys);
      }
    }
    return sections.filter((section) => section.keys.length > 0);
  }

  /** What the table of keys says of a place; `values` says which variant of a table it is. */
  at(path: Path, values: Table): Schema | undefined {
    let schema: Schema | undefined = this.root;
    let value: Value | undefined = values;
    for (const step of path) {
      schema = this.#variant(schema, value);
      if (!schema) return undefined;
      if (typeof step === "number") schema = schema.items;
      else if (schema.properties?.[step]) schema = schema.properties[step];
      else schema = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
      value = within(value, step);
    }
    return this.#variant(schema, value);
  }

  /** Keys that may stand in a table, for who writes a scenario. */
  names(path: Path, values: Table): [name: string, schema: Schema][] {
    const schema = this.at(path, values);
    const variants = schema?.oneOf?.some((one) => one.properties) ? schema.oneOf : [schema];
    const found = new Map<string, Schema>();
    for (const one of variants) {
      for (const [name, known] of Object.entries(one?.properties ?? {})) {
        if (!found.has(name)) found.set(name, this.#leaf(known));
      }
    }
    return [...found];
  }

  #leaf(schema: Schema): Schema {
    return schema.$ref ? { ...this.#deref(schema), ...schema } : schema;
  }

  #deref(schema: Schema): Schema {
    const name = schema.$ref?.split("/").pop();
    return (name && this.root.$defs?.[name]) || schema;
  }

  #variant(schema: Schema | undefined, value: Value | undefined): Schema | undefined {
    if (!schema) return undefined;
    const found = this.#deref(schema);
    if (!found.oneOf?.some((one) => one.properties)) return found;
    const fits = (one: Schema) =>
      Object.entries(one.properties ?? {}).some(
        ([name, known]) => known.const !== undefined && within(value, name) === known.const,
      );
    return found.oneOf.find(fits) ?? found;
  }

  #radio(
    path: Path,
    value: Value,
    title: string,
    parsed: Parsed,
    into: (path: Path, title: string) => Section,
  ): void {
    const section = into(path, title);
    for (const [name, each] of Object.entries(table(value))) {
      const inner = [...path, name];
      if (Array.isArray(each) && each.some(isTable)) {
        each.forEach((one, index) => {
          const called = `${name.toUpperCase()} ${String(table(one)["name"] ?? index)}`;
          this.#radio([...inner, index], one, called, parsed, into);
        });
      } else if (isTable(each)) {
        const title_ = title === "Radio" ? `Radio: ${plain(name)}` : `${title}: ${plain(name)}`;
        this.#collect(inner, each, parsed, into(inner, title_).keys);
      } else this.#key(inner, each, parsed, section.keys);
    }
  }

  #collect(path: Path, value: Value, parsed: Parsed, keys: Key[]): void {
    for (const [name, each] of Object.entries(table(value))) {
      if (isTable(each)) this.#collect([...path, name], each, parsed, keys);
      else this.#key([...path, name], each, parsed, keys);
    }
  }

  #key(path: Path, value: Value, parsed: Parsed, keys: Key[]): void {
    if (typeof value === "object") return;
    const schema = this.at(path, parsed.values);
    const name = String(path[path.length - 1]);
    // What a stage or a flow is stays as it is: other keys would be needed.
    if (!schema || schema.const !== undefined) return;
    const parts = schema.oneOf ?? [schema];
    const word = parts.find((one) => one.const !== undefined)?.const ?? null;
    const main = parts.find((one) => one.const === undefined) ?? schema;
    const kind =
      main.type === "boolean"
        ? "flag"
        : main.enum
          ? "choice"
          : main.type === "integer"
            ? "count"
            : main.type === "number"
              ? "number"
              : "text";
    keys.push({
      path: path.join("."),
      name: nameWithin(path),
      value,
      help: (schema.description ?? "").replaceAll("`", ""),
      kind,
      choices: main.enum ?? [],
      word,
      min: main.minimum ?? main.exclusiveMinimum ?? null,
      max: main.maximum ?? null,
      given: !NAMES.has(name) && (at(parsed.given, path) !== undefined || name === "seed"),
    });
  }
}

const NAMES = new Set(["id", "name"]);

/** `flow.0.rto.min_ms` is `rto.min_ms` in its section. */
function nameWithin(path: Path): string {
  const last = path.slice(path.findLastIndex((step) => typeof step === "number") + 1);
  return (last.length > 2 || path[0] === "flow" ? last : last.slice(-1)).join(".");
}

/** A value of a document. */
export function at(values: Value | undefined, path: Path): Value | undefined {
  return path.reduce<Value | undefined>(within, values);
}

function within(value: Value | undefined, step: string | number): Value | undefined {
  if (Array.isArray(value)) return typeof step === "number" ? value[step] : undefined;
  return isTable(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

export function isTable(value: Value | undefined): value is Table {
  return typeof value === "object" && !Array.isArray(value);
}

export function table(value: Value | undefined): Table {
  return isTable(value) ? value : {};
}

export function list(value: Value | undefined): Value[] {
  return Array.isArray(value) ? value : [];
}

/** `harq_up` as a title: HARQ, uplink. */
function plain(name: string): string {
  return name.endsWith("_up") ? `${title(name.slice(0, -3))}, uplink` : title(name);
}
