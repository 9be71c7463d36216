/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/client.h"

#include <errno.h>
#include <stdlib.h>

#include "common/text.h"

#define ERROR_BYTES 400u /* how much of an error of ClickHouse a message has */
#define HEADER	    "X-ClickHouse-Server-Display-Name" /* servers of all releases send it */
#define MAGIC	    "headrace" /* the first column of each row of an answer */

struct hr_ch_client {
	const struct hr_ch_target *target;
	struct hr_web *web;
	size_t last[HR_CH_HOSTS_MAX]; /* of each shard: the host that answered last */
};

/* ---- texts in statements ---- */

void hr_ch_put_literal(FILE *to, const char *text)
{
	fputc('\'', to);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('\'', to);
}

void hr_ch_put_name(FILE *to, const char *name)
{
	char *escaped = hr_text_escaped(name, strlen(name));

	hr_ch_put_literal(to, escaped ? escaped : "");
	free(escaped);
}

/* ---- URLs ---- */

static void put_encoded(FILE *to, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		    (*c >= '0' && *c <= '9') || *c == '_' || *c == '.')
			fputc(*c, to);
		else
			fprintf(to, "%%%02X", *c);
	}
}

/* Returns the URL of a statement, malloc'ed. `sql` NULL: the statement is the body. */
static char *make_url(const struct hr_ch_client *c, const struct hr_ch_host *host, const char *sql)
{
	char *url = NULL;
	size_t bytes;
	FILE *to = open_memstream(&url, &bytes);

	if (!to)
		return NULL;
	/* An answer is sent only when it is complete, so that its status is true. */
	fprintf(to,
		"%s/?database=%s&wait_end_of_query=1&buffer_size=1048576"
		"&output_format_json_quote_64bit_integers=0",
		host->url, c->target->database);
	if (sql) {
		fputs("&query=", to);
		put_encoded(to, sql);
	}
	return hr_text_close(to, &url);
}

/* ---- errors ---- */

/* Returns the error of a request: what the server answered, or why it did not. */
static int check(const struct hr_ch_host *host, const struct hr_web_request *r, char **ret_error)
{
	const char *text = r->text ? r->text : "";
	size_t length = strcspn(text, "\n");

	if (r->error < 0 && r->error != -EPROTO)
		return hr_text_fail(r->error, ret_error, "ClickHouse at %s does not answer: %s",
				    host->url, r->text ? text : strerrordesc_np(-r->error));
	if (!r->expected)
		return hr_text_fail(-EPROTO, ret_error,
				    "%s is not a ClickHouse server, or a proxy answers for it "
				    "(status %d, %s)",
				    host->url, r->status,
				    r->content[0] ? r->content : "no content");
	if (r->status == 200 && r->error == 0)
		return 0;
	return hr_text_fail(-EREMOTEIO, ret_error, "ClickHouse at %s refuses (status %d): %.*s",
			    host->url, r->status,
			    (int)(length < ERROR_BYTES ? length : ERROR_BYTES), text);
}

/* ---- one request, to the replicas of a shard ---- */

/* Returns host number `i` of a shard, the one that answered last first. NULL: no more hosts. */
static const struct hr_ch_host *host_of(const struct hr_ch_client *c, unsigned shard, size_t i)
{
	const struct hr_ch_target *t = c->target;
	size_t first = 0, n = 0;

	while (first < t->n_hosts && t->hosts[first].shard != shard)
		first++;
	while (first + n < t->n_hosts && t->hosts[first + n].shard == shard)
		n++;
	return i < n ? &t->hosts[first + (c->last[shard] + i) % n] : NULL;
}

/* Sends a statement as the body. `r` has `take` and `self`, and gets the results. */
static int ask_shard(struct hr_ch_client *c, unsigned shard, const char *sql,
		     struct hr_web_request *r, char **ret_error)
{
	struct iovec body = {(char *)sql, strlen(sql)};
	const struct hr_ch_host *host;
	int error = -EINVAL;

