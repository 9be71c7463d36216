/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/alert_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/web.h"

#define CONNECT_MS  5000L
#define ANSWER_SHOW 120 /* bytes of a refusal that the log has */

static void note_error(struct hr_alert_batch *b, const struct hr_web_request *r)
{
	if (b->error[0] != '\0')
		return;
	if (r->error == -ECANCELED)
		snprintf(b->error, sizeof(b->error), "no answer within %u s",
			 HR_ALERT_URL_MS / 1000);
	else if (r->error < 0)
		snprintf(b->error, sizeof(b->error), "%s",
			 r->text ? r->text : strerrordesc_np(-r->error));
	else
		snprintf(b->error, sizeof(b->error), "status %d%s%.*s", r->status,
			 r->text_bytes > 0 ? ": " : "", ANSWER_SHOW, r->text ? r->text : "");
}

static void send_all(struct hr_alert_batch *b, struct hr_web *web)
{
	struct hr_web_request requests[HR_ALERT_URL_MOST] = {0};
	struct iovec bodies[HR_ALERT_URL_MOST];

	for (size_t i = 0; i < b->n; i++) {
		bodies[i] = (struct iovec){.iov_base = b->posts[i].body,
					   .iov_len = strlen(b->posts[i].body)};
		requests[i].url = b->url;
		requests[i].type = "application/json";
		requests[i].body = &bodies[i];
		requests[i].n_body = 1;
	}
	hr_web_send(web, requests, b->n);
	for (size_t i = 0; i < b->n; i++) {
		const struct hr_web_request *r = &requests[i];

		b->posts[i].good = r->error == 0 && r->status >= 200 && r->status <= 299;
		if (!b->posts[i].good)
			note_error(b, r);
		hr_web_done(&requests[i]);
	}
}

static void work_send(uv_work_t *work)
{
	struct hr_alert_batch *b = work->data;
	const struct hr_web_options options = {
	    .connect_ms = CONNECT_MS, .silent_s = HR_ALERT_URL_MS / 1000, .stop = &b->stop};
	struct hr_web *web;
	char *error = NULL;

	if (hr_web_new(&options, &web, &error) == 0) {
		send_all(b, web);
		hr_web_free(web);
	} else {
		snprintf(b->error, sizeof(b->error), "%s", error ? error : "out of memory");
	}
	free(error);
}

static void work_done(uv_work_t *work, int status)
{
	struct hr_alert_batch *b = work->data;

	(void)status; /* nothing cancels the work before it begins */
	b->done(b);
}

int hr_alert_url_send(uv_loop_t *loop, const char *url, struct hr_alert_batch *b)
{
	b->url = strdup(url);
	if (!b->url)
		return -ENOMEM;
	b->work.data = b;
	b->started_ms = uv_now(loop);
	return uv_queue_work(loop, &b->work, work_send, work_done);
}

void hr_alert_url_tick(struct hr_alert_batch *b, uint64_t now_ms)
{
	if (now_ms - b->started_ms >= HR_ALERT_URL_MS)
		hr_alert_url_stop(b);
}

void hr_alert_url_stop(struct hr_alert_batch *b)
{
	atomic_store(&b->stop, true);
}

void hr_alert_url_free(struct hr_alert_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->posts[i].body);
	free(b->url);
	free(b);
}

/* Returns the part after the scheme. NULL: another scheme. */
static const char *after_scheme(const char *url)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
			return url + strlen(schemes[i]);
	return NULL;
}

/* Finds the host and port. *ret_bytes: their length. NULL: no URL of a receiver. */
static const char *host_of(const char *url, size_t *ret_bytes)
{
	const char *host = after_scheme(url), *at;
	size_t n = host ? strcspn(host, "/?#") : 0;

	at = n > 0 ? memrchr(host, '@', n) : NULL;
	if (at) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	*ret_bytes = n;
	return n > 0 ? host : NULL;
}

bool hr_alert_url_valid(const char *url)
{
	size_t n;

	for (const char *c = url; *c != '\0'; c++)
		if (*c <= ' ' || *c == 0x7f)
			return false;
	return host_of(url, &n) != NULL;
}

void hr_alert_url_host(const char *url, char *ret, size_t bytes)
{
	size_t n;
	const char *host = host_of(url, &n);

	snprintf(ret, bytes, "%.*s", host ? (int)n : 0, host ? host : "");
}
