// SPDX-License-Identifier: Apache-2.0
// The pictures. Each has a title with its main number, a drawing, and the rows that it shows.
import * as Plot from "@observablehq/plot";
import { hierarchy, treemap, type HierarchyRectangularNode } from "d3-hierarchy";
import { acts, actColours, classes, classColours, partColour, parts } from "./colours";
import { num, text, type Data, type Row } from "./data";
import { bytes, count, duration, percent, shorten } from "./units";

export type Range = [number, number] | null;

export interface Picture {
  id: string;
  query?: string; // the name of its query, if this is not the id; "": it has none
  title: string;
  note: string; // how to read it
  zoom: boolean; // the horizontal axis can be zoomed
  rows: Row[];
  plot(range: Range, width: number): Plot.PlotOptions;
}

const seconds = (ns: number): number => ns / 1e9;
const sum = (rows: Row[], column: string): number => rows.reduce((total, row) => total + num(row, column), 0);
const rankName = (row: Row, ranks: number): string => {
  if (row.rank === null) return "no rank";
  return ranks === 1 ? `rank ${row.rank}` : `ranks ${row.rank} to ${num(row, "rank") + ranks - 1}`;
};

// Returns how many ranks share a row: the difference between the first two rows.
function ranksPerRow(rows: Row[]): number {
  const firsts = [...new Set(rows.filter((row) => row.rank !== null).map((row) => num(row, "rank")))].sort((a, b) => a - b);
  return firsts.length < 2 ? 1 : Math.min(...firsts.slice(1).map((first, i) => first - (firsts[i] ?? 0)));
}

// Leaves out parts that are too small to be seen, because they would make the legend longer.
function visible(rows: Row[]): Row[] {
  const least = 0.003 * sum(rows, "ns");
  const seen = new Set(parts.filter((part) => sum(rows.filter((row) => row.part === part), "ns") >= least));
  return rows.filter((row) => seen.has(text(row, "part")));
}

function partLegend(rows: Row[]): Plot.ScaleOptions {
  const used = parts.filter((part) => rows.some((row) => row.part === part));
  return { domain: used, range: used.map(partColour), legend: true };
}

// Returns a text with the largest parts: "compute 51 %, checkpoints 45 %".
function largest(rows: Row[], weight: (row: Row) => number): string {
  const total = rows.reduce((all, row) => all + weight(row), 0);
  const of = (part: string): number => rows.reduce((all, row) => all + (row.part === part ? weight(row) : 0), 0) / total;
  const shares = parts.map((part) => ({ part, share: of(part) })).sort((a, b) => b.share - a.share);
  return shares.filter(({ share }, i) => i < 3 && share >= 0.005).map(({ part, share }) => `${part} ${percent(share)}`).join(", ");
}

const base: Plot.PlotOptions = {
  marginLeft: 76,
  marginBottom: 40,
  style: { background: "none", color: "currentColor", fontSize: "12px", overflow: "visible" },
};
export const draw = (picture: Picture, range: Range, width: number): Element => Plot.plot({ ...base, width, ...picture.plot(range, width) });
const bars = { inset: 0, clip: true, tip: true };
const times = (range: Range, all: Range, label = "time since the start of the job (s)"): Plot.ScaleOptions => (range ?? all ? { label, domain: range ?? all ?? [] } : { label });
const whole = (data: Data): Range => [0, seconds(num(data.facts[0] as Row, "dur_ns"))];

