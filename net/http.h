/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - a small HTTP server: it answers GET requests, one for each connection
 *
 * Limits    A request has at most HR_HTTP_REQUEST_MOST bytes. A connection lasts HR_HTTP_MS at most.
 *           The server has at most HR_HTTP_CLIENTS connections. A further connection replaces the
 *           oldest, so that waiting clients cannot block others.
 * Owner     The caller of hr_http_open. After hr_http_close, the server calls nothing, and the loop
 *           frees it.
 * Threads   The loop's.
 *
 *      reading --(a head, or too much)--> answering --(written)--> lingering --(its end)--> closed
 *         +---(end, HR_HTTP_MS, a newer one)---+-----------------------+-----------------------^
 */
#ifndef HEADRACE_NET_HTTP_H
#define HEADRACE_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define HR_HTTP_REQUEST_MOST 4096u
#define HR_HTTP_CLIENTS	     16u
#define HR_HTTP_MS	     5000u

/* A request that was parsed. The texts are parts of the received bytes. */
struct hr_http_request {
	const char *target; /* path and query */
	size_t target_bytes;
	const char *fields; /* the header fields: lines NAME: VALUE, each with CR LF */
	size_t fields_bytes;
};

/* Parses the bytes received so far. Returns 200, another HTTP status, or 0: incomplete. */
int hr_http_parse(const char *request, size_t bytes, struct hr_http_request *ret);

/* Whether the target's path, without the query, is `path`. */
bool hr_http_target_is(const struct hr_http_request *r, const char *path);

/* Copies the value of a header field such as "Host", cut to `size`. False: the field is missing. */
bool hr_http_field(const struct hr_http_request *r, const char *name, char *ret, size_t size);

struct hr_http_answer {
	const char *type;   /* value of Content-Type */
	const char *fields; /* more header fields, each with CR LF; NULL: none */
	char *body;	    /* malloc'ed; the server frees it */
	size_t bytes;
};

/*
 * `address`: tcp://HOST:PORT (the first address of a name; port 0: any port), or unix:///PATH (a
 * socket with mode 0660). The texts must outlive the server.
 */
struct hr_http_config {
	const char *address;
	uint64_t limit_ms; /* time limit of a connection; 0: HR_HTTP_MS */
	/* Returns an HTTP status. The server sends *ret only if the status is 200. */
	int (*answer)(void *self, const struct hr_http_request *r, struct hr_http_answer *ret);
	void *self;
};

struct hr_http;

/* Listens. On failure, *ret_error (malloc'ed) is a message for the user. */
int hr_http_open(uv_loop_t *loop, const struct hr_http_config *config, struct hr_http **ret,
		 char **ret_error);
const char *hr_http_address(const struct hr_http *s); /* the address with the actual port */
void hr_http_close(struct hr_http *s);		      /* accepts NULL */

#endif
