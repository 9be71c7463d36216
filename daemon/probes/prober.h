/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prober.h - how a node comes by its probes: at once or beside its work; and what they are to follow, until they are there
 *
 * Owner     The node.
 * Threads   hr_prober_root, _there and _error from any thread; the others from the one that makes and frees the node.
 * Lifetime  hr_prober_init .. hr_prober_done. Who uses the probes ends in between, behind hr_prober_wait.
 */
#ifndef HEADRACE_DAEMON_PROBES_PROBER_H
#define HEADRACE_DAEMON_PROBES_PROBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/probes/probes.h"

#define HR_PROBER_ROOTS 256u

/* From the thread that loads: they are there, and follow the roots. */
typedef void hr_prober_loaded(void *arg, struct hr_probes *probes);

struct hr_prober {
	/* NULL: none, or none yet; while they are loaded, under the lock */
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
	} roots[HR_PROBER_ROOTS]; /* that came before there were probes */
};

void hr_prober_init(struct hr_prober *p);

/* One of these, once. Whether it has worked hr_prober_there and _error say: a job goes on without probes. */
void hr_prober_load(struct hr_prober *p);
void hr_prober_load_beside(struct hr_prober *p, hr_prober_loaded *loaded, void *arg);

/* hr_probes_root and hr_probes_cgroup, as soon as there are probes; nothing where there will be none. 0 or -errno. */
int hr_prober_root(struct hr_prober *p, const struct hr_prober_root *root);

bool hr_prober_there(struct hr_prober *p);
/* Why there are none though they were asked for; NULL: there are, or are on their way, or nobody asked. */
const char *hr_prober_error(const struct hr_prober *p);

/* Until loading has ended. */
void hr_prober_wait(struct hr_prober *p);
/* Behind hr_prober_wait: they are gone from the kernel. */
void hr_prober_done(struct hr_prober *p);

#endif
