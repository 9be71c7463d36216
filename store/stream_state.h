/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_state.h - the file `state` in a stream's folder, in which a collector describes the stream
 *
 * It contains the owner, the time of the daemon's last message, and the node's clock offset. Only a
 * collector writes it, each time as a whole (rename). Catalogues read it. Any thread.
 */
#ifndef HEADRACE_STORE_STREAM_STATE_H
#define HEADRACE_STORE_STREAM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define HR_STREAM_STATE_FILE	 "state"
#define HR_STREAM_STATE_NEW_FILE "state.new"
#define HR_STREAM_SECRET_BYTES	 16u
#define HR_STREAM_PEER_BYTES	 128u

struct hr_stream_state {
	bool has_secret;
	uint8_t secret[HR_STREAM_SECRET_BYTES];
	bool by_node; /* a node began the stream, not a user */
	bool uid_known;
	uint32_t uid;
	char peer[HR_STREAM_PEER_BYTES]; /* "node n1", for people */
	uint64_t mark;
	bool connected;
	uint64_t heard_ns; /* collector's wall clock: last message of the daemon */
	bool clock_known;
	int64_t clock_offset_ns; /* wall clock of the node minus that of the collector */
	uint64_t clock_error_ns;
	bool retired;	     /* the stream has no segments, and continues after `mark` */
	uint64_t retired_ns; /* collector's wall clock: when segments were last removed; 0: never */
	bool ended;	     /* the last removed frame was a StreamEnd */
	uint64_t closed_ns;  /* when an operator declared the stream complete; 0: never */
};

/* Reads the file. -ENOENT: no such file; -EBADMSG: damaged; other -errno. */
int hr_stream_state_read(int stream_dir_fd, struct hr_stream_state *ret);

/* Replaces the file. `sync`: the file survives a power failure. */
int hr_stream_state_write(int stream_dir_fd, const struct hr_stream_state *state, bool sync);

#endif
