/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_internal.h - shared by fleet.c (streams) and fleet_look.c (sums) */
#ifndef HEADRACE_COLLECTOR_FLEET_INTERNAL_H
#define HEADRACE_COLLECTOR_FLEET_INTERNAL_H

#include "collector/fleet.h"
#include "common/save.h"
#include "proto/now.h"

#define HR__FLEET_TEXT 256u /* bytes of a name; a longer one is cut */

struct hr__fleet_mount {
	ProtobufCBinaryData path;
	char *fs_type;
	Headrace__FleetRate rate;
};

struct hr__fleet_folder {
	ProtobufCBinaryData path;
	double ops; /* per second, estimated from the files whose names the node has */
};

/* The last Now of a stream. */
struct hr__fleet_now {
	struct hr_arena memory; /* has the texts */
	uint64_t heard_ms;	/* 0: none was received */
	uint32_t uid;
	char *user, *name;
	uint32_t processes, ranks, loops;
	double waiting, steps;
	uint64_t lost;
	Headrace__FleetRate rate;
	uint32_t rank_plus1; /* with the most operations */
	Headrace__FleetRate rank_rate;
	struct hr__fleet_mount mounts[HR_NOW_MOUNTS];
	struct hr__fleet_folder folders[HR_NOW_FOLDERS];
	Headrace__NowStuck *stuck; /* at most HR_NOW_STUCK, in `memory` */
	size_t n_mounts, n_folders, n_stuck;
};

#define HR__FLEET_SAVES	      16u /* earlier checkpoints of a node: the median is usual */
#define HR__FLEET_SAVES_LEAST 3u

/* The checkpoints of a node. */
struct hr__fleet_saves {
	struct hr_save last;
	uint32_t rank_plus1;		      /* its rank; of several, the one that took longest */
	uint64_t longest_ns;		      /* time of this rank */
	uint64_t earlier_ns[HR__FLEET_SAVES]; /* durations, in a ring */
	size_t n;			      /* so many were written to the ring */
};

struct hr_fleet_stream {
	struct hr_fleet_stream *next, **at;
	struct hr_arena identity; /* has the names */
	char *cluster, *job, *node;
	uint32_t attempt;
	uint64_t frame_ms; /* arrival of the last frame; 0: none */
	struct hr__fleet_now now;
	struct hr__fleet_saves saves;
};

static inline double hr__rate_ops(const Headrace__FleetRate *r)
{
	return r->metadata + r->reads + r->writes;
}

static inline void hr__rate_add(Headrace__FleetRate *to, const Headrace__FleetRate *r)
{
	to->metadata += r->metadata;
	to->reads += r->reads;
	to->writes += r->writes;
	to->bytes_read += r->bytes_read;
	to->bytes_written += r->bytes_written;
	to->in_io += r->in_io;
}

#endif
