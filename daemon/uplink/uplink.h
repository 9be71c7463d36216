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
	struct hr_spool *spool; /* the spool must outlive the uplink */
	const struct hr_address *collectors;
	size_t n_collectors; /* the number of `collectors`, which are in order of preference */
	/* NULL: plain TCP. Each connection reads the files again, because sites renew them. */
	const struct hr_tls_files *tls;
	/* true: if the files are unreadable, connections fail, but not hr_uplink_new */
	bool tls_later;
	const char *software, *node, *boot_id;
	bool all;  /* true: also sends streams of other nodes, or meant for other collectors */
	bool keep; /* true: this process's segments stay until hr_uplink_release */
	/*
	 * A stream without a daemon is ended when its journal has been seen for this long;
	 * HR_UPLINK_NEVER: never.
	 */
	uint64_t recover_ms;
	/* For the next three times, 0 is the default; tests use shorter ones. */
	uint64_t better_ms;  /* time until the uplink tries a better collector again */
	uint64_t scan_ms;    /* time between searches for streams */
	uint64_t waiting_ms; /* resolution of `oldest_ns` */
	/* The uplink reconnects if a collector has not answered for this long. */
	uint64_t owed_ms;
};

struct hr_uplink;

/* Starts the thread. *ret_error (malloc'ed) explains why certificates cannot be used. */
int hr_uplink_new(const struct hr_uplink_config *config, struct hr_uplink **ret, char **ret_error);

/*
 * Sends the message while the stream of this process is open at a collector; otherwise drops it.
 * Takes over the message.
 */
struct hr_now_message;
void hr_uplink_now(struct hr_uplink *u, struct hr_now_message *now);

/* From now on, the uplink removes the segments that it kept (`keep`). */
void hr_uplink_release(struct hr_uplink *u);

/* Ends the thread. Frames without an acknowledgement stay in the spool. Accepts NULL. */
void hr_uplink_free(struct hr_uplink *u);

struct hr_uplink_stats {
	bool connected;
	/* The last collector that accepted a connection; "": none has. */
	char collector[HR_ADDRESS_HOST_BYTES + 32];
	unsigned failed_rounds; /* rounds of attempts at all collectors since the last success */
	/* Number of finished searches for streams; 0: the fields below are not valid. */
	unsigned searches;
	/* Unfinished streams, except those that a collector has refused (`aside`). */
	unsigned streams;
	unsigned unseen;	   /* streams that wait, because the list is full */
	unsigned elsewhere;	   /* streams that other daemons write or other uplinks send */
	unsigned waiting_journals; /* streams without a daemon that wait for recover_ms */
	uint64_t frames;	   /* frames without an acknowledgement */
	uint64_t bytes;		   /* bytes of all segments of the streams to send */
	uint64_t oldest_ns;	   /* how long the oldest of `frames` has waited */
	uint64_t sent_frames;	   /* sent frames that collectors have acknowledged */
	bool own;		   /* this process writes a stream; the fields below are valid */
	uint64_t own_frames, own_acked;
	bool own_aside;
	bool own_gone; /* all frames of this stream are acknowledged, and its folder is removed */
	/* Number of streams that a collector has refused, and a text about the last of them. */
	unsigned aside;
	char aside_text[1536];
	char error[512]; /* about the last connection that failed; "": none has */
};
void hr_uplink_stats(struct hr_uplink *u, struct hr_uplink_stats *ret);

#endif
