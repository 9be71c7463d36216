/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_maps.h - maps of sessions that existed before a restart, from retained descriptors
 * "s<proc>.<index>"
 */
#ifndef HEADRACE_DAEMON_NODE_KEPT_MAPS_H
#define HEADRACE_DAEMON_NODE_KEPT_MAPS_H

#include "common/fdstore.h"
#include "daemon/session/session.h"

/* Opens a map, and closes its descriptor in the list. Returns false if the list lacks the map. */
bool hr_kept_map(struct hr_inherited *list, size_t n, uint64_t proc, uint32_t index,
		 struct hr_map *ret);

/*
 * Sets the level of all maps to off, so that their processes stop recording. Returns the number of
 * these processes.
 */
uint64_t hr_kept_maps_orphan(const struct hr_inherited *list, size_t n);

/*
 * Removes the maps that are still in the list from the descriptor store: the journal does not
 * contain their processes.
 */
void hr_kept_maps_drop(struct hr_inherited *list, size_t n);

#endif
