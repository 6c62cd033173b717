// Controls, made of the table of keys: a section for each part of the scenario, with what its text
// says and what one often wants to change in front, and the rest behind "more keys".

import { fill, h } from "./dom";
import type { Key, Section } from "./keys";
import { digits, title, unit } from "./numbers";
import { keyOf } from "./state";

/** Keys that stand in front even where the text does not say them. */
const FRONT = new Set([
  "congestion", "profile", "slow_start", "queue_packets", "queue_bytes", "aqm", "rate_mbps",
  "delay_ms", "jitter_ms", "sinr_db", "scheduler", "bandwidth_mhz", "buffer_bytes", "period_ms",
  "duration_s", "seed", "initial_window_segments", "max_transmissions", "target_ms", "interval_ms",
]);
/** What of the radio there is several times. */
const GROUP = /^radio\.(ue|neighbour)\.\d+/;
const STEPS = 200;
/** With more sections, those of flows are closed at first. */
const MOST_OPEN = 12;

interface Control {
  key: Key;
  show: (value: Key["value"]) => void;
  said: HTMLElement;
}

export class Controls {
  readonly #controls = new Map<string, Control>();
  #shape = "";
  #sections: Section[] = [];

  constructor(
    readonly place: HTMLElement,
    readonly onChange: (set: string) => void,
  ) {}

  /** Show what can be changed. The controls stay the same elements where the keys are the same. */
  show(sections: Section[]): void {
    const shape = sections.map((one) => one.id + one.title + one.keys.map((key) => key.path).join()).join("\n");
    this.#sections = sections;
    if (shape === this.#shape) {
      for (const key of sections.flatMap((one) => one.keys)) this.#controls.get(key.path)?.show(key.value);
      return;
    }
    const open = new Set([...this.place.querySelectorAll("details[open]")].map((one) => one.id));
    const focused = document.activeElement?.id;
    this.#shape = shape;
    this.#controls.clear();
    fill(this.place, ...this.#grouped(sections, open));
    if (focused) document.getElementById(focused)?.focus();
  }

  /** Open a section and go to its first control. */
  reveal(id: string): void {
    const found = this.#sections.find((one) => one.id === id || one.id.startsWith(`${id}.`));
    const element = found && (document.getElementById(`section-${found.id}`) as HTMLDetailsElement | null);
    if (!element) return;
    for (let outer: HTMLElement | null = element; outer; outer = outer.parentElement) {
      if (outer instanceof HTMLDetailsElement) outer.open = true;
    }
    // What it holds is put there when it opens, by an event that comes later.
    element.dispatchEvent(new Event("toggle"));
    element.scrollIntoView({ block: "nearest" });
    element.querySelector<HTMLElement>("input, select")?.focus();
  }

  /** Say beside its control what is wrong with a setting; without settings, nothing is. */
  complain(wrong: Map<string, string>): void {
    for (const [path, { said }] of this.#controls) {
      const message = wrong.get(path) ?? "";
      if (said.textContent !== message) said.textContent = message;
    }
  }

  /** Sections, those of one UE together. */
  #grouped(sections: Section[], open: Set<string>): HTMLElement[] {
    const shown: HTMLElement[] = [];
    const groups = new Map<string, HTMLDetailsElement>();
    for (const section of sections) {
      const of = GROUP.exec(section.id)?.[0];
      const inner = of !== undefined && of !== section.id;
      const [group, title] = inner ? section.title.split(": ") : [section.title, section.title];
      const element = this.#section({ ...section, title: inner ? title! : of ? "general" : title! }, open);
      if (of === undefined) {
        shown.push(element);
        continue;
      }
      let outer = groups.get(of);
      if (!outer) {
        outer = h("details", { id: `group-${of}`, class: "group" }, h("summary", {}, group!));
        groups.set(of, outer);
        shown.push(outer);
      }
      outer.append(element);
      if (open.has(outer.id) || (open.size === 0 && element.open)) outer.open = true;
    }
    return shown;
  }

