/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the difference of two clocks from what both have seen: steps, or regions with one name. */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/fnv.h"
#include "import/internal.h"

#define LANDMARKS_MOST (4u << 20)
#define SHIFT_MOST     1000 /* largest difference of the numbers of a step */

/* Kinds with a purpose have one key each; of other regions, the name is the key. */
static uint64_t key_make(uint32_t kind, const char *name, size_t bytes)
{
	if (kind > HR_REGION_MARK)
		return kind;
	return hr_fnv(HR_FNV_BASIS, name, bytes) | UINT64_C(1) << 63;
}

int hr__landmark_add(struct hr__landmarks *l, const struct hr__landmarks *only,
		     const struct hr_region *region, const struct hr_import_slice *name, int64_t ns)
{
	uint64_t key = key_make(region->kind, name->p, name->n);
	uint32_t count = hr_map64_get(&l->counts, key);
	bool step = region->kind == HR_REGION_STEP;

	if (l->n == LANDMARKS_MOST || (step && region->step == HR_REGION_UNKNOWN))
		return 0;
	if (only && hr_map64_get(&only->counts, key) == HR_MAP64_NONE)
		return 0;
	count = count == HR_MAP64_NONE ? 0 : count;
	if (!hr_array_reserve(l->list, l->n, l->room) || hr_map64_set(&l->counts, key, count + 1))
		return -ENOMEM;
	l->list[l->n++] = (struct hr__landmark){key, step ? region->step : HR_REGION_UNKNOWN, ns};
	return 0;
}

void hr__landmarks_done(struct hr__landmarks *l)
{
	free(l->list);
	hr_map64_done(&l->counts);
	*l = (struct hr__landmarks){0};
}

static int by_key_and_time(const void *a, const void *b)
{
	const struct hr__landmark *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Sorts, keeps the first of several steps with one number, and numbers the other regions. */
static void landmarks_number(struct hr__landmarks *l)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->n; i++) /* from an earlier call */
		if (l->list[i].key != HR_REGION_STEP)
			l->list[i].number = HR_REGION_UNKNOWN;
	if (l->n > 1)
		qsort(l->list, l->n, sizeof(*l->list), by_key_and_time);
	for (uint32_t i = 0; i < l->n; i++) {
		struct hr__landmark m = l->list[i];
		const struct hr__landmark *last = kept ? &l->list[kept - 1] : NULL;
		bool same = last && last->key == m.key;

		if (m.key == HR_REGION_STEP && same && last->number == m.number)
			continue;
		if (m.key != HR_REGION_STEP)
			m.number = same ? last->number + 1 : 0;
		l->list[kept++] = m;
	}
	l->n = kept;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Whether it takes part: a step or, of other regions, one that both have equally often. */
static bool landmark_counts(const struct hr__landmarks *recorded, const struct hr__landmarks *found,
			    const struct hr__landmark *m, bool steps)
{
	if (steps)
		return m->key == HR_REGION_STEP;
	return m->key != HR_REGION_STEP &&
	       hr_map64_get(&recorded->counts, m->key) == hr_map64_get(&found->counts, m->key);
}

/* Sets the median of the differences, and how far they deviate from it. Sorts them. */
static void alignment_set(struct hr__alignment *a, int64_t *differences)
{
	double sum = 0;

	if (a->n == 0)
		return;
	qsort(differences, a->n, sizeof(*differences), by_value);
	a->offset_ns = differences[a->n / 2];
	for (uint32_t i = 0; i < a->n; i++) {
		differences[i] -= a->offset_ns;
		differences[i] = differences[i] < 0 ? -differences[i] : differences[i];
		sum += (double)differences[i];
	}
	qsort(differences, a->n, sizeof(*differences), by_value);
	a->error_ns = (uint64_t)differences[a->n / 2];
	a->most_ns = (uint64_t)differences[a->n - 1];
	a->mean_ns = (uint64_t)(sum / a->n);
}

/* Compares step n of the trace with step n + shift of the recording. `room`: of found->n. */
static void landmarks_compare(const struct hr__landmarks *recorded,
			      const struct hr__landmarks *found, int64_t clock_ns, bool steps,
			      int64_t shift, int64_t *room, struct hr__alignment *ret)
{
	uint32_t at = 0;

	*ret = (struct hr__alignment){.steps = steps};
	for (uint32_t i = 0; i < found->n; i++) {
		struct hr__landmark m = found->list[i];

		if (!landmark_counts(recorded, found, &m, steps))
			continue;
		m.number += (uint64_t)shift;
		if (m.number > UINT64_MAX / 2)
			continue;
		while (at < recorded->n &&
		       (recorded->list[at].key < m.key ||
			(recorded->list[at].key == m.key && recorded->list[at].number < m.number)))
			at++;
		if (at < recorded->n && recorded->list[at].key == m.key &&
		    recorded->list[at].number == m.number)
			room[ret->n++] = recorded->list[at].ns - (m.ns + clock_ns);
	}
	alignment_set(ret, room);
}

/* Returns the median time from one step to the next in the recording. 0: unknown. */
static int64_t step_ns(const struct hr__landmarks *l, int64_t *room)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < l->n; i++)
		if (l->list[i].key == HR_REGION_STEP && l->list[i - 1].key == HR_REGION_STEP &&
		    l->list[i].number == l->list[i - 1].number + 1)
			room[n++] = l->list[i].ns - l->list[i - 1].ns;
	if (n == 0)
		return 0;
	qsort(room, n, sizeof(*room), by_value);
	return room[n / 2];
}

int hr__landmarks_align(struct hr__landmarks *recorded, struct hr__landmarks *found,
			int64_t clock_ns, bool near, struct hr__alignment *ret)
{
	int64_t *room, length, shift;
	struct hr__alignment other;

	*ret = (struct hr__alignment){0};
	room = calloc((size_t)recorded->n + found->n + 1, sizeof(*room));
	if (!room)
		return -ENOMEM;
	landmarks_number(recorded);
	landmarks_number(found);
	length = step_ns(recorded, room);
	landmarks_compare(recorded, found, clock_ns, true, 0, room, ret);
	shift = near && length > 0 && ret->n ? -ret->offset_ns / length : 0;
	shift = shift < -SHIFT_MOST || shift > SHIFT_MOST ? 0 : shift;
	for (int64_t k = shift - 2; k <= shift + 2; k++) {
		landmarks_compare(recorded, found, clock_ns, true, k, room, &other);
		/* Fewer steps in common, or hardly less deviation: the numbers are right. */
		if (other.n > ret->n / 2 && other.mean_ns < ret->mean_ns / 2)
			*ret = other;
	}
	if (!ret->n)
		landmarks_compare(recorded, found, clock_ns, false, 0, room, ret);
	free(room);
	return 0;
}
