// Figures as text.

/** Three significant digits, and all digits of a larger whole number. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size >= 100) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
}

/** A figure with its unit, by the end of its name. */
export function figure(metric: string, value: number | null | undefined): string {
  // The run's end cut the transfer off.
  if (value === null && metric === "completed_s") return "did not complete";
  if (value === null || value === undefined) return "–";
  if (metric.includes("_mbps")) {
    return value < 1 ? `${digits(value * 1000)} kb/s` : `${digits(value)} Mb/s`;
  }
  if (metric.includes("_ms")) return value >= 1000 ? `${digits(value / 1000)} s` : `${digits(value)} ms`;
  if (metric.endsWith("_s")) return `${digits(value)} s`;
  if (metric.includes("share") || metric.includes("fraction")) return `${digits(value * 100)} %`;
  return digits(value);
}

const UNITS: [suffix: string, unit: string][] = [
  ["_mbps", "Mb/s"],
  ["_kbps", "kb/s"],
  ["_ms", "ms"],
  ["_s", "s"],
  ["_packets", "packets"],
  ["_bytes", "bytes"],
  ["_segments", "segments"],
  ["_slots", "slots"],
  ["_symbols", "symbols"],
  ["_subframes", "subframes"],
  ["_percent", "%"],
  ["_db", "dB"],
  ["_dbm", "dBm"],
  ["_mhz", "MHz"],
  ["_khz", "kHz"],
  ["_ghz", "GHz"],
  ["_m", "m"],
  ["_kmh", "km/h"],
];

const ACRONYMS = new Set(["ack", "ambr", "aqm", "bbr", "bler", "bsr", "drx", "ecn", "gtpu", "harq", "icw", "mcs", "mss", "mtu",
  "nr", "prb", "prbs", "rach", "rlc", "rrc", "rto", "rtt", "sack", "sinr", "sr", "tcp", "ue"]);

/** A key as words: its name without its unit, acronyms in capitals. */
export function title(key: string): string {
  const suffix = UNITS.find(([one]) => key.endsWith(one))?.[0] ?? "";
  const bare = key.slice(0, key.length - suffix.length) || key;
  return bare.split(/[._]/).map((word) => (ACRONYMS.has(word) ? word.toUpperCase() : word)).join(" ");
}

/** The unit that a key's name ends with. */
export function unit(key: string): string {
  const found = UNITS.find(([suffix]) => key.endsWith(suffix));
  return found?.[1] ?? "";
}
