/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_maps.h - maps of sessions from before a restart, from the retained descriptors
 *
 * Each descriptor is named "s<proc>.<index>". The list stays the caller's.
 */
#ifndef HEADRACE_DAEMON_NODE_KEPT_MAPS_H
#define HEADRACE_DAEMON_NODE_KEPT_MAPS_H

#include "common/fdstore.h"
#include "daemon/session/session.h"

/* Opens a map, and takes its descriptor out of the list. */
bool hr_kept_map(struct hr_inherited *list, size_t n, uint64_t proc, uint32_t index,
		 struct hr_map *ret);

/* Turns recording off in the maps' processes; returns how many these are. */
uint64_t hr_kept_maps_orphan(const struct hr_inherited *list, size_t n);

/* Removes the remaining maps from the descriptor store: the journal has no such processes. */
void hr_kept_maps_drop(struct hr_inherited *list, size_t n);

#endif
