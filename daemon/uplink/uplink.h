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
 *      A stream that a collector has refused is put aside: it stays in the spool, and another
 *      collector or the next uplink may take it.
 *
 * Which streams   The stream of this process while it grows (spool.h), and streams whose daemons
 *                 have ended; none that another uplink sends or another daemon writes.
 * Owner     The recording process, or the command `headraced uplink`.
 * Threads   The uplink thread, with a libuv loop. Any thread may call the functions here.
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
	/*
	 * NULL: plain TCP. The files are read again for each connection, because sites renew them.
	 */
	const struct hr_tls_files *tls;
	/* True: if files are unreadable, connections fail, but hr_uplink_new does not. */
	bool tls_later;
	const char *software, *node, *boot_id;
	bool any_node; /* true: also send streams of other nodes */
	bool any_aim;  /* true: also send streams that are for other collectors */
	bool keep;     /* true: segments of this process's stream stay until hr_uplink_release */
	/*
	 * A stream that has no daemon is ended when its journal has this age; HR_UPLINK_NEVER:
	 * never.
	 */
	uint64_t recover_ms;
	/* 0: the default values; tests use smaller ones. */
	uint64_t better_ms; /* time before the uplink tries a better collector again */
	uint64_t scan_ms;   /* time between searches for streams */
	/* The uplink reconnects if a collector has owed an answer for this long. */
	uint64_t owed_ms;
};

struct hr_uplink;

/* Starts the thread. If the certificates cannot be used, *ret_error (malloc'ed) explains why. */
int hr_uplink_new(const struct hr_uplink_config *config, struct hr_uplink **ret, char **ret_error);

/* Lets the uplink remove segments that it kept (`keep`). */
void hr_uplink_release(struct hr_uplink *u);

/* Ends the thread. Frames that are not acknowledged stay in the spool. Accepts NULL. */
void hr_uplink_free(struct hr_uplink *u);

struct hr_uplink_stats {
	bool connected;
	/* The last collector that accepted a connection; "": none so far. */
	char collector[HR_ADDRESS_HOST_BYTES + 32];
	unsigned failed_rounds; /* attempts at all collectors since the last success */
	/* Number of finished searches for streams; 0: the fields below are not valid yet. */
	unsigned searches;
	/* Unfinished streams, without streams that a collector has refused (`aside`). */
	unsigned streams;
	unsigned unseen;	   /* streams that wait because the list of streams is full */
	unsigned elsewhere;	   /* streams that other daemons write or send */
	unsigned aimed_elsewhere;  /* streams for other collectors */
	unsigned waiting_journals; /* streams without a daemon whose journal waits for recover_ms */
	uint64_t frames;	   /* frames that are not yet acknowledged */
	uint64_t bytes;		   /* size of the segments of all streams that this uplink sends */
	uint64_t oldest_ns;	   /* how long the oldest of `frames` has waited */
	uint64_t sent_frames;	   /* frames that collectors acknowledged to this uplink */
	bool own;		   /* this process has a stream, and the fields below are valid */
	uint64_t own_frames, own_acked;
	bool own_aside;
	bool own_gone; /* all frames of its stream are acknowledged, and its folder was removed */
	/* The number of streams that a collector has refused, and a text about the last of them. */
	unsigned aside;
	char aside_text[1536];
	char error[512]; /* about the last connection that failed; "": none so far */
};
void hr_uplink_stats(struct hr_uplink *u, struct hr_uplink_stats *ret);

#endif
