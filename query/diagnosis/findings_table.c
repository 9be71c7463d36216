/* SPDX-License-Identifier: Apache-2.0 */
/* The table `findings`: the causes of lost time of each job. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "query/diagnosis/findings.h"
#include "query/tables/rows.h"
#include "common/text.h"

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

static int64_t ns(double seconds)
{
	return (int64_t)(seconds * 1e9);
}

static int add_row(struct hr_rows *rows, const struct hr_finding *f)
{
	struct hr_finding_row *row = hr_rows_add(rows, sizeof(*row));
	bool gains = f->gain_high > 0;

	if (row == NULL)
		return -ENOMEM;
	*row = (struct hr_finding_row){
	    .of = {.st = f->st},
	    .number = rows->n > 1 && row[-1].of.st == f->st ? row[-1].number + 1 : 1,
	    .cause = hr_finding_name(f->cause),
	    .lost_ns = ns(f->lost),
	    .wall_ns = ns(f->wall),
	    .meaning = f->meaning,
	    .rank = f->rank,
	    .whose = f->whose,
	    .worker = f->worker,
	    .object = f->object,
	    .mount = f->mount,
	    .place = f->place,
	    .evidence = f->evidence,
	    .action = f->action,
	    .gain_low_ns = gains ? ns(f->gain_low) : -1,
	    .gain_high_ns = gains ? ns(f->gain_high) : -1,
	    .gain_note = gains ? f->gain_note : NULL,
	    .avoid = f->avoid,
	    .is_wait = hr_finding_is_wait(f->cause),
	};
	return 0;
}

static int findings_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_diagnosis part = {0}; /* used if the query selects a rank or a part of the time */
	struct hr_findings findings = {0};
	const char *const *p = rows->parameters;
	struct hr_scope scope = HR_SCOPE_ALL;
	const struct hr_diagnosis *d = &part;
	int r;

	(void)want;
	if (p[RANK] != NULL)
		scope.rank = (int32_t)strtol(p[RANK], NULL, 10);
	if (p[FROM] != NULL)
		scope.from = strtod(p[FROM], NULL);
	if (p[TO] != NULL)
		scope.to = strtod(p[TO], NULL);
	if (p[RANK] == NULL && p[FROM] == NULL && p[TO] == NULL)
		r = hr_diagnosis_shared(rows->q, &d);
	else
		r = hr_diagnosis_make(rows->q, &scope, &part);
	if (r == 0)
		r = hr_findings_make(d, &findings);
	for (size_t i = 0; r == 0 && i < findings.n; i++)
		r = add_row(rows, &findings.list[i]);
	hr_findings_done(&findings);
	hr_diagnosis_done(&part);
	return r;
}

static const void *findings_row(const struct hr_rows *rows, size_t row)
{
	return (const struct hr_finding_row *)rows->data + row;
}

const struct hr_row_kind hr_findings_kind = {
    .table = HR_TABLE_FINDINGS,
    .all = true,
    .of_job = true,
    .parameters = parameters,
    .check = findings_check,
    .gather = findings_gather,
    .row = findings_row,
};
