/* SPDX-License-Identifier: Apache-2.0 */
#include "net/web.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"
#include "net/curl_api.h"

#define CONNECT_MS 5000L
#define SILENT_S   60L
#define POLL_MS	   100

struct hr_web {
	struct hr_web_options options;
	CURLM *multi;
};

/* A request in flight. */
struct sending {
	struct hr_web_request *request;
	CURL *easy;
	struct curl_slist *headers;
	size_t part, at; /* the next byte of the body */
	int error;	 /* of `take`, or of memory */
	char reason[CURL_ERROR_SIZE];
};

static size_t give_body(char *to, size_t size, size_t n, void *context)
{
	struct sending *s = context;
	const struct hr_web_request *r = s->request;
	size_t room = size * n, filled = 0;

	while (filled < room && s->part < r->n_body) {
		const struct iovec *part = &r->body[s->part];
		size_t bytes = part->iov_len - s->at;

		if (bytes > room - filled)
			bytes = room - filled;
		if (bytes > 0)
			memcpy(to + filled, (const char *)part->iov_base + s->at, bytes);
		filled += bytes;
		s->at += bytes;
		if (s->at == part->iov_len) {
			s->part++;
			s->at = 0;
		}
	}
	return filled;
}

/* Keeps the first bytes of an answer as text. */
static int keep_text(struct hr_web_request *r, const char *data, size_t bytes)
{
	char *text;

	if (bytes > HR_WEB_TEXT_BYTES - r->text_bytes)
		bytes = HR_WEB_TEXT_BYTES - r->text_bytes;
	if (bytes == 0)
		return 0;
	text = realloc(r->text, r->text_bytes + bytes + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text + r->text_bytes, data, bytes);
	r->text = text;
	r->text_bytes += bytes;
	text[r->text_bytes] = '\0';
	return 0;
}

static size_t take_answer(char *data, size_t size, size_t n, void *context)
{
	struct sending *s = context;
	struct hr_web_request *r = s->request;
	long status = 0;

	hr_curl.easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && r->take)
		s->error = r->take(r->self, data, size * n);
	else
		s->error = keep_text(r, data, size * n);
	return s->error == 0 ? size * n : CURL_WRITEFUNC_ERROR;
}

static size_t take_header(char *line, size_t size, size_t n, void *context)
{
	struct hr_web_request *r = ((struct sending *)context)->request;
	size_t name = strlen(r->expect);

	r->expected |=
	    size * n > name && strncasecmp(line, r->expect, name) == 0 && line[name] == ':';
	return size * n;
}

static void set_text(CURL *easy, CURLoption option, const char *text)
{
	if (text)
		hr_curl.easy_setopt(easy, option, text);
}

static void set_body(struct sending *s)
{
	const struct hr_web_request *r = s->request;
	curl_off_t bytes = 0;

	for (size_t i = 0; i < r->n_body; i++)
		bytes += (curl_off_t)r->body[i].iov_len;
	hr_curl.easy_setopt(s->easy, CURLOPT_POST, 1L);
	hr_curl.easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, bytes);
	hr_curl.easy_setopt(s->easy, CURLOPT_READFUNCTION, give_body);
	hr_curl.easy_setopt(s->easy, CURLOPT_READDATA, s);
	hr_curl.easy_setopt(s->easy, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
}

/* Sets all options of a request. Returns 0 or -ENOMEM. */
static int prepare(const struct hr_web *web, struct sending *s)
{
	const struct hr_web_options *o = &web->options;
	struct hr_web_request *r = s->request;
	char type[96];
	CURL *easy = hr_curl.easy_init();

	s->easy = easy;
	if (!easy)
		return -ENOMEM;
	snprintf(type, sizeof(type), "Content-Type: %s",
		 r->type ? r->type : "application/octet-stream");
	s->headers = hr_curl.slist_append(NULL, "Expect:"); /* send the body at once */
	if (!s->headers || !hr_curl.slist_append(s->headers, type) ||
	    !hr_curl.slist_append(s->headers, "Connection: close"))
		return -ENOMEM;
	set_text(easy, CURLOPT_URL, r->url);
	hr_curl.easy_setopt(easy, CURLOPT_HTTPHEADER, s->headers);
	hr_curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	hr_curl.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	hr_curl.easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	hr_curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
			    o->connect_ms ? o->connect_ms : CONNECT_MS);
	hr_curl.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	hr_curl.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, o->silent_s ? o->silent_s : SILENT_S);
	hr_curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, s->reason);
	hr_curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
	hr_curl.easy_setopt(easy, CURLOPT_WRITEDATA, s);
	hr_curl.easy_setopt(easy, CURLOPT_PRIVATE, s);
	set_text(easy, CURLOPT_CAINFO, o->ca);
	set_text(easy, CURLOPT_SSLCERT, o->cert);
	set_text(easy, CURLOPT_SSLKEY, o->key);
	if (o->user)
		hr_curl.easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	set_text(easy, CURLOPT_USERNAME, o->user);
	set_text(easy, CURLOPT_PASSWORD, o->password);
	if (r->expect) {
		hr_curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
		hr_curl.easy_setopt(easy, CURLOPT_HEADERDATA, s);
	}
	if (r->body)
		set_body(s);
	return 0;
}

