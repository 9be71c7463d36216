// SPDX-License-Identifier: Apache-2.0
// The data of the page: the rows and the SQL of each query of cli/report/sql. Times are in nanoseconds.

export type Value = string | number | null;
export type Row = Record<string, Value>;

export interface Facts {
  job: string;
  attempt: number;
  name: string | null;
  user: string | null;
  state: string;
  start_ns: number;
  dur_ns: number;
  bin_ns: number;
  [more: string]: Value;
}

export interface Data {
  facts: Facts[]; // missing in pages that are not about a job
  [query: string]: Row[];
}

export interface Page {
  version: string;
  live: boolean; // true: the server of the page has newer data each second
  queries: Record<string, string>; // name -> SQL
}

export function parse<T>(id: string): T {
  return JSON.parse(document.getElementById(id)?.textContent ?? "{}") as T;
}

export const num = (row: Row, column: string): number => Number(row[column] ?? 0);
export const text = (row: Row, column: string): string => String(row[column] ?? "");
