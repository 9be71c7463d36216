/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - makes --help and the man page headrace-collector(8) from the table of keys */
#ifndef HEADRACE_COLLECTOR_MANUAL_H
#define HEADRACE_COLLECTOR_MANUAL_H

#include <stdio.h>

void hr_collector_help(FILE *to);
void hr_collector_man(FILE *to);

#endif
