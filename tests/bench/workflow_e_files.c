/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/workflow_e_files.h"

#include <stdio.h>

const struct hr_gen_mount hr_we_mounts[HR_WE_MOUNTS] = {{"/p/gpfs1", "gpfs"}, {"/l/ssd", "xfs"}};
const char *const hr_we_patterns[HR_WE_PATTERNS] = {"part.bin", "model.pt", "optimizer.pt",
						    "layer.pt", "rank_.scr"};

enum { PFS, SSD };

static unsigned part_of(uint32_t number)
{
	return (number - HR_WE_SHARDS) % HR_WE_PARTS;
}

unsigned hr_we_pattern_of(uint32_t number)
{
	if (number < HR_WE_SHARDS)
		return 0;
	switch (part_of(number)) {
	case HR_WE_MODEL:
		return 1;
	case HR_WE_OPTIMIZER:
		return 2;
	case HR_WE_REDUNDANCY:
	case HR_WE_FLUSHED:
		return 4;
	default:
		return 3;
	}
}

/* Without SCR only what nobody else reads, the optimizer's state of a rank, is kept on the node. */
unsigned hr_we_mount_of(bool scr, uint32_t number)
{
	if (number < HR_WE_SHARDS || part_of(number) == HR_WE_FLUSHED)
		return PFS;
	return scr || part_of(number) == HR_WE_OPTIMIZER ? SSD : PFS;
}

size_t hr_we_path(bool scr, uint32_t number, char path[HR_GEN_PATH_BYTES])
{
	const char *root = hr_we_mounts[hr_we_mount_of(scr, number)].path;
	const char *folder = scr ? "scr" : "run";
	uint32_t rank, checkpoint;
	unsigned part;
	int n;

	if (number < HR_WE_SHARDS)
		return (size_t)snprintf(path, HR_GEN_PATH_BYTES, "%s/data/part-%05u.bin", root,
					number);
	part = part_of(number);
	rank = (number - HR_WE_SHARDS) / HR_WE_PARTS % HR_WE_RANKS;
	checkpoint = (number - HR_WE_SHARDS) / HR_WE_PARTS / HR_WE_RANKS + 1;
	if (part == HR_WE_MODEL)
		n = snprintf(path, HR_GEN_PATH_BYTES, "%s/%s/ckpt%u/model-%u-%u.pt", root, folder,
			     checkpoint, checkpoint, rank);
	else if (part == HR_WE_OPTIMIZER)
		n = snprintf(path, HR_GEN_PATH_BYTES, "%s/%s/ckpt%u/optimizer-%u-%u.pt", root,
			     folder, checkpoint, checkpoint, rank);
	else if (part >= HR_WE_REDUNDANCY)
		n = snprintf(path, HR_GEN_PATH_BYTES, "%s/%s/ckpt%u/rank_%u.scr", root, folder,
			     checkpoint, rank);
	else
		n = snprintf(path, HR_GEN_PATH_BYTES, "%s/%s/ckpt%u/layer-%u-%u-%u.pt", root,
			     folder, checkpoint, checkpoint, rank, part - HR_WE_LAYER);
	return (size_t)n;
}
