/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e_files.h - the files of the job of workflow E
 *
 * A file is a number: shards first, then what each checkpoint of each rank consists of. Pure functions.
 */
#ifndef HEADRACE_TESTS_BENCH_WORKFLOW_E_FILES_H
#define HEADRACE_TESTS_BENCH_WORKFLOW_E_FILES_H

#include "tests/bench/workflow_e.h"

#define HR_WE_SHARDS	  4096u /* a power of two */
#define HR_WE_CHECKPOINTS 6u	/* with SCR half as many */
#define HR_WE_LAYERS	  8u

/* Of one rank and checkpoint. */
enum hr_we_part {
	HR_WE_MODEL,
	HR_WE_OPTIMIZER,
	HR_WE_LAYER,				       /* and so many more */
	HR_WE_REDUNDANCY = HR_WE_LAYER + HR_WE_LAYERS, /* SCR's, on the SSD */
	HR_WE_FLUSHED,				       /* the same on the parallel file system */
	HR_WE_PARTS,
};

#define HR_WE_NUMBERS (HR_WE_SHARDS + HR_WE_CHECKPOINTS * HR_WE_RANKS * HR_WE_PARTS)

static inline uint32_t hr_we_number(uint32_t checkpoint, uint32_t rank, unsigned part)
{
	return HR_WE_SHARDS + (checkpoint * HR_WE_RANKS + rank) * HR_WE_PARTS + part;
}

/* Index in hr_we_patterns and hr_we_mounts. */
unsigned hr_we_pattern_of(uint32_t number);
unsigned hr_we_mount_of(bool scr, uint32_t number);

/* Returns the length. */
size_t hr_we_path(bool scr, uint32_t number, char path[HR_GEN_PATH_BYTES]);

#endif
