/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served.h - the versions of abi.h that this daemon serves: its own and the one before
 *
 * Purpose   A node is upgraded while its jobs run: processes go on with the library that they have, and their sessions with the
 *           maps that it knows. What a version does otherwise than the next is a field of its row, and who reads a map or
 *           a hello asks the row. Nobody else compares numbers.
 *
 *           A new version N gets a row, and N-2 loses its own. An unknown version is told so (EPROTO), counted, and not recorded:
 *           of it only magic, abi, and of an answer status are known, at the same places in all versions.
 *
 *      version   what is otherwise than in the next one
 *      1         (it is the first)
 */
#ifndef HEADRACE_DAEMON_BASE_SERVED_H
#define HEADRACE_DAEMON_BASE_SERVED_H

#include <stddef.h>

#include "proto/abi.h"

struct hr_served {
	uint32_t abi;
};

/* NULL: not served. */
static inline const struct hr_served *hr_served(uint32_t abi)
{
	static const struct hr_served rows[] = {
		{.abi = HR_ABI_VERSION},
#if HR_ABI_VERSION > 1
		{.abi = HR_ABI_VERSION - 1},
#endif
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].abi == abi)
			return &rows[i];
	return NULL;
}

#endif
