// SPDX-License-Identifier: Apache-2.0
/*!
 * This script contains Observable Plot (Copyright 2020-2025 Observable, Inc.), and the modules d3-array, d3-axis, d3-color, d3-format, d3-geo,
 * d3-hierarchy, d3-interpolate, d3-path, d3-scale, d3-scale-chromatic, d3-selection, d3-shape, d3-time, d3-time-format and isoformat
 * (Copyright 2010-2026 Mike Bostock):
 *
 * Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the
 * above copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY
 * DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION,
 * ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */
// Builds the page from its data: pictures with tables and queries, facts of the job, colour theme.
import { parse, type Data, type Page, type Row } from "./data";
import { draw, pictures, type Picture, type Range } from "./pictures";
import { cell } from "./units";

const page = parse<Page>("page");
const main = document.getElementById("pictures") as HTMLElement;

type Attributes = Record<string, string>;

function element(tag: string, attributes: Attributes = {}, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function table(rows: Row[]): HTMLElement {
  const most = 200;
  const columns = Object.keys(rows[0] ?? {});
  const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)));
  const body = rows.slice(0, most).map((row) =>
    element(
      "tr",
      {},
      ...columns.map((column) => {
        const value = row[column] ?? null;
        return element("td", typeof value === "number" ? { class: "number", title: String(value), "data-value": String(value) } : {}, cell(column, value));
      }),
    ),
  );
  const more = rows.length > most ? [element("p", {}, `${rows.length - most} more rows: run the query.`)] : [];
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)), ...more);
}

// A part that can be opened. make() makes the content when it is opened; `update` makes the content again.
function details(summary: string, make: () => Node): { node: HTMLElement; update: (summary: string) => void } {
  const title = element("summary", {}, summary);
  const node = element("details", {}, title);
  const fill = (): void => node.replaceChildren(title, ...(node.hasAttribute("open") ? [make()] : []));
  node.addEventListener("toggle", fill);
  return {
    node,
    update: (next) => {
      title.textContent = next;
      fill();
    },
  };
}

// Returns a query that a user can run: it includes the expressions that all queries share.
function whole(query: string): string {
  const [, about = "", body = ""] = /^((?:--.*\n)*)([^]*)$/.exec(page.queries[query] ?? "") ?? [];
  const common = `WITH\n${(page.queries.common ?? "").trim()}`;
  return `${about}${common}${body.startsWith("WITH ") ? `,\n${body.slice(5)}` : `\n${body}`}`;
}

const tableTitle = (rows: Row[]): string => `Table (${rows.length.toLocaleString("en-US")} rows)`;
const queryOf = (query: string): HTMLElement => details("Query", () => element("pre", {}, whole(query))).node;

type Scaled = Element & { scale?: (name: string) => { invert?: (x: number) => number } | undefined };

// Dragging selects a range of the horizontal axis; a double click shows the whole axis.
function zoomable(drawing: Scaled, set: (range: Range) => void): void {
  const svg = (drawing instanceof SVGSVGElement ? drawing : drawing.querySelector("svg:last-of-type")) as SVGSVGElement | null;
  const invert = drawing.scale?.("x")?.invert;
  if (!svg || !invert) return;
  const at = (event: PointerEvent): number => {
    const box = svg.getBoundingClientRect();
    return ((event.clientX - box.left) * (svg.viewBox.baseVal.width || box.width)) / box.width;
  };
  let from: number | null = null;
  const shade = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  shade.setAttribute("class", "shade");
  shade.setAttribute("height", "100%");
  // Plot's tooltips stop the event, so it is captured before.
  const begin = (event: PointerEvent): void => {
    from = at(event);
    shade.setAttribute("width", "0");
    svg.append(shade);
  };
  svg.addEventListener("pointerdown", begin, { capture: true });
  svg.addEventListener("pointermove", (event) => {
    if (from === null) return;
    shade.setAttribute("x", String(Math.min(from, at(event))));
    shade.setAttribute("width", String(Math.abs(at(event) - from)));
  });
  svg.addEventListener("pointerup", (event) => {
    const to = at(event);
    if (from !== null && Math.abs(to - from) > 5) set([invert(Math.min(from, to)), invert(Math.max(from, to))]);
    from = null;
    shade.remove();
  });
  svg.addEventListener("dblclick", () => set(null));
}

