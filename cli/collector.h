/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector.h - the connection of a user to a collector: identity, Hello, its answer, Pings
 *
 * The user proves their identity by one of these:
 *
 *      TLS      with a certificate of the user, if net/tls_find.h finds one; headrace then also
 *               checks the certificate of the collector
 *      MUNGE    with a credential, if the HelloAck or refusal shows that the collector accepts it:
 *               headrace then connects a second time
 *      neither  a plain connection: on one machine the kernel identifies the peer
 *
 *      connecting --HelloAck--> welcome --hr_collector_close--> closed
 *          |                       |
 *          +--error, refusal-------+----> closed, with `error`
 *
 * Owner     The caller, of the struct and what `take` receives.
 * Threads   One, which runs `loop`. libuv's pool resolves names; all signals are blocked in it.
 */
#ifndef HEADRACE_CLI_COLLECTOR_H
#define HEADRACE_CLI_COLLECTOR_H

#include "net/conn.h"
#include "net/wire.h"

#define HR_COLLECTOR_ANSWER_MS 10000 /* how long a command waits for HelloAck and for an answer */

struct hr_collector_events {
	/* The collector is welcome or, with `error`, closed. May be NULL. */
	void (*changed)(void *self);
	/* Takes over a message after HelloAck. Returns 0 or -errno, which closes. May be NULL. */
	int (*take)(void *self, Headrace__Wire *msg);
};

struct hr_collector {
	struct hr_address to;
	char shown[HR_ADDRESS_HOST_BYTES + 32];
	const char *name; /* of this program, in Hello */
	const struct hr_collector_events *events;
	void *self;
	struct hr_tls *tls; /* NULL: a plain connection */
	char *munge;	    /* NULL: no credential has been made */
	uv_loop_t loop;
	uv_timer_t timer;
	struct hr_conn *conn; /* NULL: none */
	struct hr_conn_peer peer;
	bool again;	  /* `conn` is being closed, to connect with a MUNGE credential */
	bool welcome;	  /* the collector has answered Hello */
	bool closed;	  /* no event follows */
	uint64_t sent_ms; /* uv_now() at the last sent message */
	/* of the HelloAck */
	char software[256], who[320];
	uint32_t version, ping_ms;
	/* of a failure */
	int error;	    /* -EACCES: refused, for `reason` */
	char *why;	    /* malloc'ed; NULL: no memory */
	const char *advice; /* what the user can do; "": `why` is enough */
	char reason[32];    /* "": not refused */
};

/* Parses a list of collectors. Returns false after it has reported a mistake, with `prefix`. */
bool hr_collector_parse(const char *prefix, const char *text, struct hr_address *to, size_t max,
			size_t *ret_n);

/*
 * Makes the loop, and finds the certificate. Returns 0, or -errno with `why`: what is wrong with
 * the certificate. In both cases, call hr_collector_done.
 */
int hr_collector_init(struct hr_collector *c, const struct hr_address *to);
void hr_collector_done(struct hr_collector *c);

/* Connects, while the caller runs the loop. A failure may call `changed` at once. */
void hr_collector_connect(struct hr_collector *c, const char *name,
			  const struct hr_collector_events *events, void *self);

void hr_collector_send(struct hr_collector *c, const Headrace__Wire *msg);
void hr_collector_pong(struct hr_collector *c, uint64_t id);

/* From now on, a failure unless the caller stops the timer within HR_COLLECTOR_ANSWER_MS. */
void hr_collector_expect(struct hr_collector *c);

/* Closes the connection. The loop ends when it is closed. */
void hr_collector_close(struct hr_collector *c);

static inline const char *hr_collector_why(const struct hr_collector *c)
{
	return c->why != NULL ? c->why : "out of memory";
}

/* Returns a sentence about a failure, with the address (malloc'ed). NULL: no memory. */
char *hr_collector_text(const struct hr_collector *c);

#endif
