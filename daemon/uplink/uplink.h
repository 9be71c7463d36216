/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink.h - sends the frames of a spool to a collector, until they are acknowledged
 *
 * Purpose   The daemon's side of proto/wire.proto. A frame is sent once the spool has it, and
 *           removed from the spool once a collector has acknowledged that its disk has it.
 *
 *      connection   waiting --(back-off is over)--> dialling --> greeting --HelloAck--> up --(silence, end, error)--> waiting
 *                                                     +--(fails: the next collector; after the last one)--^
 *
 *      stream       known --Open--> opening --Opened--> sending --(all acknowledged, nothing will be added)--> removed
 *                     ^                |                  |  +--Nack full: rests, then resumes
 *                     +---(connection lost, Nack error, in_use)---+--(Nack denied malformed version behind retired)--> aside
 *
 *      A stream that is aside stays in the spool; another collector, or the next uplink, may take it.
 *
 * Which streams   That of this process, as it grows (spool.h), and those whose daemons have ended.
 *                 It leaves alone what another uplink sends or a daemon writes.
 * Owner     The worker, or the command `headraced uplink`. Threads: its own, with a libuv loop; the
 *           functions are for any.
 */
#ifndef HEADRACE_DAEMON_UPLINK_UPLINK_H
#define HEADRACE_DAEMON_UPLINK_UPLINK_H

#include "daemon/spool/spool.h"
#include "net/address.h"
#include "net/tls.h"

#define HR_UPLINK_NEVER UINT64_MAX

struct hr_uplink_config {
	struct hr_spool *spool; /* outlives the uplink */
	const struct hr_address *collectors;
	size_t n_collectors; /* in order of preference */
	/* NULL: plain TCP; read again for each connection, since they are renewed */
	const struct hr_tls_files *tls;
	bool tls_later; /* unreadable files fail connections, not hr_uplink_new */
	const char *software, *node, *boot_id;
	bool any_node; /* also streams of other nodes */
	bool any_aim;  /* also streams for other collectors */
	bool keep;     /* of this process's stream: segments stay until hr_uplink_release */
	/* age of the journal at which a stream without a daemon is ended; HR_UPLINK_NEVER */
	uint64_t recover_ms;
	/* 0: the default; tests use less */
	uint64_t better_ms; /* before a better collector is tried again */
	uint64_t scan_ms;   /* between searches for streams */
	/* without any answer from a connected collector: then it reconnects */
	uint64_t owed_ms;
};

struct hr_uplink;

/* If certificates fail, *ret_error (malloc'ed) explains it. */
int hr_uplink_new(const struct hr_uplink_config *config, struct hr_uplink **ret, char **ret_error);

/* Kept segments may be removed. */
void hr_uplink_release(struct hr_uplink *u);

/* Ends the thread; unacknowledged frames stay in the spool. Accepts NULL. */
void hr_uplink_free(struct hr_uplink *u);

struct hr_uplink_stats {
	bool connected;
	/* the last one that accepted the connection; "" none so far */
	char collector[HR_ADDRESS_HOST_BYTES + 32];
	unsigned failed_rounds;	   /* attempts at all collectors since the last success */
	unsigned searches;	   /* for streams, so far; 0: nothing is known yet */
	unsigned streams;	   /* being sent and not finished, without those aside */
	unsigned unseen;	   /* waiting until some of these are finished */
	unsigned elsewhere;	   /* that other daemons write or send */
	unsigned aimed_elsewhere;  /* for other collectors */
	unsigned waiting_journals; /* streams without a daemon that have a journal: recover_ms */
	uint64_t frames;	   /* not yet acknowledged */
	uint64_t bytes;		   /* of segments of these streams */
	uint64_t oldest_ns;	   /* how long the oldest of them has been waiting */
	uint64_t sent_frames;	   /* acknowledged, by this uplink */
	bool own;		   /* there is a stream of this process: */
	uint64_t own_frames, own_acked;
	bool own_aside;
	bool own_gone;	/* all of it is acknowledged, and its folder was removed */
	unsigned aside; /* streams, and the last of them: */
	char aside_text[1536];
	char error[512]; /* of the last connection that failed; "" none so far */
};
void hr_uplink_stats(struct hr_uplink *u, struct hr_uplink_stats *ret);

#endif