function steps(data: Data): Picture | null {
  const rows = data.steps ?? [];
  if (rows.length === 0) return null;
  const weight = (row: Row): number => num(row, "ns") * num(row, "steps");
  const wall = data.findings?.[0] ? num(data.findings[0], "wall_ns") : num(data.facts[0] as Row, "dur_ns");
  const processes = (data.ranks ?? []).some((row) => num(row, "processes") > 1) || new Set((data.ranks ?? []).map((row) => row.rank)).size > 1;
  const took = rows.reduce((total, row) => total + weight(row), 0);
  const firsts = [...new Set(rows.map((row) => num(row, "step")))].sort((a, b) => a - b);
  const width1 = firsts.length > 1 ? (firsts[1] ?? 0) - (firsts[0] ?? 0) : 1;
  const of = `Each bar is ${width1 > 1 ? `the mean of ${width1} steps` : "a step"}${processes ? ", as a mean of all training processes" : ""}.`;
  return {
    id: "steps",
    title: `The training steps take ${duration(took)} of ${duration(wall)}: ${largest(rows, weight)}`,
    note: `${of} The rest of the time is before, between and after the steps.`,
    zoom: true,
    rows,
    plot: (range) => ({
      height: 280,
      x: times(range, null, "step"),
      y: { label: "mean time of a step (s)", grid: true },
      color: partLegend(visible(rows)),
      marks: [
        Plot.rectY(visible(rows), {
          x1: (row: Row) => num(row, "step"),
          x2: (row: Row) => num(row, "step") + width1,
          y: (row: Row) => seconds(num(row, "ns")),
          fill: "part",
          order: parts,
          title: (row: Row) => `step ${row.step}\n${row.part}: ${duration(num(row, "ns"))}`,
          ...bars,
        }),
        Plot.ruleY([0]),
      ],
    }),
  };
}

function ranks(data: Data): Picture | null {
  const rows = data.ranks ?? [];
  if (rows.length === 0) return null;
  const per = ranksPerRow(rows);
  const names = [...new Set(rows.map((row) => rankName(row, per)))];
  // Returns the rank with most time in some parts, if this is much more than the median of all ranks.
  const straggling = (of: (part: string) => boolean): [string, number, number] | null => {
    const times = names.map((name): [string, number] => [name, sum(rows.filter((row) => rankName(row, per) === name && of(text(row, "part"))), "ns")]).sort((a, b) => b[1] - a[1]);
    const [slowest, longest] = times[0] ?? ["", 0];
    const others = times[Math.floor(times.length / 2)]?.[1] ?? 0;
    return longest > 1.5 * others + 1e8 ? [slowest, longest, others] : null;
  };
  const waited = straggling((part) => part.startsWith("wait") && part !== "wait: other ranks");
  const computed = straggling((part) => part === "compute");
  const [straggler, longest, others] = waited ?? computed ?? ["", 0, 0];
  const title = straggler
    ? `Time of each rank: ${straggler} ${waited ? "waited longest for data" : "computed longest"} (${duration(longest)}, median ${duration(others)})`
    : names.length > 1
      ? "Time of each rank: all waited about as long for data"
      : "Time of the training process from start to end";
  return {
    id: "ranks",
    title: straggler ? title : `${title}: ${largest(rows, (row) => num(row, "ns"))}`,
    note: per > 1 ? `Each row is the mean of ${per} ranks.` : "From the start of the program to its end.",
    zoom: false,
    rows,
    plot: () => ({
      height: 70 + names.length * (names.length > 16 ? 12 : 28),
      marginLeft: 110,
      x: { label: "time (s)", grid: true },
      y: { label: null, domain: names, tickFormat: (name: string) => (name === straggler ? `▶ ${name}` : name) },
      color: partLegend(visible(rows)),
      marks: [
        Plot.barX(visible(rows), {
          x: (row: Row) => seconds(num(row, "ns")),
          y: (row: Row) => rankName(row, per),
          fill: "part",
          order: parts,
          title: (row: Row) => `${rankName(row, per)}\n${row.part}: ${duration(num(row, "ns"))}`,
          tip: true,
        }),
        Plot.ruleX([0]),
      ],
    }),
  };
}

