/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/compare/made_runs.h"

#include <string.h>

#include "tests/unit.h"

/* Factors of the runs; their mean is 1. */
static const double spread[MADE_RUNS] = {0.99, 1.01, 1, 0.995, 1.005};

void made_side_add(struct made_side *s, struct hr_measure m)
{
	size_t n = strlen(m.measure);
	bool duration = n > 2 && strcmp(m.measure + n - 2, "_s") == 0;

	for (unsigned i = 0; i < MADE_RUNS; i++) {
		struct made_run *run = &s->made[i];

		assert_true(run->n < MADE_MEASURES);
		run->list[run->n] = m;
		run->list[run->n++].value *= duration ? spread[i] : 1;
	}
}

void made_side_part(struct made_side *s, int64_t rank, const char *phase, const char *part,
		    double seconds)
{
	made_side_add(s, (struct hr_measure){.measure = "part_s",
					     .rank = rank,
					     .phase = phase,
					     .name = part,
					     .piece = -1,
					     .value = seconds});
}

void made_side_init(struct made_side *s)
{
	*s = (struct made_side){0};
	made_side_add(
	    s, (struct hr_measure){.measure = "processes", .rank = 0, .piece = -1, .value = 1});
	made_side_add(
	    s, (struct hr_measure){.measure = "steps", .rank = 0, .piece = -1, .value = 100});
	made_side_part(s, 0, "start", "imports", 2);
	made_side_part(s, 0, "train", "compute", 8);
}

void made_side_reads(struct made_side *s, const char *name, double opens, double reads,
		     double bytes, double each)
{
	struct hr_measure m = {.rank = 0, .piece = -1, .name = name, .mount = "/data"};
	const struct {
		const char *measure;
		double value;
	} all[] = {{"opens", opens},
		   {"reads", reads},
		   {"bytes_read", reads * bytes},
		   {"read_s", reads * each}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		m.measure = all[i].measure;
		m.value = all[i].value;
		made_side_add(s, m);
	}
}

struct hr_compare_side made_side(struct made_side *s)
{
	for (unsigned i = 0; i < MADE_RUNS; i++)
		s->runs[i] = (struct hr_compare_run){
		    .job = "job", .store = "store", .list = s->made[i].list, .n = s->made[i].n};
	return (struct hr_compare_side){s->runs, MADE_RUNS};
}
