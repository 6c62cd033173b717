// Elements, made from values and never from markup.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

/** An element: properties that are functions are listeners, the others attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  give(element, props);
  element.append(...present(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of SVG. */
export function s(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  give(element, props);
  element.append(...present(children));
  return element;
}

/** Put these children in the place of what an element has. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...present(children));
}

/** Write a text into an element that holds nothing else. A text that is there already is left alone. */
export function write(element: Element, text: string): void {
  const { firstChild } = element;
  // Another text in the same node: the browser keeps its box.
  if (!(firstChild instanceof Text)) element.textContent = text;
  else if (firstChild.data !== text) firstChild.data = text;
}

/** What the page has by this id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

function give(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, String(value));
  }
}

function present(children: Child[]): (Node | string)[] {
  return children.filter((child): child is Node | string => Boolean(child));
}

/** Show a message in the page's status line. */
export function say(text: string): void {
  byId("status").textContent = text;
}

/** Let the page do what it has to do besides. */
export function rest(): Promise<void> {
  return new Promise((done) => setTimeout(done, 0));
}

/** Hand a file to the browser. */
export function download(name: string, kind: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type: kind }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
