/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - the man page headraced(8), from the tables of keys and options. Any thread. */
#ifndef HEADRACE_DAEMON_MANUAL_H
#define HEADRACE_DAEMON_MANUAL_H

#include <stdio.h>

void hr_headraced_man(FILE *to);

#endif
