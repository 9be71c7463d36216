/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - the rank of a process from its environment; lists of ranks
 *
 * Threads   Any; the functions are pure, and use the caller's memory. docs/daemon.md has the
 *           families of variables and their order.
 */
#ifndef HEADRACE_COMMON_RANKS_H
#define HEADRACE_COMMON_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger than any job. Larger numbers are not accepted as a rank or world size. */
#define HR_RANK_MAX (1u << 24)

/* What the variables so far define. Zeroed memory: nothing. In NAME_plus1, 0 means unknown. */
struct hr_rank {
	uint32_t rank_plus1;
	uint32_t local_plus1;
	uint32_t world;
	uint8_t family;	      /* number of the family that defined the rank, from 1; 0: no rank */
	uint8_t local_family; /* number of the family that defined local_plus1 */
	uint8_t world_family;
	uint8_t spare;
	/* torch's number of a DataLoader and of its worker, which forked children inherit */
	uint32_t loader_plus1;
	uint32_t loader_worker_plus1;
};

/*
 * Reads one "NAME=VALUE", which may be hostile and has no NUL. A family with higher precedence
 * replaces others. Within a family, a later value replaces an earlier one. True: `r` changed.
 */
bool hr_rank_env(struct hr_rank *r, const char *text, size_t bytes);

/* Returns the variable of a family that defines the rank ("RANK", "SLURM_PROCID"). For 0: "". */
const char *hr_rank_source(unsigned family);

/*
 * hr_ranks_hold: whether n is in a list such as "0-47,64"; NULL contains all. hr_ranks_valid:
 * whether the text is such a list.
 */
bool hr_ranks_hold(const char *list, uint32_t n);
bool hr_ranks_valid(const char *list);

/* Whether the rank or local rank is known, but not in its list. NULL contains all ranks. */
bool hr_rank_left_out(const struct hr_rank *r, const char *ranks, const char *local_ranks);

#endif
