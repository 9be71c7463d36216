/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - which rank a process says it is, from its environment; lists of ranks
 *
 * Pure functions over the caller's memory. The families of variables and their order are those of docs/daemon.md.
 */
#ifndef HEADRACE_COMMON_RANKS_H
#define HEADRACE_COMMON_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than any machine has: what is not below it is no rank, and no size of a world. */
#define HR_RANK_MAX (1u << 24)

/* What the environment says so far; zeroed memory says nothing. Values are "+ 1", 0: not said. */
struct hr_rank {
	uint32_t rank_plus1;
	uint32_t local_plus1;
	uint32_t world;
	uint8_t family;	      /* precedence of the rank, 1 is the highest; 0: none */
	uint8_t local_family; /* of local_plus1 */
	uint8_t world_family;
	uint8_t spare;
	/* Numbers that torch gives to the DataLoader whose worker the process is, and to the worker. Its forked children inherit both. */
	uint32_t loader_plus1;
	uint32_t loader_worker_plus1;
};

/*
 * Takes one "NAME=VALUE" (not NUL-terminated, hostile) into account; a higher family wins, the same family is
 * replaced by the later value. Returns whether anything changed.
 */
bool hr_rank_env(struct hr_rank *r, const char *text, size_t bytes);

/* Name of the family's rank variable ("RANK", "SLURM_PROCID"); "" for 0. */
const char *hr_rank_source(unsigned family);

/* "0-47,64": whether n is in it; NULL holds all. hr_ranks_valid says whether the text is a list at all. */
bool hr_ranks_hold(const char *list, uint32_t n);
bool hr_ranks_valid(const char *list);

/* Nobody asked for a process whose rank, or local rank, is known and not in its list; NULL holds all. */
bool hr_rank_left_out(const struct hr_rank *r, const char *ranks, const char *local_ranks);

#endif
