/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prober.h - loads the probes of a node, at once or in a separate thread; until they are loaded, it
 * keeps the list of processes and cgroups to follow
 *
 * Owner     The node.
 * Threads   hr_prober_root, _ready and _error: any. Others: the thread that makes and frees the
 *           node.
 * Lifetime  hr_prober_init .. hr_prober_done. At the end: hr_prober_wait, then users of the probes
 *           end, then hr_prober_done.
 */
#ifndef HEADRACE_DAEMON_PROBES_PROBER_H
#define HEADRACE_DAEMON_PROBES_PROBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/probes/probes.h"

#define HR_PROBER_ROOTS 256u

/* The loading thread calls this function when the probes are loaded and follow the roots. */
typedef void hr_prober_loaded(void *arg, struct hr_probes *probes);

struct hr_prober {
	/* NULL: the probes are not loaded. The lock protects the pointer during the load. */
	struct hr_probes *probes;
	char *error; /* read and written atomically */
	pthread_t loader;
	bool loading;
	hr_prober_loaded *loaded;
	void *arg;
	pthread_mutex_t lock;
	uint32_t n_roots;
	struct hr_prober_root {
		pid_t pid; /* 0: the root is the cgroup */
		bool quiet;
		uint64_t cgroup;
	} roots[HR_PROBER_ROOTS]; /* the roots to follow when the probes are loaded */
};

void hr_prober_init(struct hr_prober *p);

/* Call one of these functions once. hr_prober_ready and hr_prober_error return the result. */
void hr_prober_load(struct hr_prober *p);
void hr_prober_load_async(struct hr_prober *p, hr_prober_loaded *loaded, void *arg);

/*
 * Follows a process or cgroup as soon as probes are loaded. If the load fails, does nothing.
 * Returns 0 or -errno.
 */
int hr_prober_root(struct hr_prober *p, const struct hr_prober_root *root);

bool hr_prober_ready(struct hr_prober *p);
/* Returns why the load failed. NULL: it did not fail, has not finished, or was not requested. */
const char *hr_prober_error(const struct hr_prober *p);

void hr_prober_wait(struct hr_prober *p);
/* Unloads the probes. Call it after hr_prober_wait. */
void hr_prober_done(struct hr_prober *p);

#endif
