// SPDX-License-Identifier: Apache-2.0
// Colours of Okabe and Ito, which the colour-blind can distinguish; each part has the same colour in all pictures.

export const parts = [
  "compute",
  "wait: files",
  "wait: no core for worker",
  "wait: worker computes",
  "wait: other",
  "wait: other ranks",
  "checkpoint",
  "own files",
  "start and end",
];
export const partColours = ["#8fa3b5", "#d55e00", "#cc79a7", "#e69f00", "#f0e442", "#009e73", "#0072b2", "#56b4e9", "#c9c9c9"];

export const classes = ["read", "write", "other"];
export const classColours = ["#d55e00", "#0072b2", "#999999"];

// What happens in a lane, from the background to the foreground.
export const acts = ["worker prepares a batch", "training waits", "optimizer", "checkpoint", "read", "write", "other I/O"];
export const actColours = ["#b8c4ce", "#882255", "#009e73", "#56b4e9", "#d55e00", "#0072b2", "#e69f00"];
