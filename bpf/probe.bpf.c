/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe.bpf.c - the programs in the kernel: processes, calls, io_uring, pages (docs/probes.md) */
#include "kernel.h"

#include "probe.h"
#include "proto/abi.h"

#define HR_OP_PAGES 506 /* id of page_cache_fill in kernel.def */
#define HR_OP_FAULT 507 /* id of major_fault in kernel.def */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAP(name, map_type, entries, key_type, value_type)                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_##map_type);                                             \
		__uint(max_entries, entries);                                                      \
		__type(key, key_type);                                                             \
		__type(value, value_type);                                                         \
	} name SEC(".maps")

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HR_PROBE_BUFFER);
} buffer SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hr_probe_task);
} tasks SEC(".maps");

MAP(images, HASH, HR_PROBE_IMAGES, uint32_t, struct hr_image);

/* The key is the id of a cgroup: the inode number of its folder. */
MAP(cgroups, HASH, HR_PROBE_CGROUPS, uint64_t, uint32_t);

MAP(calls, ARRAY, HR_PROBE_CALLS, uint32_t, struct hr_call);

struct sums_inner {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HR_PROBE_SUMS);
	__type(key, struct hr_sum_key);
	__type(value, struct hr_sum);
} sums_a SEC(".maps"), sums_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, uint32_t);
	__array(values, struct sums_inner);
} sums SEC(".maps") = {.values = {&sums_a, &sums_b}};

/* The side of the maps to which programs add. The daemon switches, and reads the other side. */
uint32_t side;

struct tallies_inner {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HR_PROBE_TALLIES);
	__type(key, struct hr_tally_key);
	__type(value, struct hr_tally);
} tallies_a SEC(".maps"), tallies_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, uint32_t);
	__array(values, struct tallies_inner);
} tallies SEC(".maps") = {.values = {&tallies_a, &tallies_b}};

const volatile bool faults_traced; /* this kernel has the tracepoint of page_faults */

bool events;	    /* set by the daemon: send a record of each operation */
uint64_t filled[2]; /* number of entries of `sums` and `tallies` together, for each side */
uint64_t summed[2]; /* number of entries of `sums`, for each side */

uint64_t unsummed; /* lost calls for which `sums` had no room */
uint64_t unlisted; /* processes for which `images` had no room */
uint64_t compat;   /* processes that made 32-bit system calls */
uint64_t last_image;
uint64_t marked; /* number of tasks that list_tasks has marked in this pass */

uint32_t n_cgroups; /* number of entries of `cgroups`; 0: cgroups need not be checked */
/* number of processes added by their cgroup; list_tasks marks their threads and children */
uint64_t unmarked;

#include "names.h"

static inline void add_sum(const struct hr_sum_key *key, uint64_t bytes, bool failed,
			   uint64_t dur_ns)
{
	uint32_t which = *(volatile uint32_t *)&side;
	const struct hr_sum none = {0};
	struct hr_sum_key rest = *key;
	void *inner = bpf_map_lookup_elem(&sums, &which);
	struct hr_sum *sum;

	if (!inner)
		return;
	sum = bpf_map_lookup_elem(inner, key);
	if (!sum && summed[which & 1] > HR_PROBE_SUMS - HR_PROBE_REST) {
		rest.file = 0;
		key = &rest;
		sum = bpf_map_lookup_elem(inner, key);
	}
	if (!sum) {
		bpf_map_update_elem(inner, key, &none, BPF_NOEXIST);
		__sync_fetch_and_add(&filled[which & 1], 1);
		__sync_fetch_and_add(&summed[which & 1], 1);
		sum = bpf_map_lookup_elem(inner, key);
	}
	if (!sum) { /* no room: the audit lacks a covered call; lost calls are counted */
		if (key->kind == HR_SUM_LOST)
			__sync_fetch_and_add(&unsummed, 1);
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->bytes, bytes);
	__sync_fetch_and_add(&sum->dur_ns, dur_ns);
	if (failed)
		__sync_fetch_and_add(&sum->errors, 1);
}

#include "cover.h"

#include "images.h"

#include "calls.h"

#include "pages.h"
#include "uring.h"
