/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.h - a loop with a listener, and connections that write down what happens to them
 */
#ifndef HEADRACE_TESTS_NET_PAIR_H
#define HEADRACE_TESTS_NET_PAIR_H

#include <stdbool.h>
#include <uv.h>

#include "common/frame.h"
#include "net/conn.h"
#include "tests/unit.h"

struct kept {
	uint8_t *frame;
	size_t bytes;
	bool control;
};

/* One side. What it shall do when a frame comes is set before. */
struct end {
	struct hr_conn *c; /* NULL before and after */
	bool ready, closed;
	int error;
	char why[512];
	struct kept *kept;
	size_t n, room;
	unsigned drained;
	size_t limit;	    /* set when ready; 0: not */
	size_t pause_after; /* frames; 0: never */
	size_t close_after;
	int refuse; /* what `frame` returns */
};

struct rig {
	uv_loop_t loop;
	uv_timer_t guard;
	uint64_t until_ms;
	bool late;
	union {
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} listener;
	bool listening;
	struct hr_address at; /* where it listens */
	struct hr_tls *tls;   /* of the listener */
	struct end server;    /* the connection accepted last */
	struct end client;
};

extern const struct hr_conn_events end_events;

void rig_init(struct rig *rig); /* connections have ten minutes to begin and to end */
void rig_listen(struct rig *rig, const char *address); /* port 0: any */
void rig_connect(struct rig *rig, struct hr_tls *tls); /* client to server, both ready */
int rig_raw(struct rig *rig);	/* a blocking socket, accepted, the server ready */
void rig_done(struct rig *rig); /* closes all, insists that nothing is left */

/* Runs the loop until it holds; fails after 5 minutes. */
#define RUN_UNTIL(rig, condition)                                                                  \
	do {                                                                                       \
		rig_guard(rig, 300000);                                                            \
		while (!(condition)) {                                                             \
			assert_false((rig)->late);                                                 \
			uv_run(&(rig)->loop, UV_RUN_ONCE);                                         \
		}                                                                                  \
	} while (0)
void rig_guard(struct rig *rig, uint64_t ms);
void rig_run_for(struct rig *rig, uint64_t ms);

void end_forget(struct end *e); /* frees what it kept */

/* A frame of `payload` bytes that depend on `seed`; malloc'ed. */
uint8_t *make_frame(size_t payload, unsigned seed, uint32_t flags);
/* Is the i-th frame that came this one? */
void assert_frame(const struct end *e, size_t i, size_t payload, unsigned seed, uint32_t flags);

#endif
