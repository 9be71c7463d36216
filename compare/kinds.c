/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

static const struct {
	const char *measure;
	size_t offset;
} columns[] = {
#define HR_KIND(measure) {#measure, offsetof(struct hr_kind_means, measure)},
    HR_KIND_MEASURES
#undef HR_KIND
};

double hr_kind_value(const struct hr_kind_means *m, const char *measure)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		if (strcmp(columns[i].measure, measure) == 0)
			return *(const double *)((const char *)m + columns[i].offset);
	return 0;
}

static bool is_duration(const char *measure)
{
	size_t n = strlen(measure);

	return n > 2 && strcmp(measure + n - 2, "_s") == 0;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static struct hr_kind *kind_at(struct hr_kinds *kinds, const struct hr_measure *m)
{
	struct hr_kind *k;

	for (size_t i = 0; i < kinds->n; i++)
		if (is_same(kinds->list[i].name, m->name))
			return &kinds->list[i];
	if (!hr_array_reserve(kinds->list, kinds->n, kinds->room))
		return NULL;
	k = &kinds->list[kinds->n++];
	*k = (struct hr_kind){.name = m->name};
	return k;
}

static void add_value(struct hr_kind_means *means, size_t offset, const struct hr_measure *m,
		      double factor)
{
	*(double *)((char *)means + offset) += m->value * factor;
	if (is_duration(m->measure) && m->mount != NULL && m->value > means->mount_s) {
		means->mount = m->mount;
		means->mount_s = m->value;
	}
}

/* `part`: that of the run in the mean of its side. `scale`: see hr_compare_run_scale. */
static int add_row(struct hr_kinds *kinds, const struct hr_measure *m, int side, double part,
		   double scale)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		struct hr_kind *k;

		if (strcmp(columns[i].measure, m->measure) != 0)
			continue;
		k = kind_at(kinds, m);
		if (k == NULL)
			return -ENOMEM;
		add_value(&k->side[side], columns[i].offset, m, part * scale);
		if (side == HR_COMPARE_B)
			add_value(&k->measured, columns[i].offset, m, part);
	}
	return 0;
}

int hr_kinds_find(const struct hr_compare_side sides[HR_COMPARE_SIDES],
		  const struct hr_compare_scale *to, struct hr_kinds *ret)
{
	int r = 0;

	*ret = (struct hr_kinds){0};
	for (int s = 0; s < HR_COMPARE_SIDES; s++)
		for (size_t i = 0; i < sides[s].n && r == 0; i++) {
			const struct hr_compare_run *run = &sides[s].runs[i];
			double scale = hr_compare_run_scale(run, to);

			for (size_t k = 0; k < run->n && r == 0; k++)
				r = add_row(ret, &run->list[k], s, 1 / (double)sides[s].n, scale);
		}
	if (r < 0)
		hr_kinds_done(ret);
	return r;
}

void hr_kinds_done(struct hr_kinds *kinds)
{
	free(kinds->list);
	*kinds = (struct hr_kinds){0};
}
