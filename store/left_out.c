/* SPDX-License-Identifier: Apache-2.0 */
#include "store/left_out.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text.h"

#define OPENS_LEAST 100u
#define ROWS_MOST   256u /* a limit, because clients choose the patterns; one more row is for "" */

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static size_t left_out_find(const struct hr_left_out *l, const char *pattern)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->v[i].pattern, pattern) != 0)
		i++;
	return i;
}

static void move_up(struct hr_left_out *l, size_t i)
{
	struct hr_left_out_row row = l->v[i];

	for (; i > 0 && l->v[i - 1].opens < row.opens; i--)
		l->v[i] = l->v[i - 1];
	l->v[i] = row;
}

int hr_left_out_add(struct hr_left_out *l, const void *pattern, size_t bytes, uint64_t opens)
{
	char *text = hr_text_escaped(pattern, bytes);
	size_t i;

	if (text == NULL)
		return -ENOMEM;
	i = left_out_find(l, text);
	if (i == l->n && l->n >= ROWS_MOST) {
		*text = '\0';
		i = left_out_find(l, text);
	}
	if (i == l->n && hr_array_reserve(l->v, l->n, l->room))
		l->v[l->n++] = (struct hr_left_out_row){.pattern = text};
	else
		free(text);
	if (i == l->n)
		return -ENOMEM;
	l->v[i].opens = sum(l->v[i].opens, opens);
	move_up(l, i);
	return 0;
}

int hr_left_out_take(struct hr_left_out *l, const struct hr_process *process)
{
	int r = 0;

	for (size_t i = 0; i < process->msg->n_excluded && r == 0; i++) {
		const Headrace__Excluded *row = process->msg->excluded[i];

		r = hr_left_out_add(l, row->pattern.data, row->pattern.len, row->opens);
	}
	return r;
}

/* Whether the pattern covers only programs and their settings, and no data sets. */
static bool is_system(const char *pattern)
{
	static const char *const folders[] = {"/etc",  "/dev", "/proc",	 "/sys", "/bin",
					      "/boot", "/lib", "/lib64", "/sbin"};
	size_t top = strcspn(pattern + (*pattern == '/'), "/") + (*pattern == '/');

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (strlen(folders[i]) == top && memcmp(folders[i], pattern, top) == 0)
			return true;
	return false;
}

static bool matters(const struct hr_left_out_row *row)
{
	return row->opens >= OPENS_LEAST && !is_system(row->pattern);
}

static void left_out_put(FILE *out, const struct hr_left_out_row *row, bool first)
{
	const char *how = strpbrk(row->pattern, "*?") != NULL ? "of" : "below";

	fprintf(out, "%s%s%s", first ? "" : ", ", hr_text_count(row->opens).s,
		first ? " opens" : "");
	if (*row->pattern != '\0')
		fprintf(out, " %s %s", how, row->pattern);
	else
		fputs(" by other patterns", out);
}

char *hr_left_out_text(const struct hr_left_out *l, uint64_t recorded)
{
	uint64_t opens = 0;
	char *text = NULL;
	size_t bytes;
	bool first = true;
	FILE *out;

	for (size_t i = 0; i < l->n; i++)
		opens = sum(opens, matters(&l->v[i]) ? l->v[i].opens : 0);
	if (opens == 0 || opens < sum(opens, recorded) / 10)
		return NULL;
	out = open_memstream(&text, &bytes);
	if (out == NULL)
		return NULL;
	for (size_t i = 0; i < l->n; i++) {
		if (!matters(&l->v[i]))
			continue;
		left_out_put(out, &l->v[i], first);
		first = false;
	}
	fputs(": excluded by default (--include lists the paths to record instead)", out);
	return hr_text_close(out, &text);
}

void hr_left_out_done(struct hr_left_out *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].pattern);
	free(l->v);
	*l = (struct hr_left_out){0};
}
