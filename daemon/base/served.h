/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served.h - the versions of abi.h that this daemon serves: its own and the one before
 *
 * A node is upgraded while its jobs run, and running processes keep their shim. Only this file
 * distinguishes versions. A client of an unknown version is not recorded, but counted, and gets the
 * answer EPROTO: magic, abi and status of an answer have the same place in all versions.
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
