/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_python.h - whether functions and stacks of Python were recorded, if the user asked for it
 *
 * Marks of _headrace/functions.py and stacks.py have the reason why a process records none.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PYTHON_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PYTHON_H

#include "cli/summary/summary.h"
#include "common/region.h"

/* Adds a region of the frame. Returns 0 or -ENOMEM. */
int hr_summary_python_add(struct hr_summary_python *p, const Headrace__Regions *frame,
			  const struct hr_region *region);
void hr_summary_python_done(struct hr_summary_python *p);

/* Prints why functions or stacks are missing. */
void hr_summary_python_print(const struct hr_summary_python *p, struct hr_sheet *sheet);

#endif
