/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - loads the programs of bpf/ into the kernel, sets what they follow, reads their results
 *
 * Owner     The node; each job has its own programs and maps, which are unloaded with it.
 * Threads   hr_probes_root, _cgroup and _cover: any; _poll and _sums: one, the drain thread.
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
 * Loads and attaches the programs. -EPERM; -ENOTSUP: no BTF, an unsupported kernel, or not built
 * in; other errors of libbpf. *ret_error (malloc'ed) explains it, with the verifier's messages, if
 * any.
 */
int hr_probes_new(struct hr_probes **ret, char **ret_error);
void hr_probes_free(struct hr_probes *p); /* accepts NULL */

/* Features that this kernel does not support, as text for users; NULL: none. */
const char *hr_probes_lacks(const struct hr_probes *p);

/*
 * From now on a process, its threads and its descendants belong to the job. `quiet`: only what it
 * starts, not the process itself. Nothing changes if it belongs already. 0 or -errno.
 */
int hr_probes_root(struct hr_probes *p, pid_t pid, bool quiet);

/*
 * The same for all processes of a cgroup (version 2) and of cgroups below it, now and later. `id`:
 * from hr_cgroup_id (cgroup.h). -E2BIG: HR_PROBE_CGROUPS are in use.
 */
int hr_probes_cgroup(struct hr_probes *p, uint64_t id);

/*
 * A process has sent its hello, and belongs to the job now. `thread`: its
 * struct hr_item_cover.thread; NULL: without a cover, the programs report nothing more of it.
 */
int hr_probes_cover(struct hr_probes *p, pid_t pid, const int64_t *thread);

/* The current image of the process; 0: it does not belong to the job, or has exited. */
uint64_t hr_probes_image(struct hr_probes *p, pid_t pid);

/* Passes up to `most` records, in order, to `taken`; returns how many. The kind comes first. */
typedef void hr_probes_taken(void *arg, const void *record, size_t bytes);
size_t hr_probes_poll(struct hr_probes *p, size_t most, hr_probes_taken *taken, void *arg);

/* True: operations become records (level trace). False: tallies, if possible. */
void hr_probes_events(struct hr_probes *p, bool wanted);

/*
 * Passes tallies and sums since the last call, and clears them. The programs use two sides in turn:
 * a call reads the side that the previous call turned away from, so it returns sums up to that
 * call. Call it at least HR_PROBES_TURN_NS after the previous call, and soon if hr_probes_full.
 */
#define HR_PROBES_TURN_NS UINT64_C(2000000)
typedef void hr_probes_summed(void *arg, const struct hr_sum_key *key, const struct hr_sum *sum);
typedef void hr_probes_tallied(void *arg, const struct hr_tally_key *key,
			       const struct hr_tally *tally);
void hr_probes_sums(struct hr_probes *p, hr_probes_summed *summed, hr_probes_tallied *tallied,
		    void *arg);
bool hr_probes_full(const struct hr_probes *p);

/* What the programs could not record: calls without room for a sum, processes, 32-bit programs. */
struct hr_probes_missed {
	uint64_t calls;
	uint64_t processes;
	uint64_t compat;
};
void hr_probes_missed(const struct hr_probes *p, struct hr_probes_missed *ret);

#endif
