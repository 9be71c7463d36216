/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served.h - the versions of abi.h that this daemon serves: its own and the one before
 *
 * Purpose   A node is upgraded while its jobs run: running processes keep the shim that they have.
 *           Code that treats the versions differently decides here, and nowhere else. A client of
 *           an unknown version gets EPROTO, is counted, and is not recorded. Only magic, abi and
 *           the status of an answer have the same place in all versions.
 */
#ifndef HEADRACE_DAEMON_BASE_SERVED_H
#define HEADRACE_DAEMON_BASE_SERVED_H

#include <stdbool.h>

#include "proto/abi.h"

static inline bool hr_served(uint32_t abi)
{
	return abi == HR_ABI_VERSION || (HR_ABI_VERSION > 1 && abi == HR_ABI_VERSION - 1);
}

#endif