function heat(data: Data, query: string, title: string, label: string, value: (row: Row) => number, show: (row: Row) => string, share: boolean): Picture | null {
  const rows = (data[query] ?? []).filter((row) => num(row, "bin") >= 0);
  const bin = seconds(num(data.facts[0] as Row, "bin_ns"));
  if (rows.length === 0) return null;
  const per = ranksPerRow(rows);
  const names = [...new Set(rows.map((row) => rankName(row, per)))];
  return {
    id: query,
    title,
    note: `Each cell is ${duration(bin * 1e9)}${per > 1 ? ` of ${per} ranks` : ""}. Light colours are high values.`,
    zoom: true,
    rows,
    plot: (range) => ({
      height: 80 + names.length * (names.length > 16 ? 8 : 24),
      marginLeft: 110,
      x: times(range, whole(data)),
      y: { label: null, domain: names, tickFormat: (name: string, i: number) => (names.length > 16 && i % 4 !== 0 ? "" : name) },
      color: share ? { scheme: "viridis", legend: true, label, domain: [0, 1], tickFormat: "%" } : { scheme: "viridis", type: "sqrt", legend: true, label, tickFormat: (n: number) => bytes(n) },
      marks: [
        Plot.barX(rows, {
          x1: (row: Row) => num(row, "bin") * bin,
          x2: (row: Row) => (num(row, "bin") + 1) * bin,
          y: (row: Row) => rankName(row, per),
          fill: value,
          title: (row: Row) => `${rankName(row, per)}, at ${duration(num(row, "bin") * bin * 1e9)}\n${show(row)}`,
          ...bars,
        }),
      ],
    }),
  };
}

const waits = (data: Data): Picture | null =>
  heat(data, "waits", "When each rank waited for batches or for other ranks", "share of the time", (row) => num(row, "share"), (row) => `waited ${percent(num(row, "share"))} of the time`, true);

const moved = (data: Data): Picture | null =>
  heat(
    data,
    "bytes",
    `When each rank read and wrote: ${bytes(sum(data.bytes ?? [], "bytes_read"))} read, ${bytes(sum(data.bytes ?? [], "bytes_written"))} written`,
    "bytes",
    (row) => num(row, "bytes_read") + num(row, "bytes_written"),
    (row) => `read ${bytes(num(row, "bytes_read"))}, wrote ${bytes(num(row, "bytes_written"))}`,
    false,
  );

function act(row: Row): string {
  const what = text(row, "what");
  if (what === "fetch") return "worker prepares a batch";
  if (what === "input_wait") return "training waits";
  if (what.startsWith("I/O: ")) return what === "I/O: read" || what === "I/O: write" ? what.slice(5) : "other I/O";
  return what;
}

function lanes(data: Data): Picture | null {
  const rows = (data.lanes ?? []).filter((row) => acts.includes(act(row)));
  if (rows.length === 0) return null;
  const longest = rows.filter((row) => row.what === "input_wait").reduce((most, row) => Math.max(most, num(row, "dur_ns")), 0);
  const names = [...new Set(rows.map((row) => text(row, "lane")))].sort((a, b) => (a === "training" ? -1 : b === "training" ? 1 : a.localeCompare(b, "en", { numeric: true })));
  const back = rows.filter((row) => !text(row, "what").startsWith("I/O"));
  const front = rows.filter((row) => text(row, "what").startsWith("I/O"));
  const seen = acts.filter((name) => rows.some((row) => act(row) === name));
  const bar = (list: Row[], inset: number): Plot.Markish =>
    Plot.barX(list, {
      x1: (row: Row) => seconds(num(row, "at_ns")),
      x2: (row: Row) => seconds(num(row, "at_ns") + num(row, "dur_ns")),
      y: "lane",
      fill: act,
      insetTop: inset,
      insetBottom: inset,
      clip: true,
      title: (row: Row) => `${row.lane}: ${act(row)}, ${duration(num(row, "dur_ns"))}\n${shorten(text(row, "detail"), 80)}`,
      tip: true,
    });
  return {
    id: "lanes",
    title: `The longest wait for a batch, ${duration(longest)}, and what the workers did meanwhile`,
    note: "Wide bars: what a process did; where the training has none, it computes. Narrow bars: operations on files.",
    zoom: true,
    rows,
    plot: (range) => ({
      height: 80 + names.length * 30,
      x: times(range, null),
      y: { label: null, domain: names },
      color: { domain: seen, range: seen.map((name) => actColours[acts.indexOf(name)] ?? ""), legend: true },
      marks: [bar(back, 1), bar(front, 8)],
    }),
  };
}

