/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"

_Static_assert(HR_GROUPS_MAX <= UINT8_MAX + 1, "a group's number is a byte");

/* The hash table of hr__groups_refine has 4 times as many slots as groups. */
#define SLOTS 512u

struct slot {
	uint64_t key; /* the group and the value */
	uint32_t id;  /* new group + 1; 0: the slot is free */
};

struct hr_groups *hr__groups_new(void)
{
	struct hr_groups *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->rows = malloc(HR_BATCH_EVENTS * sizeof(*g->rows));
	g->unordered = malloc(HR_BATCH_EVENTS * sizeof(*g->unordered));
	g->group = malloc(HR_BATCH_EVENTS);
	g->refined = malloc(HR_BATCH_EVENTS);
	if (g->rows != NULL && g->unordered != NULL && g->group != NULL && g->refined != NULL)
		return g;
	hr__groups_free(g);
	return NULL;
}

void hr__groups_free(struct hr_groups *g)
{
	if (g == NULL)
		return;
	free(g->rows);
	free(g->unordered);
	free(g->group);
	free(g->refined);
	free(g->met);
	free(g);
}

void hr__groups_start(struct hr_groups *g, uint32_t n_rows, uint32_t most)
{
	uint32_t worth = n_rows / HR_GROUPS_MIN_ROWS;

	g->most = most < HR_GROUPS_MAX ? most : HR_GROUPS_MAX;
	g->most = worth < g->most ? worth : g->most;
	g->most = g->most > 0 ? g->most : 1;
	g->n_rows = n_rows;
	g->n_groups = n_rows > 0;
	memset(g->group, 0, n_rows);
}

static struct slot *groups_find(struct slot slots[SLOTS], uint64_t key)
{
	uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	while (slots[at % SLOTS].id != 0 && slots[at % SLOTS].key != key)
		at++;
	return &slots[at % SLOTS];
}

bool hr__groups_refine(struct hr_groups *g, const uint32_t *values)
{
	uint32_t most = g->most, n_rows = g->n_rows, n = 0;
	struct slot slots[SLOTS] = {{0}};
	uint8_t *from = g->group, *to = g->refined;

	for (uint32_t k = 0; k < n_rows; k++) {
		uint64_t key = (uint64_t)from[k] << 32 | values[k];
		struct slot *s = groups_find(slots, key);

		if (s->id == 0) {
			if (n == most)
				return false;
			*s = (struct slot){key, ++n};
		}
		to[k] = (uint8_t)(s->id - 1);
	}
	g->n_groups = n;
	g->group = to;
	g->refined = from;
	return true;
}

/* Counts even and odd rows separately, so that the CPU does not wait for the previous increment. */
static void count_rows(struct hr_groups *g)
{
	uint32_t even[HR_GROUPS_MAX] = {0}, odd[HR_GROUPS_MAX] = {0}, first = 0, k = 0;
	uint32_t n_rows = g->n_rows;
	const uint8_t *group = g->group;

	for (; k + 1 < n_rows; k += 2) {
		even[group[k]]++;
		odd[group[k + 1]]++;
	}
	if (k < n_rows)
		even[group[k]]++;
	for (uint32_t i = 0; i < g->n_groups; i++) {
		g->groups[i].first = first;
		g->groups[i].n = even[i] + odd[i];
		first += g->groups[i].n;
	}
}

static void find_first_rows(struct hr_groups *g)
{
	uint32_t found = 0;

	for (uint32_t k = 0; found < g->n_groups; k++) {
		if (g->group[k] == found)
			g->groups[found++].row = g->unordered[k];
	}
}

void hr__groups_finish(struct hr_groups *g, bool want_rows)
{
	uint32_t next[HR_GROUPS_MAX], n_rows = g->n_rows, *rows = g->rows;
	const uint32_t *unordered = g->unordered;
	const uint8_t *group = g->group;

	count_rows(g);
	find_first_rows(g);
	if (!want_rows)
		return;
	if (g->n_groups == 1) {
		memcpy(rows, unordered, n_rows * sizeof(rows[0]));
		return;
	}
	for (uint32_t i = 0; i < g->n_groups; i++)
		next[i] = g->groups[i].first;
	for (uint32_t k = 0; k < n_rows; k++)
		rows[next[group[k]]++] = unordered[k];
}

/* Begins a pass of hr__groups_distinct, and makes or resets `met` if needed. */
static int begin_pass(struct hr_groups *g, uint32_t n_values)
{
	if (n_values > g->n_met) {
		uint32_t *met = calloc(n_values, sizeof(*met));

		if (met == NULL)
			return -ENOMEM;
		free(g->met);
		g->met = met;
		g->n_met = n_values;
		g->pass = 0;
	} else if (g->pass == UINT32_MAX) {
		memset(g->met, 0, g->n_met * sizeof(*g->met));
		g->pass = 0;
	}
	g->pass++;
	return 0;
}

int hr__groups_distinct(struct hr_groups *g, const uint32_t *value_of, uint32_t n_values)
{
	for (uint32_t i = 0; i < g->n_groups; i++) {
		struct hr_group *group = &g->groups[i];
		uint32_t *rows = g->rows + group->first, *met, n = 0, pass;

		if (begin_pass(g, n_values) < 0)
			return -ENOMEM;
		met = g->met;
		pass = g->pass;
		for (uint32_t k = 0, n_rows = group->n; k < n_rows; k++) {
			uint32_t value = value_of[rows[k]];

			value = value < n_values ? value : 0;
			rows[n] = rows[k];
			n += met[value] != pass;
			met[value] = pass;
		}
		group->n = n;
	}
	return 0;
}
