// Draws the flows of a capture: levels of bins, and single packets where these are kept.
const views = JSON.parse(document.getElementById("views").textContent);
const canvas = document.getElementById("flow");
const which = document.getElementById("which");
const where = document.getElementById("where");
const context = canvas.getContext("2d");
const MARGIN = { left: 64, right: 10, top: 18, bottom: 24 };
const GAP = 30;
const SHARES = [0.44, 0.02, 0.18, 0.18, 0.18];
const LEAST_MS = 0.05;

function bytes(text) {
  return Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer;
}
const rough = (text) => new Float32Array(bytes(text));
const exact = (text) => new Float64Array(bytes(text));
function unpack(view) {
  if (view.unpacked) return view;
  for (const level of view.levels)
    for (const key of Object.keys(level)) if (key !== "bin_ms") level[key] = rough(level[key]);
  const packets = view.packets;
  for (const key of Object.keys(packets))
    packets[key] = ["length", "again", "rtt"].includes(key) ? rough(packets[key]) : exact(packets[key]);
  view.unpacked = true;
  return view;
}

let view = unpack(views[0]);
let from = 0;
let to = view.duration_ms;
let drawn = 0;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    ink: named("--ink"), muted: named("--muted"), grid: named("--grid") || named("--line"), axis: named("--axis"),
    sent: named("--c0"), ack: named("--c2"), edge: named("--c1"), again: named("--bad"), sack: named("--c4"),
  };
}

// The coarsest level with a bin for each pixel, or else the finest.
function levelFor(pixels) {
  const wanted = (to - from) / pixels;
  return view.levels.find((level) => level.bin_ms <= wanted) || view.levels[view.levels.length - 1];
}
function isWhole() {
  const ranges = view.packets.ranges;
  for (let i = 0; i < ranges.length; i += 2) if (ranges[i] <= from + 1e-6 && to <= ranges[i + 1] + 1e-6) return true;
  return false;
}
function lowest(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}
function nice(top) {
  if (!(top > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(top));
  return [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= top);
}
const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]];
// A quantity with an SI prefix: 200 MB, 10 ms.
function quantity(value, unit) {
  const [scale, prefix] = PREFIXES.find(([each]) => Math.abs(value) >= each * (1 - 1e-9)) || PREFIXES[3];
  return value ? `${+(value / scale).toPrecision(6)} ${prefix}${unit}` : "0";
}
// Round values between two ends: 1, 2 or 5 times a power of ten apart, four steps at most.
function ticks(low, high) {
  if (!(high > low)) return [low];
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => (high - low) / each <= 4);
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++) found.push(count * step);
  return found;
}

function draw() {
  const began = performance.now();
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  const shown = colours();
  const plot = { left: MARGIN.left, width: Math.max(50, width - MARGIN.left - MARGIN.right) };
  const room = height - MARGIN.top - MARGIN.bottom - GAP * (SHARES.length - 1);
  const single = isWhole();
  const level = levelFor(plot.width);
  const x = (ms) => plot.left + ((ms - from) / (to - from)) * plot.width;
  const first = Math.max(0, Math.floor(from / level.bin_ms));
  const last = Math.min(level.low.length - 1, Math.ceil(to / level.bin_ms));
  let top = MARGIN.top;
  const panels = [sequence, limits, flight, trips, rate];
  panels.forEach((panel, index) => {
    const area = { top, height: room * SHARES[index] };
    context.save();
    panel({ shown, plot, area, x, level, first, last, single });
    context.restore();
    top += area.height + GAP;
  });
  axis(shown, plot, height - MARGIN.bottom + 4, x);
  drawn = performance.now() - began;
  canvas.dataset.drawn = drawn.toFixed(2);
  canvas.dataset.single = single ? "1" : "0";
  const detail = single ? "single packets" : `bins of ${quantity(level.bin_ms / 1000, "s")}`;
  where.textContent = `${((view.begin_ms + from) / 1000).toFixed(4)} to ${((view.begin_ms + to) / 1000).toFixed(4)} s of the capture; ${detail}.`;
}

