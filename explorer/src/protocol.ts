// What the page and its workers say to each other, and what the engine answers.

import type { RunSummary } from "./documents";

export type {
  Explanation,
  Finding,
  Gain,
  Quantiles,
  RunSummary as Summary,
  VariantFigure as Cell,
  VariantRow as Row,
} from "./documents";

/** A scenario and what is set on top of it, as the engine takes it. */
export interface Given {
  name: string;
  text: string;
  sets: string[];
}

export type Request =
  | { op: "shipped" }
  | { op: "schema" }
  | { op: "reference" }
  | ({ op: "parse" } & Given)
  | ({ op: "simulate"; seed?: number; accounted?: boolean } & Given)
  | ({ op: "explain"; seed?: number; repeat?: number; budget: "quick" | "full" } & Given)
  | ({ op: "compare"; variants: string[][]; seeds: number[] } & Given)
  | ({ op: "packets"; seed?: number; from_s: number; to_s: number; most: number; sampled?: boolean; in_flight?: boolean } & Given);

/** Page to worker. */
export interface Order {
  id: number;
  request: Request;
  /** A run that would handle more events stops, and says so. */
  mostEvents?: number;
  /** A run that would take longer stops, and says so. */
  most_ms?: number;
  /** How long it lasts in simulated time, by which its events are estimated. */
  duration_s?: number;
}

/** Worker to page. */
export type Message =
  | { id: number; progress: number }
  | { id: number; document: string; tables: Uint8Array<ArrayBuffer>; wall_ms: number }
  | { id: number; events: number; whole_ms: number }
  | { id: number; panic: string };

/** Something that is wrong with a scenario. */
export interface Problem {
  line: number | null;
  column: number | null;
  set: string | null;
  message: string;
  help: string | null;
  allowed: string | null;
}

export type Value = string | number | boolean | Value[] | { [key: string]: Value };
export type Table = { [key: string]: Value };

export interface Shipped {
  name: string;
  title: string;
  text: string;
}

export interface FlowInfo {
  index: number;
  id: string;
  kind: "bulk" | "file" | "ping" | "udp";
  direction: "down" | "up";
  congestion: string | null;
}

/** A scenario that can be run. */
export interface Parsed {
  name: string;
  title: string;
  seed: number;
  duration_s: number;
  sha256: string;
  resolved_toml: string;
  values: Table;
  given: Table;
  flows: FlowInfo[];
  ues: string[] | null;
  programs: string[];
}

export interface TableEntry {
  name: string;
  rows: number;
  offset: number;
  bytes: number;
}

export interface Run {
  summary: RunSummary;
  tables: TableEntry[];
  seed: number;
}

/** One packet between the ends. */
export interface Packet {
  sent_s: number;
  /** When it was between wires and radio. */
  base_s: number | null;
  arrived_s: number | null;
  flow: number;
  down: boolean;
  bytes: number;
  kind: string;
  sequence: number;
  ack: number | null;
}

export interface Packets {
  packets: Packet[];
  more: number;
  /** Of each flow and direction, one packet of this many is there. */
  every: number;
  flows: string[];
  tables: TableEntry[];
}
