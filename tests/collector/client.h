/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - a real headrace-collector, and a small client that speaks to it one step after the other
 *
 * Purpose   For tests and benches: what is sent is exactly what was asked for, right or wrong. Pings are answered on the way.
 * Errors    Every function asserts its own success, but those that return something else.
 * Threads   A client belongs to one.
 */
#ifndef HEADRACE_TESTS_COLLECTOR_CLIENT_H
#define HEADRACE_TESTS_COLLECTOR_CLIENT_H

#include <sys/types.h>

#include "net/wire.h"
#include "tests/collector/frames.h"

/* ---- the collector ----------------------------------------------------------------------------- */

struct collector {
	pid_t pid;
	char address[128]; /* "tcp://127.0.0.1:40001" */
	char log[4096];	   /* file with its standard error */
};

/*
 * Starts it on `store` (NULL: the arguments name a sink) with further arguments up to NULL, and waits
 * until it listens. The log lies at `log`.
 */
void collector_start(struct collector *c, const char *store, const char *log, ...);

/* Runs it to its end; returns the exit status. */
int collector_run(const char *store, const char *log, ...);

/* SIGTERM; returns the exit status, 128 + n for a signal. */
int collector_stop(struct collector *c);
void collector_kill(struct collector *c); /* SIGKILL */

/* Does the log contain `text`? How often? */
bool collector_printed(const struct collector *c, const char *text);
unsigned collector_printed_times(const struct collector *c, const char *text);

/*
 * Collectors that are started from now on have clocks of their own: the kernel's, and what was added to them. The file `path` holds it;
 * NULL: the kernel's again.
 */
void collector_clocks(const char *path);
void collector_later(int64_t seconds); /* time has passed */
void collector_date(int64_t seconds);  /* the wall clock was set forward */

/* ---- a client ---------------------------------------------------------------------------------- */

struct client {
	int fd;
	bool mute;    /* answers no Ping */
	uint8_t *buf; /* bytes that have come */
	size_t bytes, room;
	int64_t clock_ahead_ns; /* of its Pongs */
	uint64_t acked;		/* latest Ack */
	uint64_t window_bytes;	/* of the HelloAck */
};

void client_connect(struct client *c, const char *address);
void client_done(struct client *c);

/* Hello, HelloAck: NULL and *ret when it is let in, else the Refusal's reason (static). */
const char *client_hello(struct client *c, uint32_t min, uint32_t max, const char *node);
void client_join(struct client *c, const char *address, const char *node); /* both, let in */

void client_tell(struct client *c, const Headrace__Wire *msg);
void client_send(struct client *c, const void *data, size_t bytes); /* raw */

/* The next message but Ping; NULL: the connection has ended. Free with headrace__wire__free_unpacked. */
Headrace__Wire *client_next(struct client *c);

/* The next message, which must be of this kind. */
Headrace__Wire *client_expect(struct client *c, Headrace__Wire__BodyCase kind);

/* Nothing comes any more but the end. */
void client_expect_end(struct client *c);

/* The stream of `job` on `node`, instance 1, secret of 16 times `secret`. */
void client_open(struct client *c, uint32_t channel, const char *job, const char *node,
		 uint8_t secret);
uint64_t client_opened(struct client *c, uint32_t channel); /* the mark */
void client_use(struct client *c, uint32_t channel);
void client_close(struct client *c, uint32_t channel);
void client_frame(struct client *c, struct frame f); /* frees it */
void client_losses(struct client *c, uint64_t first, uint64_t last);
void client_acked(struct client *c, uint32_t channel, uint64_t seq); /* waits for it */
void client_nacked(struct client *c, uint32_t channel, const char *reason);

#endif
