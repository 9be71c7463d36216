/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/train_answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/notes.h"
#include "tests/unit.h"

struct train *job;

int train_setup(void **state)
{
	job = train_new();
	fixture_open(&fix, job->store, NULL);
	return 0;
}

int train_teardown(void **state)
{
	fixture_close(&fix);
	train_free(job);
	return 0;
}

/* One line of CSV to its cells; false: there is none. */
static bool split(char **at, char *cells[ANSWER_COLUMNS], size_t *ret_n)
{
	char *from = *at, *to = *at;
	bool quoted = false;

	if (*from == '\0')
		return false;
	for (*ret_n = 0, cells[0] = to;; from++) {
		assert_true(*from != '\0' && *ret_n + 1 < ANSWER_COLUMNS);
		if (*from == '"') {
			quoted = !quoted;
		} else if (!quoted && (*from == ',' || *from == '\n')) {
			bool last = *from == '\n';

			*to++ = '\0';
			cells[++*ret_n] = to;
			if (last)
				break;
		} else {
			*to++ = *from;
		}
	}
	*at = from + 1;
	return true;
}

struct answer answer_ask(const char *name, char *a, char *b, char *c)
{
	struct answer r = {.text = fixture_named(&fix, name, a, b, c)};

	r.at = r.text;
	assert_true(split(&r.at, r.header, &r.n_columns));
	return r;
}

bool answer_next(struct answer *r)
{
	size_t n;
	bool some = split(&r->at, r->cells, &n);

	if (!some)
		free(r->text);
	else
		assert_int_equal(n, r->n_columns);
	return some;
}

const char *answer_cell(const struct answer *r, const char *column)
{
	for (size_t i = 0; i < r->n_columns; i++)
		if (strcmp(r->header[i], column) == 0)
			return r->cells[i];
	fail_msg("no column %s", column);
	return NULL;
}

double answer_number(const struct answer *r, const char *column)
{
	const char *text = answer_cell(r, column);
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0')
		fail_msg("%s: \"%s\" is no number", column, text);
	return value;
}

void answer_near(const struct answer *r, const char *column, double should)
{
	double is = answer_number(r, column);

	if (fabs(is - should) > 1e-9 * fabs(should) + 1e-12)
		fail_msg("%s is %.12g, should be %.12g", column, is, should);
}

void answer_ns(const struct answer *r, const char *column, uint64_t ns)
{
	answer_near(r, column, (double)ns / 1e9);
}

void answer_text(const struct answer *r, const char *column, const char *should)
{
	if (strcmp(answer_cell(r, column), should) != 0)
		fail_msg("%s is \"%s\", should be \"%s\"", column, answer_cell(r, column), should);
}

void answer_lengths(const struct answer *r, enum train_task task, uint32_t kind)
{
	static uint64_t list[TRAIN_REGIONS];
	size_t n = train_lengths(job, task, kind, list);

	answer_ns(r, "median_s", train_at_share(list, n, 50));
	answer_ns(r, "p95_s", train_at_share(list, n, 95));
	answer_ns(r, "max_s", train_at_share(list, n, 100));
}

char answer_said[4][512];
static unsigned n_said;

static void remember(void *self, const char *text)
{
	snprintf(answer_said[n_said++ % 4], sizeof(answer_said[0]), "%s", text);
}

unsigned answer_notes(struct fixture *f, const char *name)
{
	static const struct hr_sink messages = {remember, NULL};
	struct hr_named_args args;
	char *error = NULL;

	n_said = 0;
	assert_int_equal(hr_named_args_init(hr_named_find(name), NULL, 0, &args, &error), 0);
	assert_int_equal(hr_named_notes(f->q, &args, &messages), 0);
	hr_named_args_done(&args);
	return n_said;
}

void answer_lacks(const char *name, const char *note)
{
	char *store = fixture_make_runs(), *text;
	struct fixture f;

	fixture_open(&f, store, NULL);
	text = fixture_named(&f, name, NULL, NULL, NULL);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	assert_int_equal(answer_notes(&f, name), 1);
	assert_int_equal(strncmp(answer_said[0], note, strlen(note)), 0);
	fixture_close(&f);
	build_remove(store);
}