function sizes(data: Data, what: "bytes" | "ns"): Picture | null {
  const rows = (data.sizes ?? []).filter((row) => row.what === what);
  if (rows.length === 0) return null;
  const show = what === "bytes" ? bytes : duration;
  const total = sum(rows, "ops");
  const small = sum(rows.filter((row) => num(row, "bin") < 16), "ops") / total;
  return {
    id: what === "bytes" ? "sizes" : "durations",
    query: "sizes",
    title: what === "bytes" ? `How large reads and writes were: ${percent(small)} under 64 KiB` : `How long operations took: ${count(total)} operations`,
    note: "The axis of the numbers is logarithmic.",
    zoom: false,
    rows,
    plot: (_, width) => ({
      height: 220,
      x: { label: what === "bytes" ? "bytes of an operation" : "duration of an operation", tickFormat: (bin: number) => show(2 ** bin), ticks: width < 600 ? 5 : 12 },
      y: { label: "operations", type: "log", domain: [0.8, Math.max(...rows.map((row) => num(row, "ops")))], grid: true, tickFormat: "s", ticks: 5 },
      color: { domain: classes, range: classColours, legend: true },
      marks: [
        Plot.rect(rows, {
          x1: (row: Row) => num(row, "bin") + classes.indexOf(text(row, "class")) * 0.3,
          x2: (row: Row) => num(row, "bin") + classes.indexOf(text(row, "class")) * 0.3 + 0.28,
          y1: () => 0.8,
          y2: "ops",
          fill: "class",
          title: (row: Row) => `${count(num(row, "ops"))} operations (${row.class})\nfrom ${show(2 ** num(row, "bin"))} to ${show(2 ** (num(row, "bin") + 1))}`,
          tip: true,
        }),
      ],
    }),
  };
}

interface Tree {
  name: string;
  row?: Row;
  children?: Tree[];
}

// A folder that contains only one folder is one node with this folder.
function folders(rows: Row[]): Tree {
  const root: Tree = { name: "", children: [] };
  for (const row of rows) {
    let node = root;
    const names = text(row, "path").split("/").filter((name) => name !== "");
    if (num(row, "files") > 1) names[names.length - 1] = `${count(num(row, "files"))} other files`;
    names.forEach((name, i) => {
      let child = node.children?.find((other) => other.name === name && (i < names.length - 1) === (other.children !== undefined));
      if (!child) {
        child = i === names.length - 1 ? { name, row } : { name, children: [] };
        node.children?.push(child);
      }
      node = child;
    });
  }
  const join = (node: Tree): Tree => {
    while (node.children?.length === 1 && node.children[0]?.children) node = { name: `${node.name}/${node.children[0].name}`, children: node.children[0].children };
    return node.children ? { name: node.name, children: node.children.map(join) } : node;
  };
  return join(root);
}

