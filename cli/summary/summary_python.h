/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_python.h - what is known of a program in Python from marks of _headrace
 *
 * Those of functions.py and stacks.py have the reason why a process records no functions or stacks,
 * although the user asked for it. Those of hooks.py have the reason why a module has no marks.
 * Those of steps.py name a framework.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PYTHON_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PYTHON_H

#include "cli/summary/summary.h"
#include "common/region.h"

/* Adds a region of the frame. Returns 0 or -ENOMEM. */
int hr_summary_python_add(struct hr_summary_python *p, const Headrace__Regions *frame,
			  const struct hr_region *region);
void hr_summary_python_done(struct hr_summary_python *p);

/* Prints why functions, stacks or marks are missing and, without loops, how to mark them. */
void hr_summary_python_print(const struct hr_summary_python *p, bool loops, struct hr_sheet *sheet);

#endif
