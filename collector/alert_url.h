/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert_url.h - sends alerts to an HTTP receiver, in a thread of libuv's pool
 *
 * Purpose   net/web.h waits for answers, so it must not run in the loop.
 * Owner     The caller owns a batch from hr_alert_url_send until `done`, and then frees it.
 * Threads   The loop. The thread of the pool only uses the batch.
 */
#ifndef HEADRACE_COLLECTOR_ALERT_URL_H
#define HEADRACE_COLLECTOR_ALERT_URL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HR_ALERT_URL_MOST 32u	 /* requests at a time */
#define HR_ALERT_URL_MS	  10000u /* time limit of a batch */

struct hr_alert_post {
	uint64_t id;
	char *body; /* JSON, malloc'ed; the batch frees it */
	bool good;  /* the result: an answer with a status from 200 to 299 arrived */
};

struct hr_alert_batch {
	struct hr_alert_post posts[HR_ALERT_URL_MOST];
	size_t n;
	char error[320]; /* why the first one failed that has failed; "": none */
	/* Called once from the loop. */
	void (*done)(struct hr_alert_batch *b);
	void *self;

	/* ---- internal ---- */
	uv_work_t work;
	char *url;
	uint64_t started_ms;
	atomic_bool stop;
};

/* Starts to send a batch, with at least one post, and calls `done` later. Returns 0 or -errno. */
int hr_alert_url_send(uv_loop_t *loop, const char *url, struct hr_alert_batch *b);

/* Call it at least once a second. Stops a batch that has reached its time limit. */
void hr_alert_url_tick(struct hr_alert_batch *b, uint64_t now_ms);
void hr_alert_url_stop(struct hr_alert_batch *b); /* `done` follows soon */
void hr_alert_url_free(struct hr_alert_batch *b);

/* Whether the text is an http:// or https:// URL with a host, and without blanks. */
bool hr_alert_url_valid(const char *url);

/* Writes the host and port of a URL, without secrets that its other parts may have. */
void hr_alert_url_host(const char *url, char *ret, size_t bytes);

#endif