function files(data: Data): Picture | null {
  const rows = data.files ?? [];
  if (rows.length === 0) return null;
  const first = rows[0] as Row;
  const total = sum(rows, "ns");
  return {
    id: "files",
    title: `Files by the time of their operations, ${duration(total)} in all: most for ${shorten(text(first, "path"), 60)} (${percent(num(first, "ns") / total)})`,
    note: "Area: time. Colour: number of opens. Frames are folders.",
    zoom: false,
    rows,
    plot: (_, width) => {
      const height = width < 600 ? 320 : 420;
      const tree = hierarchy<Tree>(folders(rows)).sum((node) => (node.row ? Math.max(num(node.row, "ns"), 1) : 0)).sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
      const all = treemap<Tree>().size([width, height]).paddingInner(1).paddingOuter(2).paddingTop(16)(tree).descendants();
      const leaves = all.filter((node) => !node.children && node.x1 - node.x0 > 0.5 && node.y1 - node.y0 > 0.5);
      const frames = all.filter((node) => node.children && node.x1 - node.x0 > 40 && node.y1 - node.y0 > 18);
      type Node = HierarchyRectangularNode<Tree>;
      const box = { x1: "x0", x2: "x1", y1: "y0", y2: "y1" } as const;
      const fits = (node: Node): boolean => node.x1 - node.x0 > 60 && node.y1 - node.y0 > 15;
      return {
        height: height + 4,
        margin: 2,
        marginLeft: 2,
        marginBottom: 2,
        x: { axis: null, domain: [0, width] },
        y: { axis: null, domain: [0, height], reverse: true },
        color: { type: "log", scheme: "YlGnBu", domain: [1, Math.max(2, ...rows.map((row) => num(row, "opens")))], legend: true, label: "opens", tickFormat: "s", ticks: 4 },
        marks: [
          Plot.rect(frames, { ...box, stroke: "currentColor", strokeOpacity: 0.4 }),
          Plot.text(frames, { x: (node: Node) => node.x0 + 4, y: (node: Node) => node.y0 + 8, text: (node: Node) => shorten(node.data.name || "/", Math.floor((node.x1 - node.x0) / 8)), textAnchor: "start", fontWeight: "bold" }),
          Plot.rect(leaves, {
            ...box,
            fill: (node: Node) => Math.max(1, num(node.data.row as Row, "opens")),
            title: (node: Node) => {
              const row = node.data.row as Row;
              return `${shorten(text(row, "path"), 100)}${num(row, "files") > 1 ? ` (${count(num(row, "files"))} files)` : ""}\n${duration(num(row, "ns"))}, ${count(num(row, "ops"))} operations\nread ${bytes(num(row, "bytes_read"))}, wrote ${bytes(num(row, "bytes_written"))}, opened ${count(num(row, "opens"))} times`;
            },
            tip: true,
          }),
          Plot.text(leaves.filter(fits), { x: (node: Node) => node.x0 + 4, y: (node: Node) => node.y0 + 9, text: (node: Node) => shorten(node.data.name, Math.floor((node.x1 - node.x0 - 6) / 7)), textAnchor: "start", fill: "black", stroke: "white", strokeWidth: 3, strokeOpacity: 0.7 }),
        ],
      };
    },
  };
}

function mounts(data: Data): Picture | null {
  const rows = (data.mounts ?? []).filter((row) => num(row, "bin") >= 0);
  const bin = seconds(num(data.facts[0] as Row, "bin_ns"));
  if (rows.length === 0) return null;
  const rate = (row: Row): number => (num(row, "bytes_read") + num(row, "bytes_written")) / bin;
  const names = [...new Set(rows.map((row) => `${text(row, "mount")} (${text(row, "fs_type")})`))];
  const best = rows.reduce((most, row) => (rate(row) > rate(most) ? row : most), rows[0] as Row);
  return {
    id: "mounts",
    title: `Rate of each mount: at most ${bytes(rate(best))}/s, on ${shorten(text(best, "mount"), 40)}`,
    note: `Bytes read and written per second, in intervals of ${duration(bin * 1e9)}.`,
    zoom: true,
    rows,
    plot: (range) => ({
      height: 80 + 110 * names.length,
      marginRight: 10,
      x: times(range, whole(data)),
      y: { label: null, grid: true, tickFormat: (n: number) => `${bytes(n)}/s`, ticks: 3 },
      fy: { label: null, tickFormat: () => "" },
      marks: [
        Plot.text(names, { fy: (name: string) => name, text: (name: string) => shorten(name, 60), frameAnchor: "top-left", dx: 4, dy: -2, fontWeight: "bold" }),
        Plot.rectY(rows, {
          x1: (row: Row) => num(row, "bin") * bin,
          x2: (row: Row) => (num(row, "bin") + 1) * bin,
          y: rate,
          fy: (row: Row) => `${text(row, "mount")} (${text(row, "fs_type")})`,
          fill: "#0072b2",
          title: (row: Row) => `${row.mount} at ${duration(num(row, "bin") * bin * 1e9)}\n${bytes(rate(row))}/s, ${count(num(row, "ops"))} operations, ${duration(num(row, "dur_ns"))} in them`,
          ...bars,
        }),
        Plot.ruleY([0]),
      ],
    }),
  };
}

