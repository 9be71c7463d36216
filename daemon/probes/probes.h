/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - the programs of bpf/ in the kernel: loading them, telling them what to follow, reading what they say
 *
 * Owner     The node that asked for them; one instance of programs and maps per job. They are gone from the kernel with it.
 * Threads   hr_probes_root, _cgroup and _cover from any thread; _poll and _sums from one, the drain thread.
 * Built without libbpf (HEADRACE_BPF=OFF), hr_probes_new fails and says so.
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
 * Loads and attaches. *ret_error (malloc'ed) says what this kernel or this process lacks, with the verifier's words where it refused:
 * -EPERM, -ENOTSUP (no BTF, no such kernel, not built in), or libbpf's.
 */
int hr_probes_new(struct hr_probes **ret, char **ret_error);
void hr_probes_free(struct hr_probes *p); /* accepts NULL */

/* What this kernel keeps from them, for people; NULL: nothing. */
const char *hr_probes_lacks(const struct hr_probes *p);

/*
 * A process, its threads and those that descend from it belong to the job from now on. quiet: it is none of the job's itself, only what
 * it starts is. Nothing happens where it belongs already. 0 or -errno.
 */
int hr_probes_root(struct hr_probes *p, pid_t pid, bool quiet);

/*
 * The same of all processes of a cgroup (version 2) and of those below it, wherever they were started: of those that are there, and that
 * will be. `id`: hr_cgroup_id of cgroup.h. -E2BIG: there are HR_PROBE_CGROUPS already.
 */
int hr_probes_cgroup(struct hr_probes *p, uint64_t id);

/*
 * Its shim has said hello: struct hr_item_cover.thread; NULL, of a shim that does not say: nothing of the process is told of any more.
 * A process that did not belong does now.
 */
int hr_probes_cover(struct hr_probes *p, pid_t pid, const int64_t *thread);

/* The image that the process is now; 0: it does not belong, or is gone. */
uint64_t hr_probes_image(struct hr_probes *p, pid_t pid);

/* Hands on what lies in the buffer, at most that many records, in order; returns how many. `record` begins with its kind. */
typedef void hr_probes_taken(void *arg, const void *record, size_t bytes);
size_t hr_probes_poll(struct hr_probes *p, size_t most, hr_probes_taken *taken, void *arg);

/* Whether each operation is to be a record (level trace), or as many as can be tallies. */
void hr_probes_events(struct hr_probes *p, bool wanted);

/*
 * Hands on tallies and sums since the last time, and forgets them. Programs add to two sides in turn: what is handed on is what the side
 * held that was turned away from in the call before, so a call reaches up to the one before it. Not sooner than HR_PROBES_TURN_NS after
 * that; soon when hr_probes_full.
 */
#define HR_PROBES_TURN_NS UINT64_C(2000000)
typedef void hr_probes_summed(void *arg, const struct hr_sum_key *key, const struct hr_sum *sum);
typedef void hr_probes_tallied(void *arg, const struct hr_tally_key *key,
			       const struct hr_tally *tally);
void hr_probes_sums(struct hr_probes *p, hr_probes_summed *summed, hr_probes_tallied *tallied,
		    void *arg);
bool hr_probes_full(const struct hr_probes *p);

/* What the programs could not keep: lost calls without a sum, processes that are not followed. What they do not read: 32-bit programs. */
struct hr_probes_missed {
	uint64_t calls;
	uint64_t processes;
	uint64_t compat;
};
void hr_probes_missed(const struct hr_probes *p, struct hr_probes_missed *ret);

#endif