	for (size_t i = 0; (host = host_of(c, shard, 0)); i++) {
		char *url = make_url(c, host, NULL);

		if (!url)
			return -ENOMEM;
		if (i > 0) {
			free(*ret_error);
			*ret_error = NULL;
		}
		r->url = url;
		r->expect = HEADER;
		r->body = &body;
		r->n_body = 1;
		hr_web_send(c->web, r, 1);
		error = check(host, r, ret_error);
		free(url);
		if (error == 0 || error == -EREMOTEIO || error == -ECANCELED ||
		    !host_of(c, shard, i + 1))
			break;
		hr_web_done(r);
		c->last[shard]++; /* prefers another host from now on */
	}
	return error;
}

/* ---- answers ---- */

uint64_t hr_ch_take_u64(struct hr_ch_answer *a)
{
	uint64_t value = 0;

	if (a->bytes - a->at < sizeof(value)) {
		a->failed = true;
		return 0;
	}
	memcpy(&value, a->data + a->at, sizeof(value));
	a->at += sizeof(value);
	return value;
}

const char *hr_ch_take_text(struct hr_ch_answer *a, size_t *ret_n)
{
	uint64_t n = 0;
	const char *text;

	*ret_n = 0;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte;

		if (a->at == a->bytes || shift > 56) {
			a->failed = true;
			return "";
		}
		byte = a->data[a->at++];
		n |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	if (n > a->bytes - a->at) {
		a->failed = true;
		return "";
	}
	text = (const char *)a->data + a->at;
	a->at += n;
	*ret_n = n;
	return text;
}

struct asking {
	hr_ch_row *row;
	void *self;
	struct hr_ch_bytes rest; /* the beginning of a row whose end has not arrived */
	bool foreign;		 /* the answer is not from ClickHouse */
};

/* Takes all complete rows, and keeps the rest. */
static int take_rows(struct asking *k)
{
	struct hr_ch_answer a = {.data = k->rest.data, .bytes = k->rest.bytes};
	size_t whole = 0;
	int r = 0;

	while (r == 0 && a.at < a.bytes) {
		size_t n;
		const char *magic = hr_ch_take_text(&a, &n);

		if (!a.failed && (n != strlen(MAGIC) || memcmp(magic, MAGIC, n) != 0)) {
			k->foreign = true;
			return -EPROTO;
		}
		if (!a.failed)
			r = k->row(k->self, &a);
		if (a.failed)
			break;
		whole = a.at;
	}
	memmove(k->rest.data, k->rest.data + whole, k->rest.bytes - whole);
	k->rest.bytes -= whole;
	return r;
}

static int take_part(void *self, const void *data, size_t bytes)
{
	struct asking *k = self;
	void *to = hr_ch_more(&k->rest, bytes);

	if (!to)
		return -ENOMEM;
	memcpy(to, data, bytes);
	return take_rows(k);
}

int hr_ch_ask(struct hr_ch_client *c, unsigned shard, const char *selection, hr_ch_row *row,
	      void *self, char **ret_error)
{
	struct asking k = {.row = row, .self = self};
	struct hr_web_request r = {.take = take_part, .self = &k};
	char *sql;
	int error;

	if (asprintf(&sql, "SELECT '" MAGIC "', %s FORMAT RowBinary", selection) < 0)
		return -ENOMEM;
	error = ask_shard(c, shard, sql, &r, ret_error);
	if (k.foreign || (error == 0 && k.rest.bytes > 0)) {
		free(*ret_error);
		error = hr_text_fail(-EPROTO, ret_error,
				     "the answer of %s is damaged, or not from ClickHouse",
				     host_of(c, shard, 0)->url);
	}
	hr_web_done(&r);
	free(k.rest.data);
	free(sql);
	return error;
}

/* ClickHouse of others adds words to the numbers, for example 23.8.16.42.altinitystable. */
static int take_release(void *self, struct hr_ch_answer *a)
{
	char **ret = self;
	size_t n;
	const char *text = hr_ch_take_text(a, &n);

	if (a->failed || *ret)
		return 0;
	*ret = strndup(text, n);
	if (!*ret)
		return -ENOMEM;
	n = strspn(*ret, "0123456789.");
	while (n > 0 && (*ret)[n - 1] == '.')
		n--;
	(*ret)[n] = '\0';
	return 0;
}

