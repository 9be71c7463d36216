/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.h - kinds of files that the runs of two sides used: files whose names differ in numbers */
#ifndef HEADRACE_COMPARE_KINDS_H
#define HEADRACE_COMPARE_KINDS_H

#include "compare/side.h"

/* HR_KIND(measure): a row of the named query `measures` */
#define HR_KIND_MEASURES                                                                           \
	HR_KIND(files)                                                                             \
	HR_KIND(opens)                                                                             \
	HR_KIND(reads)                                                                             \
	HR_KIND(bytes_read)                                                                        \
	HR_KIND(read_s)                                                                            \
	HR_KIND(writes)                                                                            \
	HR_KIND(bytes_written)                                                                     \
	HR_KIND(write_s)                                                                           \
	HR_KIND(meta_ops)                                                                          \
	HR_KIND(meta_s)                                                                            \
	HR_KIND(read_cached)                                                                       \
	HR_KIND(read_cached_s)

/* Means over the runs of a side: sums over all processes. */
struct hr_kind_means {
#define HR_KIND(measure) double measure;
	HR_KIND_MEASURES
#undef HR_KIND
	const char *mount; /* where most time was spent; NULL: not known */
	double mount_s;	   /* the time there */
};

struct hr_kind {
	const char *name; /* folder and base name with * for numbers; NULL: all other files */
	struct hr_kind_means side[HR_COMPARE_SIDES]; /* with the work of A */
	struct hr_kind_means measured;		     /* side B with its own work */
};

struct hr_kinds {
	struct hr_kind *list;
	size_t n, room;
};

/* The name for people. */
static inline const char *hr_kind_shown(const struct hr_kind *k)
{
	return k->name != NULL ? k->name : "other files";
}

/* Seconds of all operations. */
static inline double hr_kind_seconds(const struct hr_kind_means *m)
{
	return m->read_s + m->write_s + m->meta_s;
}

/* Returns the value of a measure, by its name; 0: there is no such measure. */
double hr_kind_value(const struct hr_kind_means *m, const char *measure);

/* Finds the kinds of both sides, scaled. The texts are those of the runs. 0 or -ENOMEM. */
int hr_kinds_find(const struct hr_compare_side sides[HR_COMPARE_SIDES],
		  const struct hr_compare_scale *scale, struct hr_kinds *ret);
void hr_kinds_done(struct hr_kinds *kinds);

#endif