  #section(section: Section, open: Set<string>): HTMLDetailsElement {
    const front = section.keys.filter((key) => key.given || FRONT.has(key.name));
    const rest = section.keys.filter((key) => !front.includes(key));
    const id = `section-${section.id}`;
    const details = h("details", { id, class: "keys" },
      h("summary", {}, section.title),
      section.help ? h("p", { class: "help" }, section.help) : null);
    const given = section.keys.some((key) => key.given && key.name !== "seed");
    const few = this.#sections.length < MOST_OPEN && section.id.startsWith("flow");
    details.open = open.has(id) || (open.size === 0 && (given || few));
    let filled = false;
    const put = () => {
      if (filled || !details.open) return;
      filled = true;
      details.append(...front.map((key) => this.#control(key)));
      if (rest.length > 0) details.append(this.#rest(id, rest, front.length === 0, open));
    };
    details.addEventListener("toggle", put);
    put();
    return details;
  }

  #rest(id: string, rest: Key[], alone: boolean, open: Set<string>): HTMLElement {
    const more = h("details", { id: `${id}-more`, class: "more" }, h("summary", {}, rest.length === 1 ? "1 more key" : `${rest.length} more keys`));
    more.open = alone || open.has(more.id);
    let filled = false;
    const put = () => {
      if (filled || !more.open) return;
      filled = true;
      more.append(...rest.map((key) => this.#control(key)));
    };
    more.addEventListener("toggle", put);
    put();
    return more;
  }

  #control(key: Key): HTMLElement {
    const id = `key-${key.path}`;
    const help = h("span", { class: "help", id: `${id}-help` }, h("code", {}, key.path), ` ${key.help}`, range(key));
    const said = h("span", { class: "wrong", role: "alert" });
    const described = { "aria-describedby": `${id}-help` };
    const change = (value: Key["value"]) => this.onChange(`${key.path}=${JSON.stringify(value)}`);
    const [name, of] = [title(key.name), unit(key.name)];
    const label = h("label", { for: id }, name, of ? h("span", { class: "unit" }, ` (${of})`) : null);
    const parts: HTMLElement[] = [];
    let show: Control["show"];
    if (key.kind === "flag") {
      const box = h("input", { id, type: "checkbox", ...described, change: () => change(box.checked) });
      show = (value) => (box.checked = value === true);
      parts.push(box);
    } else if (key.kind === "choice") {
      const choice = h("select", { id, ...described, change: () => change(choice.value) },
        ...key.choices.map((one) => h("option", { value: one }, one)));
      show = (value) => (choice.value = String(value));
      parts.push(choice);
    } else if (key.kind === "text") {
      const box = h("input", { id, type: "text", ...described, change: () => change(box.value) });
      show = (value) => {
        if (document.activeElement !== box) box.value = String(value);
      };
      parts.push(box);
    } else {
      const scale = new Scale(key);
      const read = (text: string) => (key.word !== null && text === key.word ? text : Number(text));
      const box = h("input", { id, type: key.word === null ? "number" : "text", step: "any",
        inputmode: "decimal", ...described, change: () => change(read(box.value.trim())) });
      const slider = h("input", { type: "range", min: 0, max: STEPS, "aria-label": `${name}, slider`,
        "data-key": key.path, input: () => {
          const value = scale.value(Number(slider.value));
          box.value = String(value);
          change(value);
        } });
      show = (value) => {
        if (document.activeElement !== box) box.value = String(value);
        if (document.activeElement !== slider && typeof value === "number")
          slider.value = String(scale.place(value));
        slider.setAttribute("aria-valuetext", `${String(value)} ${unit(key.name)}`);
      };
      parts.push(slider, box);
    }
    show(key.value);
    this.#controls.set(key.path, { key, show, said });
    return h("div", { class: `control of-${key.kind}` }, label, ...parts, help, said);
  }
}

/** Which keys problems are about; those of settings that the controls made. */
export function complaints(problems: { set: string | null; message: string }[]): Map<string, string> {
  return new Map(
    problems.flatMap(({ set, message }) => (set === null ? [] : [[keyOf(set), message] as const])),
  );
}

function range(key: Key): string {
  if (key.min === null || key.max === null) return "";
  const word = key.word === null ? "" : `, or ${key.word}`;
  return ` From ${digits(key.min)} to ${digits(key.max)}${word}.`;
}

/** From steps of a slider to values: by factors where values are positive, evenly near zero. */
class Scale {
  readonly #low: number;
  readonly #high: number;
  readonly #whole: boolean;
  readonly #even: boolean;

  constructor(key: Key) {
    const [min, max] = [key.min ?? -Infinity, key.max ?? Infinity];
    const value = typeof key.value === "number" ? key.value : Math.max(min, 1);
    this.#whole = key.kind === "count";
    this.#even = max - min <= 200 || value <= 0;
    if (max - min <= 200) [this.#low, this.#high] = [min, max];
    else if (value <= 0) [this.#low, this.#high] = [Math.max(min, value * 2), Math.min(max, 100)];
    else {
      this.#low = Math.max(value / 100, min, this.#whole ? 1 : 0);
      this.#high = Math.min(value * 20, max);
      if (this.#low <= 0) this.#low = value / 100;
    }
  }

  value(step: number): number {
    const part = step / STEPS;
    const value = this.#even
      ? this.#low + part * (this.#high - this.#low)
      : this.#low * (this.#high / this.#low) ** part;
    if (step === 0 || step === STEPS) return this.#whole ? Math.round(value) : Number(value.toPrecision(6));
    return this.#whole ? Math.round(value) : Number(value.toPrecision(3));
  }

  place(value: number): number {
    const part = this.#even
      ? (value - this.#low) / (this.#high - this.#low)
      : Math.log(value / this.#low) / Math.log(this.#high / this.#low);
    return Math.round(Math.min(1, Math.max(0, part)) * STEPS);
  }
}
