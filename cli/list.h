/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - lists that grow
 *
 * Owner     The caller's; a NULL list without room is an empty one.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_LIST_H
#define HEADRACE_CLI_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more of `bytes` each behind n; `list` points to the list's pointer. False when memory is out. */
static inline bool hr_list_reserve(void *list, size_t n, size_t *room, size_t bytes)
{
	void *grown;
	size_t more = *room == 0 ? 64 : 2 * *room;

	if (n < *room)
		return true;
	memcpy(&grown, list, sizeof(grown));
	grown = realloc(grown, more * bytes);
	if (grown == NULL)
		return false;
	memcpy(list, &grown, sizeof(grown));
	*room = more;
	return true;
}

#endif
