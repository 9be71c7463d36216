/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_internal.h - what the fake daemon's two files share: fake_attach.c (hellos, maps) and fake_daemon.c (rings, answers to the test)
 *
 * Threads   As fake_daemon.h: `lock` for all but `listener` and what is set at the start.
 */
#ifndef HEADRACE_TESTS_FAKE_INTERNAL_H
#define HEADRACE_TESTS_FAKE_INTERNAL_H

#include <pthread.h>

#include "tests/shim/core/fake_daemon.h"

#define SESSIONS 8192

/* Until a slot is taken for torn: a writer that lives may wait for a processor. */
#define FAKE_TORN_NS UINT64_C(300000000000)

struct fake_ring {
	struct hr_ring_hdr *hdr;
	uint32_t slots_log2;
	int32_t tid;
	uint64_t stuck_ns; /* since when an uncommitted slot holds us up */
};

struct fake_client {
	struct fake_session seen;
	uint64_t token;
	uint32_t n_maps;
	struct {
		struct hr_map_hdr *hdr;
		struct fake_ring *rings;
		uint32_t n_rings;
	} maps[HR_SESSION_MAPS];
};

struct fake_daemon {
	struct fake_options o;
	int listener;
	int waiting[SESSIONS]; /* connections that a silent daemon has not read */
	size_t n_waiting;
	pthread_t thread;
	pthread_mutex_t lock;
	bool stop, paused;
	int node_fd;
	struct hr_node_page *node;
	uint64_t sweeps;
	struct fake_client *sessions[SESSIONS];
	size_t n_sessions;
	struct fake_record *records;
	size_t n_records, cap_records;
	struct fake_path **paths;
	size_t n_paths, cap_paths;
	uint64_t count[HR_OP_MAX];
	uint64_t torn, bad;
};

uint64_t fake_now_ns(void);
void *fake_must(void *p); /* aborts on NULL */

/* A memfd, mapped as if it had `bytes`, of which `there` exist. */
int fake_memfd(size_t bytes, size_t there, int seals, void **ret);

/* Lets one client in, or keeps it waiting (silent). False: nobody knocks. */
bool fake_accept(struct fake_daemon *d);

#endif
