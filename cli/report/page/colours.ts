// SPDX-License-Identifier: Apache-2.0
// Colours of Okabe and Ito, which colour-blind people can distinguish. A part of the time has the same colour in all pictures.

// The groups of query/diagnosis/parts.def. Groups with similar colours seldom occur together.
const groups: Record<string, string> = {
  "compute": "#8fa3b5",
  "wait: files": "#d55e00",
  "wait: no free core": "#cc79a7",
  "wait: making batches": "#e69f00",
  "wait: sleep": "#f0e442",
  "wait: network": "#aa4499",
  "wait: lock": "#882255",
  "wait: start of workers": "#44aa99",
  "wait: other": "#999933",
  "wait: other ranks": "#009e73",
  "checkpoints": "#0072b2",
  "file I/O of the training": "#56b4e9",
  "start and end": "#c9c9c9",
};
export const parts = Object.keys(groups);
export const partColour = (part: string): string => groups[part] ?? "#c9c9c9";

export const classes = ["read", "write", "other"];
export const classColours = ["#d55e00", "#0072b2", "#999999"];

// The kinds of bars in the timeline of a process, from the background to the foreground.
export const acts = ["worker prepares a batch", "training waits", "optimizer", "checkpoint", "read", "write", "other I/O"];
// A kind that means the same as a group has the colour of this group.
export const actColours = ["#b8c4ce", "#7b5ea7", "#117733", "#0072b2", "#d55e00", "#ff9da7", "#a06a3a"];
