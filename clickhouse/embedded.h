/* SPDX-License-Identifier: Apache-2.0 */
/* embedded.h - the files *.sql of this folder, as texts in the program (cmake/embed.cmake) */
#ifndef HEADRACE_CLICKHOUSE_EMBEDDED_H
#define HEADRACE_CLICKHOUSE_EMBEDDED_H

struct hr_ch_text {
	const char *name; /* of the file, without .sql; NULL after the last one */
	const char *text;
};

extern const struct hr_ch_text hr_ch_views[];

#endif
