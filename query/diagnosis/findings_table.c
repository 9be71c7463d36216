/* SPDX-License-Identifier: Apache-2.0 */
/* The table `findings`: the causes of lost time of each job. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "query/diagnosis/findings.h"
#include "query/tables/rows.h"
#include "common/text.h"

struct found_rows {
	struct hr_diagnosis part; /* used if the query selects a rank or a part of the time */
	struct hr_findings findings;
};

static const char *const parameters[] = {"rank", "from_s", "to_s", NULL};
enum { RANK, FROM, TO };

static bool is_number(const char *text)
{
	char *end;

	return text == NULL || (isfinite(strtod(text, &end)) && end != text && *end == '\0');
}

static const char *findings_check(const char *const *p)
{
	uint64_t rank;

	if (p[RANK] != NULL && hr_text_parse_uint(p[RANK], INT32_MAX, &rank) < 0)
		return "hr_findings: `rank` must be a whole number from 0 to 2147483647";
	if (!is_number(p[FROM]) || !is_number(p[TO]))
		return "hr_findings: `from_s` and `to_s` must be numbers of seconds";
	return NULL;
}

static int findings_gather(struct hr_rows *rows, uint64_t want)
{
	struct found_rows *f = calloc(1, sizeof(*f));
	const char *const *p = rows->parameters;
	struct hr_scope scope = HR_SCOPE_ALL;
	const struct hr_diagnosis *d = &f->part;
	int r;

	(void)want;
	rows->data = f;
	if (f == NULL)
		return -ENOMEM;
	if (p[RANK] != NULL)
		scope.rank = (int32_t)strtol(p[RANK], NULL, 10);
	if (p[FROM] != NULL)
		scope.from = strtod(p[FROM], NULL);
	if (p[TO] != NULL)
		scope.to = strtod(p[TO], NULL);
	if (p[RANK] == NULL && p[FROM] == NULL && p[TO] == NULL)
		r = hr_diagnosis_shared(rows->q, &d);
	else
		r = hr_diagnosis_make(rows->q, &scope, &f->part);
	if (r == 0)
		r = hr_findings_make(d, &f->findings);
	rows->n = f->findings.n;
	return r;
}

static void findings_done(struct hr_rows *rows)
{
	struct found_rows *f = rows->data;

	if (f != NULL) {
		hr_findings_done(&f->findings);
		hr_diagnosis_done(&f->part);
	}
	free(f);
	rows->data = NULL;
}

static const struct hr_finding *findings_row(const struct hr_rows *rows, size_t row)
{
	return &((const struct found_rows *)rows->data)->findings.list[row];
}

static const struct hr_qstream *findings_stream(const struct hr_rows *rows, size_t row)
{
	return findings_row(rows, row)->st;
}

/* Returns the number of the finding among the findings of its job, from 1. */
static uint64_t number_of(const struct hr_rows *rows, size_t row)
{
	uint64_t number = 1;

	while (row > 0 && findings_row(rows, row - 1)->st == findings_row(rows, row)->st) {
		number++;
		row--;
	}
	return number;
}

static const size_t texts[] = {
#define TEXT(name) [HR_FINDINGS_##name] = offsetof(struct hr_finding, name)
    TEXT(meaning),  TEXT(whose),  TEXT(object), TEXT(mount), TEXT(place),
    TEXT(evidence), TEXT(action), TEXT(avoid)
#undef TEXT
};

static void findings_cell(const struct hr_rows *rows, size_t row, unsigned column,
			  struct hr_cell *c)
{
	const struct hr_finding *f = findings_row(rows, row);

	switch (column) {
	case HR_FINDINGS_number:
		c->u = number_of(rows, row);
		break;
	case HR_FINDINGS_cause:
		hr_cell_constant(c, hr_finding_name(f->cause));
		break;
	case HR_FINDINGS_lost_ns:
		c->i = (int64_t)(f->lost * 1e9);
		break;
	case HR_FINDINGS_wall_ns:
		c->i = (int64_t)(f->wall * 1e9);
		break;
	case HR_FINDINGS_rank:
		c->i = f->rank;
		c->null = f->rank < 0;
		break;
	case HR_FINDINGS_worker:
		c->i = f->worker;
		c->null = f->worker < 0;
		break;
	case HR_FINDINGS_gain_low_ns:
		c->i = (int64_t)(f->gain_low * 1e9);
		c->null = f->gain_high <= 0;
		break;
	case HR_FINDINGS_gain_high_ns:
		c->i = (int64_t)(f->gain_high * 1e9);
		c->null = f->gain_high <= 0;
		break;
	case HR_FINDINGS_gain_note:
		hr_cell_constant(c, f->gain_high > 0 ? f->gain_note : NULL);
		break;
	case HR_FINDINGS_is_wait:
		c->i = hr_finding_is_wait(f->cause);
		break;
	default:
		hr_cell_constant(c, *(const char *const *)((const char *)f + texts[column]));
	}
}

const struct hr_row_kind hr_findings_kind = {
    .table = HR_TABLE_FINDINGS,
    .of_job = true,
    .parameters = parameters,
    .check = findings_check,
    .gather = findings_gather,
    .done = findings_done,
    .stream = findings_stream,
    .cell = findings_cell,
};
