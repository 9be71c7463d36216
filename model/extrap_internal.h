/* SPDX-License-Identifier: Apache-2.0 */
/* extrap_internal.h - what the readers and writers of both formats share; one thread */
#ifndef HEADRACE_MODEL_EXTRAP_INTERNAL_H
#define HEADRACE_MODEL_EXTRAP_INTERNAL_H

#include "model/extrap_file.h"

/* A file that is read line by line. */
struct hr__extrap_input {
	const char *at, *end;
	unsigned long line; /* number of the last line that hr__extrap_line returned */
	struct hr_measurements *to;
	bool first_file; /* `to` gets its parameters from this file */
	char **ret_error;
};

/* Returns the next line, without its end and blanks around it. False: the file has ended. */
bool hr__extrap_line(struct hr__extrap_input *in, const char **ret, size_t *ret_n);

/* Fails with -EBADMSG and "line N: ...". */
__attribute__((format(printf, 2, 3))) int hr__extrap_fail(const struct hr__extrap_input *in,
							  const char *format, ...);

/* The same with the quoted word between two parts of the message. */
int hr__extrap_fail_word(const struct hr__extrap_input *in, const char *before, const char *word,
			 size_t n, const char *after);

/* Adds a value, and describes a failure. */
int hr__extrap_add(const struct hr__extrap_input *in, const char *region, const char *metric,
		   const double *at, double value);

/* Finds or adds a parameter, and describes a failure. Returns its index. */
int hr__extrap_parameter(const struct hr__extrap_input *in, const char *name, size_t n);

/* Checks that a file has named all parameters. */
int hr__extrap_check(const struct hr__extrap_input *in, unsigned n_named);

struct hr__number {
	char s[32];
};

/* Returns the shortest decimal number that reads back as `value`. */
struct hr__number hr__number_text(double value);

int hr__text_read(struct hr__extrap_input *in);
int hr__text_write(FILE *out, const struct hr_measurements *m, char **ret_error);
int hr__jsonl_read(struct hr__extrap_input *in);
int hr__jsonl_write(FILE *out, const struct hr_measurements *m);

#endif