int hr_ch_release(struct hr_ch_client *c, unsigned *ret, char **ret_text, char **ret_error)
{
	char *text = NULL;
	int error = hr_ch_ask(c, 0, "version()", take_release, &text, ret_error);

	if (error == 0 && (!text || !text[0]))
		error = hr_text_fail(-EPROTO, ret_error, "%s does not answer with its release",
				     host_of(c, 0, 0)->url);
	if (error < 0) {
		free(text);
		return error;
	}
	*ret = (unsigned)strtoul(text, NULL, 10);
	*ret_text = text;
	return 0;
}

static int print_part(void *self, const void *data, size_t bytes)
{
	return fwrite(data, 1, bytes, self) == bytes ? 0 : -EIO;
}

int hr_ch_print(struct hr_ch_client *c, const char *sql, const char *format, FILE *to,
		char **ret_error)
{
	struct hr_web_request r = {.take = print_part, .self = to};
	char *statement;
	int error;

	if (asprintf(&statement, "%s\nFORMAT %s", sql, format) < 0)
		return -ENOMEM;
	error = ask_shard(c, 0, statement, &r, ret_error);
	hr_web_done(&r);
	free(statement);
	return error;
}

/* ---- inserts ---- */

struct insert {
	struct iovec parts[HR_CH_BLOCK_PARTS];
	char *url;
};

static int prepare_insert(const struct hr_ch_client *c, const struct hr_ch_host *host,
			  struct hr_ch_block *b, struct insert *i, struct hr_web_request *r)
{
	char *sql = NULL;
	size_t bytes;
	FILE *to = open_memstream(&sql, &bytes);

	if (!to)
		return -ENOMEM;
	hr_ch_block_insert(b, c->target->database, to);
	if (fclose(to) == 0)
		i->url = make_url(c, host, sql);
	free(sql);
	*r = (struct hr_web_request){.url = i->url, .expect = HEADER, .body = i->parts};
	return i->url ? hr_ch_block_parts(b, i->parts, &r->n_body) : -ENOMEM;
}

static int insert_at(struct hr_ch_client *c, const struct hr_ch_host *host,
		     struct hr_ch_block *blocks, size_t n, char **ret_error)
{
	struct insert *inserts = calloc(n, sizeof(*inserts));
	struct hr_web_request *requests = calloc(n, sizeof(*requests));
	size_t filled = 0;
	int error = inserts && requests ? 0 : -ENOMEM;

	for (size_t i = 0; error == 0 && i < n; i++) {
		if (blocks[i].rows == 0)
			continue;
		error = prepare_insert(c, host, &blocks[i], &inserts[filled], &requests[filled]);
		filled++;
	}
	if (error == 0)
		hr_web_send(c->web, requests, filled);
	for (size_t i = 0; error == 0 && i < filled; i++)
		error = check(host, &requests[i], ret_error);
	for (size_t i = 0; i < filled; i++) {
		hr_web_done(&requests[i]);
		free(inserts[i].url);
	}
	free(requests);
	free(inserts);
	return error;
}

int hr_ch_insert(struct hr_ch_client *c, unsigned shard, struct hr_ch_block *blocks, size_t n,
		 char **ret_error)
{
	const struct hr_ch_host *host = host_of(c, shard, 0);
	int error = host ? insert_at(c, host, blocks, n, ret_error) : -EINVAL;

	if (error < 0)
		c->last[shard]++; /* prefers another host from now on */
	return error;
}

/* ---- a client ---- */

int hr_ch_client_new(const struct hr_ch_target *target, const atomic_bool *stop,
		     struct hr_ch_client **ret, char **ret_error)
{
	const struct hr_web_options options = {.user = target->user,
					       .password = target->password,
					       .ca = target->ca,
					       .cert = target->cert,
					       .key = target->key,
					       .stop = stop};
	struct hr_ch_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->target = target;
	r = hr_web_new(&options, &c->web, ret_error);
	if (r < 0)
		free(c);
	else
		*ret = c;
	return r;
}

void hr_ch_client_free(struct hr_ch_client *c)
{
	if (!c)
		return;
	hr_web_free(c->web);
	free(c);
}