// The axis of a panel; a value of 1 is `factor` of the unit.
function frame(name, { shown, plot, area }, low, high, unit, factor) {
  context.fillStyle = shown.ink;
  context.textAlign = "left";
  context.fillText(name, plot.left, area.top - 5);
  context.textAlign = "right";
  context.fillStyle = shown.muted;
  context.strokeStyle = shown.grid;
  context.lineWidth = 1;
  const at = (value) => area.top + area.height * (1 - (value - low) / (high - low || 1));
  for (const value of ticks(low, high)) {
    const y = at(value);
    context.beginPath();
    context.moveTo(plot.left, y);
    context.lineTo(plot.left + plot.width, y);
    context.stroke();
    context.fillText(quantity(value * factor, unit), plot.left - 6, y + 4);
  }
  context.beginPath();
  context.rect(plot.left, area.top - 1, plot.width, area.height + 2);
  context.clip();
  return at;
}
function axis(shown, plot, y, x) {
  context.fillStyle = shown.muted;
  context.textAlign = "center";
  const step = nice((to - from) / 8);
  // Round times of the capture, not of the flow.
  for (let at = Math.ceil((view.begin_ms + from) / step) * step; at <= view.begin_ms + to; at += step)
    context.fillText(`${+(at / 1000).toPrecision(9)} s`, x(at - view.begin_ms), y + 12);
}
function bounds(level, first, last, low, high) {
  let least = Infinity, most = -Infinity;
  for (let i = first; i <= last; i++) {
    if (low[i] < least) least = low[i];
    if (high[i] > most) most = high[i];
  }
  return least <= most ? [least, most] : [0, 1];
}
function steps(level, values, first, last, x, y) {
  context.beginPath();
  let open = false;
  for (let i = Math.max(0, first - 1); i <= last; i++) {
    if (Number.isNaN(values[i])) continue;
    const at = x((i + 0.5) * level.bin_ms);
    if (open) context.lineTo(at, y(values[i])); else context.moveTo(at, y(values[i]));
    open = true;
  }
  context.stroke();
}

