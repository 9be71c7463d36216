/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/position.h"

#include <fcntl.h>

#include "common/array.h"
#include "common/ops.h"

struct hr_place *hr_position_get(struct hr_positions *t, int32_t fd)
{
	uint32_t i = fd < 0 ? HR_MAP64_NONE : hr_map64_get(&t->by_fd, (uint32_t)fd);

	return i == HR_MAP64_NONE ? NULL : &t->v[i];
}

static uint32_t position_take_slot(struct hr_positions *t)
{
	uint32_t i = t->unused;

	if (i) {
		t->unused = t->v[i - 1].file;
		return i - 1;
	}
	if (!hr_array_reserve(t->v, t->n, t->room))
		return HR_MAP64_NONE;
	return t->n++;
}

static void give_slot(struct hr_positions *t, uint32_t i)
{
	t->v[i].file = t->unused;
	t->unused = i + 1;
}

struct hr_place *hr_position_open(struct hr_positions *t, int32_t fd, uint32_t file, uint16_t api,
				  int64_t at, uint32_t flags)
{
	struct hr_place last;
	uint32_t i;

	if (fd < 0)
		return NULL;
	hr_position_close(t, fd, &last);
	if (t->by_fd.used >= HR_POSITION_FDS)
		return NULL;
	i = position_take_slot(t);
	if (i == HR_MAP64_NONE)
		return NULL;
	t->v[i] = (struct hr_place){.at = flags & O_APPEND ? -1 : at,
				    .file = file,
				    .api = api,
				    .append = (flags & O_APPEND) != 0,
				    .cloexec = (flags & O_CLOEXEC) != 0,
				    .stream = api == HR_API_STDIO,
				    .refs = 1};
	if (hr_map64_set(&t->by_fd, (uint32_t)fd, i)) {
		t->v[i].refs = 0;
		give_slot(t, i);
		return NULL;
	}
	return &t->v[i];
}

void hr_position_share(struct hr_place *p)
{
	p->at = -1;
	p->shared = HR_SHARED;
}

void hr_positions_share(struct hr_positions *t, bool vforked)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (!vforked || !t->v[i].cloexec)
			hr_position_share(&t->v[i]);
}

void hr_position_dup(struct hr_positions *t, int32_t from, int32_t to, bool cloexec)
{
	uint32_t i = from < 0 ? HR_MAP64_NONE : hr_map64_get(&t->by_fd, (uint32_t)from);
	struct hr_place last;

	if (from == to || to < 0)
		return;
	hr_position_close(t, to, &last);
	if (i == HR_MAP64_NONE || t->by_fd.used >= HR_POSITION_FDS)
		return;
	if (hr_map64_set(&t->by_fd, (uint32_t)to, i))
		return;
	t->v[i].refs++;
	t->v[i].cloexec &= cloexec;
}

bool hr_position_close(struct hr_positions *t, int32_t fd, struct hr_place *ret_last)
{
	uint32_t i = fd < 0 ? HR_MAP64_NONE : hr_map64_get(&t->by_fd, (uint32_t)fd);

	if (i == HR_MAP64_NONE)
		return false;
	hr_map64_remove(&t->by_fd, (uint32_t)fd);
	if (--t->v[i].refs)
		return false;
	*ret_last = t->v[i];
	give_slot(t, i);
	return true;
}

void hr_positions_done(struct hr_positions *t)
{
	hr_map64_done(&t->by_fd);
	free(t->v);
	*t = (struct hr_positions){0};
}
