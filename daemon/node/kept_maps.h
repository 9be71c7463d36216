/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_maps.h - maps of sessions from before a restart, as the descriptor store has handed them on
 *
 * Each is named "s<proc>.<index>". The list stays the caller's.
 */
#ifndef HEADRACE_DAEMON_NODE_KEPT_MAPS_H
#define HEADRACE_DAEMON_NODE_KEPT_MAPS_H

#include "common/fdstore.h"
#include "daemon/session/session.h"

/* Opens one of them, and takes it out of the list. */
bool hr_kept_map(struct hr_inherited *list, size_t n, uint64_t proc, uint32_t index,
		 struct hr_map *ret);

/* Nobody reads what their processes write: puts these to sleep, and returns how many they are. */
uint64_t hr_kept_maps_orphan(const struct hr_inherited *list, size_t n);

/* Has the store forget what is left of them: processes that the journal does not know. */
void hr_kept_maps_drop(struct hr_inherited *list, size_t n);

#endif
