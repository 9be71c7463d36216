// SPDX-License-Identifier: Apache-2.0
// Numbers for people, by the rules of common/text.h: three digits and a unit.

// Three digits. printf of C rounds ties to an even digit, toFixed up.
function digits(value: number): string {
  const decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const scale = 10 ** decimals;
  const even = Math.floor(value * scale);
  const tie = Math.abs((value * 2 ** (decimals + 1)) % 2) === 1;
  return (tie && even % 2 === 0 ? even / scale : value).toFixed(decimals);
}

export function duration(ns: number): string {
  const whole = Math.round(ns);
  if (whole === 0) return "0 s";
  if (whole < 1000) return `${whole} ns`;
  if (ns < 999_500) return `${digits(ns / 1e3)} us`;
  if (ns < 999_500_000) return `${digits(ns / 1e6)} ms`;
  if (ns < 995e8) return `${digits(ns / 1e9)} s`;
  const s = Math.round(ns / 1e9);
  const two = (n: number): string => String(n).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)} min ${two(s % 60)} s` : `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n.toFixed(0)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  n /= 1024;
  for (; n >= 1023.5 && unit + 1 < units.length; unit++) n /= 1024;
  return `${digits(n)} ${units[unit]}`;
}

export const count = (n: number): string => n.toLocaleString("en-US");
export const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

// Formats a value of a table. The name of the column determines the unit.
export function cell(column: string, value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (column === "start_ns") return new Date(value / 1e6).toISOString();
  if (column.endsWith("_ns") || column === "ns") return duration(value);
  if (column.startsWith("bytes")) return bytes(value);
  if (column === "share") return percent(value);
  return count(value);
}

// Leaves out the middle of a long path.
export function shorten(path: string, most: number): string {
  const half = Math.floor((most - 1) / 2);
  return path.length <= most ? path : `${path.slice(0, half)}…${path.slice(path.length - half)}`;
}
