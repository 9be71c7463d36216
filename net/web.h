/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web.h - sends HTTP requests, and waits for the answers
 *
 * Purpose   For ClickHouse (clickhouse/) and receivers of alerts. libcurl does the work; it is
 *           loaded at run time, because few machines need it.
 * Owner     The caller owns requests and what they point to. hr_web_done frees their results.
 * Threads   A struct hr_web belongs to one thread. hr_web_send waits, so it is not for a loop.
 *
 * A request is sent once, over a connection of its own: libcurl repeats a request on a kept
 * connection that ends without an answer, and an insert must not arrive twice. Redirections are
 * not followed.
 */
#ifndef HEADRACE_NET_WEB_H
#define HEADRACE_NET_WEB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#define HR_WEB_TEXT_BYTES (64u << 10)

/* Texts are NULL if they are not given. They must stay valid. */
struct hr_web_options {
	const char *user, *password; /* basic authentication */
	const char *ca, *cert, *key; /* PEM files of TLS */
	long connect_ms;	     /* limit of the time to connect; 0: 5 s */
	long silent_s;		     /* the request fails if no byte moves for this time; 0: 60 s */
	/* If it becomes true, running requests fail with -ECANCELED. NULL: none. */
	const atomic_bool *stop;
};

struct hr_web_request {
	const char *url;	  /* http:// or https:// */
	const char *type;	  /* of the body */
	const struct iovec *body; /* of a POST; its parts are sent one after the other */
	size_t n_body;
	/*
	 * Takes the parts of an answer with status 200. Any result but 0 ends the request with this
	 * error. NULL: the first HR_WEB_TEXT_BYTES become `text`.
	 */
	int (*take)(void *self, const void *data, size_t bytes);
	void *self;
	const char *expect; /* the name of a header that the answer must have; NULL: none */

	/* ---- results ---- */
	int error;  /* 0: an answer arrived, of any status; else -errno, and `text` is the reason */
	int status; /* of HTTP */
	bool expected;	  /* the answer has the header `expect` */
	char content[64]; /* type of the answer */
	char *text;	  /* malloc'ed, with a NUL at the end; NULL: empty */
	size_t text_bytes;
};

struct hr_web;

/* Returns 0, -ENOENT (no libcurl), -ELIBACC or -ENOMEM. *ret_error: malloc'ed. */
int hr_web_new(const struct hr_web_options *options, struct hr_web **ret, char **ret_error);
void hr_web_free(struct hr_web *web); /* accepts NULL */

/* Sends `n` requests at the same time, and returns when all have their results. */
void hr_web_send(struct hr_web *web, struct hr_web_request *requests, size_t n);

/* Frees the results of a request. */
void hr_web_done(struct hr_web_request *request);

#endif