function sequence(panel) {
  const { shown, level, first, last, x, single } = panel;
  const packets = view.packets;
  let [low, high] = bounds(level, first, last, level.low, level.high);
  let ranges = null;
  if (single) {
    ranges = [lowest(packets.sent, from), lowest(packets.sent, to + 1e-9)];
    low = Infinity; high = -Infinity;
    for (let i = ranges[0]; i < ranges[1]; i++) {
      low = Math.min(low, packets.offset[i]);
      high = Math.max(high, packets.offset[i] + packets.length[i]);
    }
    const acks = [lowest(packets.acked_at, from), lowest(packets.acked_at, to + 1e-9)];
    for (let i = acks[0]; i < acks[1]; i++) low = Math.min(low, packets.acked[i]);
    if (!(low < high)) [low, high] = [0, 1];
  } else {
    for (let i = first; i <= last; i++) if (level.acked[i] < low) low = level.acked[i];
  }
  const y = frame("data since the beginning", panel, low, high + (high - low) * 0.05, "B", 1);
  context.lineWidth = 1;
  if (!single) {
    const wide = Math.max(1, x(level.bin_ms) - x(0));
    for (let i = first; i <= last; i++) {
      if (Number.isNaN(level.low[i])) continue;
      context.fillStyle = level.again[i] > 0 ? shown.again : shown.sent;
      const above = y(level.high[i]);
      context.fillRect(x(i * level.bin_ms), above, wide, Math.max(1.5, y(level.low[i]) - above));
    }
    context.strokeStyle = shown.ack;
    steps(level, level.acked, first, last, x, y);
    context.strokeStyle = shown.edge;
    steps(level, level.edge, first, last, x, y);
    return;
  }
  for (let i = ranges[0]; i < ranges[1]; i++) {
    context.strokeStyle = packets.again[i] ? shown.again : shown.sent;
    context.lineWidth = packets.again[i] ? 2.5 : 1.5;
    context.beginPath();
    context.moveTo(x(packets.sent[i]), y(packets.offset[i]));
    context.lineTo(x(packets.sent[i]), Math.min(y(packets.offset[i] + packets.length[i]), y(packets.offset[i]) - 1.5));
    context.stroke();
  }
  context.lineWidth = 1;
  context.strokeStyle = shown.sack;
  for (let i = lowest(packets.sack_at, from); i < packets.sack_at.length && packets.sack_at[i] <= to; i++) {
    context.beginPath();
    context.moveTo(x(packets.sack_at[i]), y(packets.sack_from[i]));
    context.lineTo(x(packets.sack_at[i]), y(packets.sack_to[i]));
    context.stroke();
  }
  for (const [values, colour] of [[packets.acked, shown.ack], [packets.edge, shown.edge]]) {
    context.strokeStyle = colour;
    context.beginPath();
    let before = null;
    for (let i = Math.max(0, lowest(packets.acked_at, from) - 1); i < values.length && packets.acked_at[i] <= to; i++) {
      if (Number.isNaN(values[i])) continue;
      const at = x(packets.acked_at[i]);
      if (before !== null) context.lineTo(at, before); else context.moveTo(at, y(values[i]));
      before = y(values[i]);
      context.lineTo(at, before);
    }
    context.stroke();
  }
}
// One shape from bin to bin: bars of their own would leave seams between them.
function filled(panel, values, name, unit, factor, colour) {
  const { level, first, last, x } = panel;
  const found = [];
  let most = 0;
  for (let i = first; i <= last; i++) {
    const value = values(i) || 0;
    found.push(value);
    if (value > most) most = value;
  }
  const y = frame(name, panel, 0, nice(most), unit, factor);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x(first * level.bin_ms), y(0));
  found.forEach((value, index) => {
    context.lineTo(x((first + index) * level.bin_ms), y(value));
    context.lineTo(x((first + index + 1) * level.bin_ms), y(value));
  });
  context.lineTo(x((last + 1) * level.bin_ms), y(0));
  context.fill();
}
// By number: path or congestion window, receive window, nothing to send, loss recovery.
const LIMITS = ["sent", "edge", "axis", "again"];
function limits({ shown, plot, area, level, first, last, x }) {
  context.textAlign = "left";
  context.fillStyle = shown.ink;
  const unseen = "not visible next to the receiver";
  context.fillText(view.limits ? "what limits the sender" : unseen, plot.left, area.top - 5);
  if (!view.limits) return;
  context.beginPath();
  context.rect(plot.left, area.top, plot.width, area.height);
  context.clip();
  const wide = Math.max(1, x(level.bin_ms) - x(0));
  for (let i = first; i <= last; i++) {
    if (Number.isNaN(level.limit[i])) continue;
    context.fillStyle = shown[LIMITS[level.limit[i]]];
    context.fillRect(x(i * level.bin_ms), area.top, wide + 0.5, area.height);
  }
}
// Without a packet in a bin, what was sent and not yet delivered stays in flight.
function flight(panel) {
  const { level, first } = panel;
  let sent = 0, delivered = 0;
  const value = (i) => {
    const left = sent - delivered;
    sent = Math.max(sent, level.high[i] || 0);
    delivered += level.delivered[i] || 0;
    return level.flight[i] > 0 ? level.flight[i] : Math.max(0, left);
  };
  for (let i = 0; i < first; i++) value(i);
  filled(panel, value, "data in flight", "B", 1, panel.shown.sent);
}
function trips(panel) {
  const { level, first, last, x, shown, single } = panel;
  const [, high] = bounds(level, first, last, level.rtt_low, level.rtt_high);
  const y = frame("round trip", panel, 0, nice(high), "s", 1e-3);
  context.fillStyle = shown.sent;
  const packets = view.packets;
  if (single) {
    for (let i = lowest(packets.sent, from); i < packets.sent.length && packets.sent[i] <= to; i++)
      if (!Number.isNaN(packets.rtt[i])) context.fillRect(x(packets.sent[i] + packets.rtt[i]) - 1, y(packets.rtt[i]) - 1, 2.5, 2.5);
    return;
  }
  const wide = Math.max(1, x(level.bin_ms) - x(0));
  for (let i = first; i <= last; i++) {
    if (Number.isNaN(level.rtt_low[i])) continue;
    const above = y(level.rtt_high[i]);
    context.fillRect(x(i * level.bin_ms), above, wide, Math.max(1.5, y(level.rtt_low[i]) - above));
  }
}
function rate(panel) {
  // Over a fiftieth of what is seen, so that batches do not look like rates.
  const { level, first, last } = panel;
  const span = Math.max(1, Math.round((to - from) / 50 / level.bin_ms));
  const sums = new Float64Array(last - first + 2);
  for (let i = first; i <= last; i++) sums[i - first + 1] = sums[i - first] + (level.delivered[i] || 0);
  const value = (i) => {
    const low = Math.max(0, i - first - span), high = Math.min(last - first + 1, i - first + span + 1);
    return ((sums[high] - sums[low]) * 8) / ((high - low) * level.bin_ms) / 1000;
  };
  filled(panel, value, "throughput", "b/s", 1e6, panel.shown.ack);
}

