// The scenario as text: an editor that knows the keys, and marks what is wrong at its place.

import { autocompletion, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { forceLinting, lintGutter, linter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { Keys, type Schema } from "./keys";
import type { Problem, Table, Value } from "./protocol";

/** The page's colours, which follow its scheme. */
const STYLE = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)" },
  { tag: tags.string, color: "var(--c1)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--good)" },
  { tag: [tags.propertyName, tags.definition(tags.variableName)], color: "var(--accent)" },
]);

export class Editor {
  readonly #view: EditorView;
  #quiet = false;

  constructor(place: HTMLElement, text: string, keys: Keys, onEdit: (text: string) => void) {
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content;
    this.#view = new EditorView({
      parent: place,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          StreamLanguage.define(toml),
          syntaxHighlighting(STYLE),
          lintGutter(),
          linter(null),
          autocompletion({ override: [(context) => complete(context, keys)] }),
          keymap.of([...defaultKeymap, ...historyKeymap, ...completionKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "The scenario's text" }),
          ...(nonce ? [EditorView.cspNonce.of(nonce)] : []),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !this.#quiet) onEdit(update.state.doc.toString());
          }),
        ],
      }),
    });
    // What can be scrolled can be reached by keyboard.
    this.#view.scrollDOM.tabIndex = 0;
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /** Show another text, which nobody typed. */
  show(text: string): void {
    if (text === this.text) return;
    this.#quiet = true;
    this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
    this.#quiet = false;
  }

  /** Mark problems at their places. */
  mark(problems: Problem[]): void {
    const { doc } = this.#view.state;
    const found = problems.flatMap((one): Diagnostic[] => {
      if (one.line === null) return [];
      const line = doc.line(Math.min(Math.max(one.line, 1), doc.lines));
      const from = Math.min(line.from + Math.max(0, (one.column ?? 1) - 1), line.to);
      const message = one.help ? `${one.message}\n${one.help}` : one.message;
      return [{ from, to: line.to, severity: "error", message }];
    });
    this.#view.dispatch(setDiagnostics(this.#view.state, found));
    forceLinting(this.#view);
  }

  /** Put the cursor at a place. */
  go(line: number, column: number): void {
    const { doc } = this.#view.state;
    const at = doc.line(Math.min(line, doc.lines));
    const anchor = Math.min(at.from + column - 1, at.to);
    this.#view.dispatch({ selection: { anchor }, scrollIntoView: true });
    this.#view.focus();
  }
}

const HEADER = /^\s*\[{1,2}\s*([\w.-]+)\s*\]{1,2}/;

/** Keys of the table that the cursor is in, and values of a key that has choices. */
function complete(context: CompletionContext, keys: Keys): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (before.trimStart().startsWith("#")) return null;
  const { path, values } = around(context, line.number);
  const assigned = /^\s*([\w.-]+)\s*=\s*("?)([\w.-]*)$/.exec(before);
  if (assigned) {
    const [, name, quote, begun] = assigned;
    const schema = keys.at([...path, ...name!.split(".")], values);
    const choices = schema?.enum ?? schema?.oneOf?.flatMap((one) => one.const ?? one.enum ?? []);
    if (!choices?.length) return null;
    return {
      from: context.pos - begun!.length - quote!.length,
      options: choices.map((choice) => ({ label: `"${choice}"`, type: "constant" })),
    };
  }
  const word = /[\w.-]*$/.exec(before)![0];
  if (!word && !context.explicit) return null;
  if (!/^\s*[\w.-]*$/.test(before)) return null;
  const options = keys.names(path, values).map(([name, schema]) => option(name, schema));
  return { from: context.pos - word.length, options };
}

function option(name: string, schema: Schema): Completion {
  return { label: name, type: "property", ...(schema.description ? { info: schema.description } : {}) };
}

/** Which table a line is in, and what that table says above and below the line. */
function around(context: CompletionContext, number: number): { path: (string | number)[]; values: Table } {
  const { doc } = context.state;
  let header: RegExpExecArray | null = null;
  let at = number;
  for (; at > 0 && !header; at--) header = HEADER.exec(doc.line(at).text);
  const names = header?.[1]?.split(".") ?? [];
  const own: Table = {};
  for (let next = header ? at + 2 : 1; next <= doc.lines; next++) {
    const text = doc.line(next).text;
    if (HEADER.test(text)) break;
    const said = /^\s*([\w-]+)\s*=\s*"([^"]*)"/.exec(text);
    if (said) own[said[1]!] = said[2]!;
  }
  // Lists are met at their first element: which one it is makes no difference.
  const path: (string | number)[] = [];
  let values: Value = own;
  for (const name of names) path.push(name, ...(LISTS.has(path.concat(name).join(".")) ? [0] : []));
  for (const step of [...path].reverse()) values = typeof step === "number" ? [values] : { [step]: values };
  return { path, values: values as Table };
}

const LISTS = new Set(["flow", "path.down", "path.up", "program", "radio.ue", "radio.neighbour", "radio.handover", "radio.outage"]);
