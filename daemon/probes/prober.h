/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prober.h - loads the probes of a node, at once or in a thread of its own, and keeps the processes
 * and cgroups to follow until the probes are loaded
 *
 * Owner     The node.
 * Threads   hr_prober_root, _ready and _error: any. Others: the thread that makes and frees the
 *           node.
 * Lifetime  hr_prober_init .. hr_prober_done. Users of the probes end before hr_prober_done, after
 *           hr_prober_wait.
 */
#ifndef HEADRACE_DAEMON_PROBES_PROBER_H
#define HEADRACE_DAEMON_PROBES_PROBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/probes/probes.h"

#define HR_PROBER_ROOTS 256u

/* Called in the loading thread: the probes are loaded and follow the roots. */
typedef void hr_prober_loaded(void *arg, struct hr_probes *probes);

struct hr_prober {
	/* NULL: none yet; under the lock while they are loaded */
	struct hr_probes *probes;
	char *error; /* atomic */
	pthread_t loader;
	bool loading;
	hr_prober_loaded *loaded;
	void *arg;
	pthread_mutex_t lock;
	uint32_t n_roots;
	struct hr_prober_root {
		pid_t pid; /* 0: a cgroup */
		bool quiet;
		uint64_t cgroup;
	} roots[HR_PROBER_ROOTS]; /* that were added before the probes were loaded */
};

void hr_prober_init(struct hr_prober *p);

/* Call one of these, once: hr_prober_ready and _error have the result. */
void hr_prober_load(struct hr_prober *p);
void hr_prober_load_async(struct hr_prober *p, hr_prober_loaded *loaded, void *arg);

/* hr_probes_root or _cgroup once probes are loaded; nothing if that failed. 0 or -errno. */
int hr_prober_root(struct hr_prober *p, const struct hr_prober_root *root);

bool hr_prober_ready(struct hr_prober *p);
/* Why loading failed; NULL: it did not, is not finished, or was not requested. */
const char *hr_prober_error(const struct hr_prober *p);

void hr_prober_wait(struct hr_prober *p);
/* After hr_prober_wait: unloads the probes. */
void hr_prober_done(struct hr_prober *p);

#endif
