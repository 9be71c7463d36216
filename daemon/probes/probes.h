/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - loads the programs of bpf/ into the kernel, sets what they follow, reads their results
 *
 * Owner     The node. Each job has its own programs and maps, which the node unloads at its end.
 * Threads   hr_probes_root, _cgroup and _cover: any; _poll and _sums: only the drain thread.
 *
 * In a build without libbpf (HEADRACE_BPF=OFF), hr_probes_new fails with -ENOTSUP.
 */
#ifndef HEADRACE_DAEMON_PROBES_PROBES_H
#define HEADRACE_DAEMON_PROBES_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/probe.h"

struct hr_probes;

/*
 * Loads and attaches the programs. Returns 0, -EPERM, -ENOTSUP (no BTF, an unsupported kernel, or
 * built without libbpf), or another error of libbpf. *ret_error (malloc'ed) explains the error,
 * with the messages of the verifier.
 */
int hr_probes_new(struct hr_probes **ret, char **ret_error);
void hr_probes_free(struct hr_probes *p); /* accepts NULL */

/* Returns the features that this kernel does not support, as text for users; NULL: none. */
const char *hr_probes_lacks(const struct hr_probes *p);

/*
 * Adds a process, its threads and its descendants to the job from now on. `quiet`: adds only the
 * processes that it starts. If the process already belongs to the job, nothing changes. 0 or
 * -errno.
 */
int hr_probes_root(struct hr_probes *p, pid_t pid, bool quiet);

/*
 * Adds all present and later processes of a cgroup (version 2) and of the cgroups below it. `id`:
 * from hr_cgroup_id (cgroup.h). -E2BIG: the job already has HR_PROBE_CGROUPS cgroups.
 */
int hr_probes_cgroup(struct hr_probes *p, uint64_t id);

/*
 * Adds a process to the job. Call it when the process has sent its hello. `thread`: from the
 * hello's struct hr_item_cover; NULL: none, so the programs report nothing about the process from
 * now on.
 */
int hr_probes_cover(struct hr_probes *p, pid_t pid, const int64_t *thread);

/* Returns the id of a process's struct hr_image; 0: it is not in the job, or has exited. */
uint64_t hr_probes_image(struct hr_probes *p, pid_t pid);

/*
 * Passes up to `most` records of the programs to `taken`, in order, and returns their number. A
 * record begins with its kind.
 */
typedef void hr_probes_taken(void *arg, const void *record, size_t bytes);
size_t hr_probes_poll(struct hr_probes *p, size_t most, hr_probes_taken *taken, void *arg);

/* `wanted`: the programs make records (level trace), otherwise sums (tallies), where possible. */
void hr_probes_events(struct hr_probes *p, bool wanted);

/*
 * Passes tallies (struct hr_tally_key and struct hr_tally) and sums (struct hr_sum_key and struct
 * hr_sum) to the functions, and clears them. The programs use two sides of the maps
 * in turn. A call switches the sides, and reads the side that the programs left at the previous
 * call. So what a call reads was counted before the previous call. Do not call it again before
 * HR_PROBES_TURN_NS has passed, and call it soon if hr_probes_full returns true.
 */
#define HR_PROBES_TURN_NS UINT64_C(2000000)
typedef void hr_probes_found(void *arg, const void *key, const void *value);
void hr_probes_sums(struct hr_probes *p, hr_probes_found *summed, hr_probes_found *tallied,
		    void *arg);
bool hr_probes_full(const struct hr_probes *p);

/* What the BPF programs missed: calls without room for their sums, processes, 32-bit programs. */
struct hr_probes_missed {
	uint64_t calls;
	uint64_t processes;
	uint64_t compat;
};
void hr_probes_missed(const struct hr_probes *p, struct hr_probes_missed *ret);

#endif
