/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.h - the names of regions, and the open frame of regions
 *
 * Part of the engine's state (state.h). A key is a hash of texts, so it is equal in all processes;
 * each process sends it once. Beyond HR_REGION_KEYS or HR_REGION_KEY_BYTES (of texts), regions are
 * recorded without a name, and counted (docs/daemon.md).
 */
#ifndef HEADRACE_DAEMON_ENGINE_REGIONS_H
#define HEADRACE_DAEMON_ENGINE_REGIONS_H

#include "common/region.h"
#include "daemon/journal/journal.h"
#include "common/map64.h"
#include "proto/abi.h"

#define HR_REGION_KEYS	     16384u
#define HR_REGION_KEY_BYTES  (UINT64_C(1) << 20)
#define HR_REGION_UNREPORTED 256u /* maximum number of placeholders in a frame */

struct hr_region_key {
	uint64_t id;
	uint32_t at;
	uint16_t domain_bytes, category_bytes, name_bytes;
	uint16_t kind;
};

struct hr_region_state {
	struct hr_map64 by_id;
	struct hr_region_key *keys;
	uint32_t n;
	char *texts;
	uint64_t n_bytes;
	struct hr_regions *open; /* the regions of the frame that is being filled; NULL: none */
	/* Placeholders in `open` for regions whose keys may be in a ring that is read later. */
	struct {
		uint64_t id;
		uint32_t text;
	} unreported[HR_REGION_UNREPORTED];
	uint32_t n_unreported;
	uint64_t first_ns; /* when the first region of `open` was added */
};

void hr_region_state_done(struct hr_region_state *s);

/* Writes all keys as one entry, which hr_region_keys_read reads. */
int hr_region_keys_write(const struct hr_region_state *s, struct hr_journal *j);
int hr_region_keys_read(struct hr_region_state *s, const struct hr_entry *entry);

#endif