static void fail(struct hr_web_request *r, int error, const char *reason)
{
	free(r->text);
	r->text = strdup(reason);
	r->text_bytes = r->text ? strlen(r->text) : 0;
	r->error = error;
}

static void note_result(struct sending *s, CURLcode code)
{
	struct hr_web_request *r = s->request;
	const char *content = NULL;
	long status = 0;

	hr_curl.easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	hr_curl.easy_getinfo(s->easy, CURLINFO_CONTENT_TYPE, &content);
	r->status = (int)status;
	snprintf(r->content, sizeof(r->content), "%s", content ? content : "");
	if (code == CURLE_OK)
		return;
	if (s->error < 0)
		fail(r, s->error, strerrordesc_np(-s->error));
	else
		fail(r, code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO,
		     s->reason[0] ? s->reason : hr_curl.easy_strerror(code));
}

static void note_results(struct hr_web *web)
{
	CURLMsg *message;
	int left;

	while ((message = hr_curl.multi_info_read(web->multi, &left))) {
		struct sending *s = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		hr_curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &s);
		s->request->error = 0;
		note_result(s, message->data.result);
	}
}

static bool stopped(const struct hr_web *web)
{
	return web->options.stop && atomic_load(web->options.stop);
}

/* Sends until no request is in flight. Requests without a result keep -ECANCELED. */
static void work(struct hr_web *web)
{
	int running = 1;

	while (running > 0 && !stopped(web)) {
		if (hr_curl.multi_perform(web->multi, &running) != CURLM_OK)
			return;
		note_results(web);
		if (running > 0)
			hr_curl.multi_poll(web->multi, NULL, 0, POLL_MS, NULL);
	}
}

void hr_web_send(struct hr_web *web, struct hr_web_request *requests, size_t n)
{
	struct sending *all = calloc(n, sizeof(*all));

	for (size_t i = 0; i < n; i++) {
		struct hr_web_request *r = &requests[i];

		r->text = NULL;
		r->text_bytes = 0;
		r->status = 0;
		r->expected = false;
		r->content[0] = '\0';
		r->error = all ? -ECANCELED : -ENOMEM;
		if (!all)
			continue;
		all[i].request = r;
		if (prepare(web, &all[i]) < 0)
			r->error = -ENOMEM;
		else
			hr_curl.multi_add_handle(web->multi, all[i].easy);
	}
	if (all)
		work(web);
	for (size_t i = 0; i < n; i++) {
		if (requests[i].error == -ECANCELED || requests[i].error == -ENOMEM)
			fail(&requests[i], requests[i].error, strerrordesc_np(-requests[i].error));
		if (!all || !all[i].easy)
			continue;
		hr_curl.multi_remove_handle(web->multi, all[i].easy);
		hr_curl.easy_cleanup(all[i].easy);
		hr_curl.slist_free_all(all[i].headers);
	}
	free(all);
}

void hr_web_done(struct hr_web_request *request)
{
	free(request->text);
	request->text = NULL;
	request->text_bytes = 0;
}

int hr_web_new(const struct hr_web_options *options, struct hr_web **ret, char **ret_error)
{
	struct hr_web *web;
	int r = hr_curl_load(ret_error);

	if (r < 0)
		return r;
	web = calloc(1, sizeof(*web));
	if (web)
		web->multi = hr_curl.multi_init();
	if (!web || !web->multi) {
		free(web);
		return hr_text_fail(-ENOMEM, ret_error, "out of memory");
	}
	web->options = *options;
	*ret = web;
	return 0;
}

void hr_web_free(struct hr_web *web)
{
	if (!web)
		return;
	hr_curl.multi_cleanup(web->multi);
	free(web);
}
