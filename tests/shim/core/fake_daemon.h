/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_daemon.h - the daemon's side of abi.h, as small as a test can use
 *
 * Purpose   Accepts sessions, hands out sealed memfds, drains rings and keeps everything that it saw. Checks
 *           nothing that a test does not ask for.
 * Threads   start/stop/queries from the test; one thread of its own accepts and drains. Queries lock.
 */
#ifndef HEADRACE_TESTS_FAKE_DAEMON_H
#define HEADRACE_TESTS_FAKE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/abi.h"

struct fake_options {
	uint32_t rings;	     /* in a map; 0: HR_MAP_RINGS */
	uint32_t slots_log2; /* 0: HR_RING_SLOTS_LOG2 */
	uint32_t level;	     /* enum hr_level; HR_LEVEL_TRACE unless `off` */
	bool off;
	bool monotonic;	      /* do not trust the TSC */
	bool no_memory;	      /* for more than the first slots of a map's first ring */
	bool unsealed;	      /* hand out memfds that could shrink */
	bool silent;	      /* accept, and read nothing until fake_wake */
	bool discard;	      /* count, keep nothing: for benches */
	int status;	      /* refuse with this -errno */
	uint32_t delay_ms;    /* before each answer */
	uint32_t most_maps;   /* of a session; 0: HR_SESSION_MAPS */
	uint32_t short_ticks; /* for the heads of maps */
};

struct fake_record {
	struct hr_record r;
	struct hr_pair pair; /* with HR_REC_PAIR */
	uint32_t session;    /* index */
	uint32_t ring;	     /* map * 256 + ring */
	int32_t tid;	     /* of the last HR_CTL_THREAD on that ring */
	char *text; /* of HR_CTL_REGION_KEY and HR_CTL_REGION, NUL-terminated; NULL: none */
};

struct fake_path {
	uint64_t id;
	uint32_t session;
	uint32_t bytes;
	uint32_t kind;
	int64_t device, mount;
	uint32_t bits;
	char text[HR_PAGE_BYTES + 1];
};

struct fake_session {
	struct hr_hello hello;
	bool offered;	       /* its first map is its own */
	unsigned more_offered; /* of its further ones */
	uint8_t *items;	       /* behind the header, hello.bytes - 64 of them */
};

struct fake_daemon;

struct fake_daemon *fake_start(const char *path, const struct fake_options *options);
void fake_stop(struct fake_daemon *d);
void fake_pause(struct fake_daemon *d,
		bool pause);		  /* no sweeps, no beat; takes effect before it returns */
void fake_silence(struct fake_daemon *d); /* accept, and read nothing from now on */
void fake_wake(struct fake_daemon *d);
void fake_level(struct fake_daemon *d, enum hr_level level);

/* Sweeps until all that is committed now is taken. */
void fake_settle(struct fake_daemon *d);

size_t fake_waiting(struct fake_daemon *d); /* connections that a silent daemon has accepted */
size_t fake_sessions(struct fake_daemon *d);
const struct fake_session *fake_session(struct fake_daemon *d, size_t i);
uint64_t fake_token(struct fake_daemon *d, size_t i);
/* Value of item number `nth` of a kind, NUL-terminated copy in buf; bytes, or -1. */
long fake_item(const struct fake_session *s, enum hr_item_kind kind, size_t nth, char *buf,
	       size_t cap);
size_t fake_maps(struct fake_daemon *d, size_t session);

/* Records of real operations and control records other than paths, in the order of their rings. */
size_t fake_records(struct fake_daemon *d);
const struct fake_record *fake_record(struct fake_daemon *d, size_t i);
uint64_t fake_count(struct fake_daemon *d, uint16_t op); /* of all sessions */
uint64_t fake_with_bits(struct fake_daemon *d, uint16_t op,
			uint32_t bits);	    /* those with all HR_REC_* of bits */
uint64_t fake_total(struct fake_daemon *d); /* real operations */
uint64_t fake_torn(struct fake_daemon *d);
uint64_t fake_bad(struct fake_daemon *d); /* slots that make no sense */

/* Path of id, NULL if it was not announced in that session. */
const struct fake_path *fake_path(struct fake_daemon *d, uint32_t session, uint64_t id);
size_t fake_paths(struct fake_daemon *d); /* announcements, repeated ones too */
const struct fake_path *fake_path_at(struct fake_daemon *d, size_t i);
/* Sum over all rings of all sessions. */
struct hr_lost fake_lost(struct fake_daemon *d, uint16_t op);
struct hr_lost fake_strays(struct fake_daemon *d, uint16_t op);
uint64_t fake_excluded(struct fake_daemon *d, uint32_t kind);
/* What is in flight on a ring of a session: op (0: nothing), file, start_ticks. */
struct hr_inflight fake_inflight(struct fake_daemon *d, size_t session, uint32_t map,
				 uint32_t ring);
/* The shared memory itself, as long as the daemon is there. */
const struct hr_ring_hdr *fake_ring(struct fake_daemon *d, size_t session, uint32_t map,
				    uint32_t ring);
const struct hr_map_hdr *fake_map(struct fake_daemon *d, size_t session, uint32_t map);

#endif