function show(low, high) {
  const span = Math.min(Math.max(high - low, LEAST_MS), view.duration_ms);
  const begin = Math.min(Math.max((low + high - span) / 2, 0), view.duration_ms - span);
  [from, to] = [begin, begin + span];
  draw();
}
function zoom(factor, centre) {
  const at = centre === undefined ? (from + to) / 2 : centre;
  show(at - (at - from) * factor, at + (to - at) * factor);
}
function choose(index) {
  which.value = String(index);
  view = unpack(views[index]);
  show(0, view.duration_ms);
}
function start() {
  const rounds = view.packets.ranges.length ? view.packets.ranges[1] : view.duration_ms;
  show(0, Math.min(rounds, view.duration_ms));
}
function nextLoss() {
  const packets = view.packets;
  const middle = (from + to) / 2 + 1e-6;
  for (let i = 0; i < packets.sent.length; i++)
    if (packets.again[i] && packets.sent[i] > (to - from < view.duration_ms ? middle : 0)) {
      const around = Math.min(view.duration_ms, 400) / 2;
      show(packets.sent[i] - around, packets.sent[i] + around);
      return;
    }
  show(0, view.duration_ms);
}
function toTime(seconds, file) {
  if (view.file !== file) choose(views.findIndex((one) => one.file === file));
  const at = seconds * 1000 - view.begin_ms;
  const around = Math.max(50, view.duration_ms / 40);
  show(at - around, at + around);
  canvas.scrollIntoView({ block: "nearest" });
}
function toFrame(number, file) {
  for (let index = 0; index < views.length; index++) {
    if (views[index].file !== file) continue;
    const packets = unpack(views[index]).packets;
    const found = packets.frame.indexOf(number);
    if (found < 0) continue;
    if (view !== views[index]) choose(index);
    show(packets.sent[found] - 60, packets.sent[found] + 60);
    canvas.scrollIntoView({ block: "nearest" });
    return;
  }
  where.textContent = `Packet ${number} is not among the packets that are kept individually.`;
}

const actions = { whole: () => show(0, view.duration_ms), start, next: nextLoss, in: () => zoom(0.5), out: () => zoom(2) };
for (const button of document.querySelectorAll(".go"))
  button.addEventListener("click", () => {
    const { zoom: action, frame: number, at, file } = button.dataset;
    if (action) actions[action]();
    else if (number) toFrame(Number(number), Number(file));
    else toTime(Number(at), Number(file));
  });
which.addEventListener("change", () => choose(Number(which.value)));
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const share = (event.offsetX - MARGIN.left) / (canvas.clientWidth - MARGIN.left - MARGIN.right);
  zoom(event.deltaY > 0 ? 1.25 : 0.8, from + share * (to - from));
}, { passive: false });
let held = null;
canvas.addEventListener("pointerdown", (event) => { held = event.offsetX; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointerup", () => { held = null; });
canvas.addEventListener("pointermove", (event) => {
  if (held === null) return;
  const moved = ((held - event.offsetX) / (canvas.clientWidth - MARGIN.left - MARGIN.right)) * (to - from);
  held = event.offsetX;
  show(from + moved, to + moved);
});
canvas.addEventListener("keydown", (event) => {
  const tenth = (to - from) / 10;
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: actions.whole, n: nextLoss,
    ArrowLeft: () => show(from - tenth, to - tenth), ArrowRight: () => show(from + tenth, to + tenth),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
new ResizeObserver(draw).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