interface Section {
  node: HTMLElement;
  update: (picture: Picture) => void;
}

// Makes the section of a picture. Newer data keeps the zoom, and which parts are open.
function section(first: Picture): Section {
  let picture = first;
  let range: Range = null;
  let width = 0;
  const query = first.query ?? first.id;
  const title = element("h2");
  const note = element("span");
  const figure = element("figure");
  const reset = element("button", { type: "button", hidden: "" }, "Show all");
  const rows = details("", () => table(picture.rows));
  const redraw = (): void => {
    if (width === 0) return;
    const drawing = draw(picture, range, width) as Scaled;
    figure.replaceChildren(drawing);
    reset.toggleAttribute("hidden", range === null);
    if (picture.zoom) zoomable(drawing, zoom);
  };
  const zoom = (next: Range): void => {
    range = next;
    redraw();
  };
  const update = (next: Picture): void => {
    picture = next;
    title.textContent = picture.title;
    note.textContent = picture.zoom ? `${picture.note} Drag to zoom, double-click to show all.` : picture.note;
    rows.update(tableTitle(picture.rows));
    redraw();
  };
  reset.addEventListener("click", () => zoom(null));
  new ResizeObserver(() => {
    const now = Math.max(280, Math.floor(figure.clientWidth));
    if (now === width) return;
    width = now;
    redraw();
  }).observe(figure);
  update(first);
  return { node: element("section", { id: first.id }, title, element("p", { class: "note" }, note, reset), figure, rows.node, ...(query ? [queryOf(query)] : [])), update };
}

function facts(data: Data): HTMLElement {
  const row = data.facts[0] as Row;
  const items = Object.entries(row).filter(([name, value]) => value !== null && value !== "" && name !== "bin_ns");
  return element("section", { id: "facts" }, element("h2", {}, "The job"), element("dl", { class: "facts" }, ...items.flatMap(([name, value]) => [element("dt", {}, name.replace(/_ns$/, "").replace("dur", "duration").replaceAll("_", " ")), element("dd", {}, cell(name, value))])), element("p", { class: "note" }, `Made by headrace ${page.version}.`));
}

function losses(data: Data): HTMLElement {
  const rows = data.losses ?? [];
  const lost = rows.length === 0 ? element("p", {}, "No operation was lost.") : table(rows);
  return element("section", { id: "losses" }, element("h2", {}, "Losses: what is not in the recording"), lost, queryOf("losses"));
}

const sections = new Map<string, Section>();

function show(data: Data): void {
  const nodes = pictures(data).map((picture) => {
    const old = sections.get(picture.id);
    const shown = old ?? section(picture);
    if (old) old.update(picture);
    else sections.set(picture.id, shown);
    return shown.node;
  });
  const rest = data.facts ? [losses(data), facts(data)] : [];
  for (const old of main.querySelectorAll("noscript, #losses, #facts")) old.remove();
  // Does not move nodes that are in their place, because moved nodes lose their state.
  nodes.forEach((node, i) => {
    if (main.children[i] !== node) main.insertBefore(node, main.children[i] ?? null);
  });
  while (main.children.length > nodes.length) main.lastElementChild?.remove();
  main.append(...rest);
}

function themes(): void {
  const button = document.getElementById("theme") as HTMLButtonElement;
  const names = ["auto", "light", "dark"];
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % names.length] ?? "auto";
    document.documentElement.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  });
}

// Requests the newest data of a running job, and shows it.
async function refresh(): Promise<void> {
  try {
    const answer = await fetch("data", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const { verdict, data } = (await answer.json()) as { verdict: string; data: Data };
    (document.getElementById("verdict") as HTMLElement).innerHTML = verdict;
    // Waits while the pointer is in a picture, which would lose its tooltip or selection.
    if (!main.querySelector("figure:hover")) show(data);
    document.body.classList.remove("stale");
  } catch {
    document.body.classList.add("stale");
  }
  setTimeout(() => void refresh(), 1000);
}

themes();
if (page.live) void refresh();
else show(parse<Data>("data"));
