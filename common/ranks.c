/* SPDX-License-Identifier: Apache-2.0 */
#include "common/ranks.h"

#include <string.h>

/* Families in order of precedence. In `local` and `world`, the first variable has precedence. */
static const struct family {
	const char *rank;
	const char *local[2];
	const char *world[2];
} families[] = {
    {"HEADRACE_RANK", {"HEADRACE_LOCAL_RANK"}, {"HEADRACE_WORLD_SIZE"}},
    {"RANK", {"LOCAL_RANK"}, {"WORLD_SIZE"}},
    {"HOROVOD_RANK", {"HOROVOD_LOCAL_RANK"}, {"HOROVOD_SIZE"}},
    {"OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_LOCAL_RANK"}, {"OMPI_COMM_WORLD_SIZE"}},
    {"MV2_COMM_WORLD_RANK", {"MV2_COMM_WORLD_LOCAL_RANK"}, {"MV2_COMM_WORLD_SIZE"}},
    {"PMIX_RANK", {"MPI_LOCALRANKID"}, {0}},
    {"PMI_RANK", {"PMI_LOCAL_RANK"}, {"PMI_SIZE"}},
    {"PALS_RANKID", {"PALS_LOCAL_RANKID"}, {0}},
    {"ALPS_APP_PE", {0}, {0}},
    {"JSM_NAMESPACE_RANK", {"JSM_NAMESPACE_LOCAL_RANK"}, {"JSM_NAMESPACE_SIZE"}},
    {"FLUX_TASK_RANK", {"FLUX_TASK_LOCAL_ID"}, {"FLUX_JOB_SIZE"}},
    {"SLURM_PROCID", {"SLURM_LOCALID"}, {"SLURM_NTASKS"}},
};
#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

static bool ranks_parse(const char *text, size_t bytes, uint32_t *ret)
{
	uint64_t v = 0;

	if (bytes == 0 || bytes > 10)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	if (v >= HR_RANK_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool named(const char *name, const char *text, size_t bytes)
{
	return name && strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

/* Stores a value of family f, unless *value has one of a family with higher precedence. */
static bool ranks_take(uint32_t *value, uint8_t *from, uint32_t v, size_t f)
{
	if (*from && *from < f + 1)
		return false;
	if (*from == f + 1 && *value == v)
		return false;
	*value = v;
	*from = (uint8_t)(f + 1);
	return true;
}

/* Stores a number that no family has. Returns whether the number changed. */
static bool replace(uint32_t *value, uint32_t v)
{
	bool changed = *value != v;

	*value = v;
	return changed;
}

bool hr_rank_env(struct hr_rank *r, const char *text, size_t bytes)
{
	const char *equals = memchr(text, '=', bytes);
	size_t name_bytes;
	uint32_t v;

	if (!equals)
		return false;
	name_bytes = (size_t)(equals - text);
	if (!ranks_parse(equals + 1, bytes - name_bytes - 1, &v))
		return false;
	if (named("HEADRACE_LOADER", text, name_bytes))
		return replace(&r->loader_plus1, v + 1);
	if (named("HEADRACE_LOADER_WORKER", text, name_bytes))
		return replace(&r->loader_worker_plus1, v + 1);
	for (size_t f = 0; f < N_FAMILIES; f++) {
		if (named(families[f].rank, text, name_bytes))
			return ranks_take(&r->rank_plus1, &r->family, v + 1, f);
		for (unsigned i = 0; i < 2; i++) {
			if (named(families[f].local[i], text, name_bytes))
				return ranks_take(&r->local_plus1, &r->local_family, v + 1, f);
			if (named(families[f].world[i], text, name_bytes))
				return ranks_take(&r->world, &r->world_family, v, f);
		}
	}
	return false;
}

const char *hr_rank_source(unsigned family)
{
	return family >= 1 && family <= N_FAMILIES ? families[family - 1].rank : "";
}

/* Reads "a" or "a-b", and a comma after it. NULL: the text has another form. */
static const char *range(const char *p, uint32_t *ret_from, uint32_t *ret_to)
{
	size_t n = strspn(p, "0123456789");

	if (!ranks_parse(p, n, ret_from))
		return NULL;
	*ret_to = *ret_from;
	p += n;
	if (*p == '-') {
		n = strspn(++p, "0123456789");
		if (!ranks_parse(p, n, ret_to) || *ret_to < *ret_from)
			return NULL;
		p += n;
	}
	if (*p == ',' && p[1])
		return p + 1;
	return *p ? NULL : p;
}

bool hr_ranks_hold(const char *list, uint32_t n)
{
	uint32_t from, to;

	if (!list)
		return true;
	while (list && *list) {
		list = range(list, &from, &to);
		if (list && n >= from && n <= to)
			return true;
	}
	return false;
}

bool hr_ranks_valid(const char *list)
{
	uint32_t from, to;

	if (!list || !*list)
		return false;
	while (list && *list)
		list = range(list, &from, &to);
	return list != NULL;
}

bool hr_rank_left_out(const struct hr_rank *r, const char *ranks, const char *local_ranks)
{
	return (r->rank_plus1 && !hr_ranks_hold(ranks, r->rank_plus1 - 1)) ||
	       (r->local_plus1 && !hr_ranks_hold(local_ranks, r->local_plus1 - 1));
}