function checkpoints(data: Data): Picture | null {
  const rows = data.checkpoints ?? [];
  if (rows.length === 0) return null;
  const names = [...new Set(rows.map((row) => rankName(row, 1)))];
  return {
    id: "checkpoints",
    title: `Checkpoints: ${count(rows.length)}${rows.length === 400 ? " or more" : ""} saves, the longest ${duration(Math.max(...rows.map((row) => num(row, "dur_ns"))))}`,
    note: "A point is a save of a rank.",
    zoom: true,
    rows,
    plot: (range) => ({
      height: 200,
      x: times(range, whole(data)),
      y: { label: "duration (s)", grid: true, zero: true },
      color: { type: "categorical", domain: names, scheme: "Observable10", legend: names.length <= 10 },
      marks: [
        Plot.ruleX(rows, { x: (row: Row) => seconds(num(row, "at_ns")), y: (row: Row) => seconds(num(row, "dur_ns")), stroke: (row: Row) => rankName(row, 1), clip: true }),
        Plot.dot(rows, {
          x: (row: Row) => seconds(num(row, "at_ns")),
          y: (row: Row) => seconds(num(row, "dur_ns")),
          fill: (row: Row) => rankName(row, 1),
          clip: true,
          title: (row: Row) => `${rankName(row, 1)}: ${row.name ?? "checkpoint"}, ${duration(num(row, "dur_ns"))}\n${shorten(text(row, "path"), 100)}`,
          tip: true,
        }),
        Plot.ruleY([0]),
      ],
    }),
  };
}

// A model of `headrace model`: measured values, and the prediction with its range. Both axes are logarithmic if all values are above 0.
function models(data: Data): Picture[] {
  return (data.model_titles ?? []).map((about) => {
    const rows = (data.models ?? []).filter((row) => row.picture === about.picture);
    const curve = rows.filter((row) => row.kind === "predicted");
    const measured = rows.filter((row) => row.kind === "measured");
    const type = rows.every((row) => num(row, "x") > 0 && num(row, "value") > 0 && (row.low == null || num(row, "low") > 0)) ? "log" : "linear";
    const short = (n: number): string => n.toLocaleString("en-US", { notation: n >= 1e4 ? "compact" : "standard", maximumSignificantDigits: 3 });
    const label = (row: Row): string => `${short(num(row, "x"))} ${text(about, "parameter")}: ${short(num(row, "value"))}`;
    return {
      id: `model-${text(about, "picture")}`,
      query: "",
      title: text(about, "title"),
      note: "Points: measurements. Line: prediction. The area contains the true value with a probability of 90 %.",
      zoom: false,
      rows,
      plot: (): Plot.PlotOptions => ({
        height: 260,
        x: { label: text(about, "parameter"), type, tickFormat: short, ticks: 8 },
        y: { label: text(about, "metric"), type, grid: true, tickFormat: short, ticks: 6 },
        marks: [
          Plot.areaY(curve, { x: "x", y1: "low", y2: "high", fill: "#0072b2", fillOpacity: 0.2 }),
          Plot.line(curve, { x: "x", y: "value", stroke: "#0072b2", title: (row: Row) => `${label(row)} (${short(num(row, "low"))} to ${short(num(row, "high"))})`, tip: true }),
          Plot.dot(measured, { x: "x", y: "value", fill: "currentColor", title: label, tip: true }),
        ],
      }),
    };
  });
}

// The picture that shows the largest loss comes first.
export function pictures(data: Data): Picture[] {
  if (data.model_titles) return models(data);
  const found = data.findings?.[0];
  const all = [steps(data), lanes(data), ranks(data), waits(data), files(data), moved(data), mounts(data), sizes(data, "bytes"), sizes(data, "ns"), checkpoints(data)].filter((picture) => picture !== null);
  const first = found?.worker != null ? "lanes" : found?.rank != null ? "ranks" : "steps";
  return all.sort((a, b) => Number(b.id === first) - Number(a.id === first));
}
