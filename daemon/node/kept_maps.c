/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/kept_maps.h"

#include <stdlib.h>
#include <unistd.h>

/* Parses a name "s<proc>.<index>" of a retained descriptor. */
static bool parse_name(const char *name, uint64_t *ret_proc, uint32_t *ret_index)
{
	unsigned long long proc;
	unsigned long index;
	char *end;

	if (name[0] != 's' || name[1] < '0' || name[1] > '9')
		return false;
	proc = strtoull(name + 1, &end, 10);
	if (*end != '.' || end[1] < '0' || end[1] > '9')
		return false;
	index = strtoul(end + 1, &end, 10);
	if (*end || index >= HR_SESSION_MAPS)
		return false;
	*ret_proc = proc;
	*ret_index = (uint32_t)index;
	return true;
}

bool hr_kept_map(struct hr_inherited *list, size_t n, uint64_t proc, uint32_t index,
		 struct hr_map *ret)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t p;
		uint32_t k;
		bool opened;

		if (list[i].fd < 0 || !parse_name(list[i].name, &p, &k) || p != proc || k != index)
			continue;
		opened = hr_map_open(list[i].fd, ret) == 0;
		close(list[i].fd);
		list[i].fd = -1;
		return opened;
	}
	return false;
}

uint64_t hr_kept_maps_orphan(const struct hr_inherited *list, size_t n)
{
	uint64_t proc, processes = 0;
	uint32_t index;
	struct hr_map map;

	for (size_t i = 0; i < n; i++) {
		if (list[i].fd < 0 || !parse_name(list[i].name, &proc, &index))
			continue;
		processes += index == 0;
		if (hr_map_open(list[i].fd, &map))
			continue;
		__atomic_store_n(&map.hdr->level, HR_LEVEL_OFF, __ATOMIC_RELAXED);
		hr_map_close(&map);
	}
	return processes;
}

void hr_kept_maps_drop(struct hr_inherited *list, size_t n)
{
	uint64_t proc;
	uint32_t index;

	for (size_t i = 0; i < n; i++)
		if (list[i].fd >= 0 && parse_name(list[i].name, &proc, &index))
			hr_fdstore_remove(list[i].name);
}
