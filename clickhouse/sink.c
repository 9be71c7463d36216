/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/sink.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <time.h>

#include "common/text.h"

#define DAY_S	 86400u
#define NODE_JOB "_node" /* the stream of a node itself; it can be years old */
/*
 * Added to the newest generation if the clock of a node was set back, so that Opens have distances.
 */
#define OPEN_NUMBERS (UINT64_C(1) << 20)
#define TABLES_HINT  "headrace-collector schema clickhouse prints the statements that create them"

struct hr_ch_sink {
	const struct hr_ch_target *target;
	struct hr_ch_client *client;
	struct hr_ch_rows *rows; /* of each shard */
};

/* ---- SQL ---- */

/* Writes "(job, stream) IN ((...), ...)". The job is a part of the sorting keys. */
static void put_streams(FILE *to, struct hr_ch_sink_stream *const *streams, size_t n)
{
	fputs("(job, stream) IN (", to);
	for (size_t i = 0; i < n; i++) {
		fputs(i > 0 ? ",(" : "(", to);
		hr_ch_put_name(to, streams[i]->origin.job);
		fprintf(to, ",%llu)", (unsigned long long)streams[i]->origin.stream);
	}
	fputc(')', to);
}

/* A question that is being written. */
struct sql {
	char *text;
	size_t bytes;
};

/* Asks all shards what was written to `to`, in turn. *at is the shard whose rows arrive. */
static int ask_shards(struct hr_ch_sink *k, struct sql *sql, FILE *to, hr_ch_row *row, void *self,
		      unsigned *at, char **ret_error)
{
	int r = fclose(to) == 0 ? 0 : -ENOMEM;

	for (*at = 0; r == 0 && *at < k->target->n_shards; ++*at)
		r = hr_ch_ask(k->client, *at, sql->text, row, self, ret_error);
	free(sql->text);
	return r;
}

/* ---- streams ---- */

static void put_hex(const uint8_t *bytes, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

void hr_ch_sink_identify(const struct hr_ch_sink *k, struct hr_ch_sink_stream *s)
{
	const struct hr_ch_origin *o = &s->origin;
	uint8_t hash[SHA256_DIGEST_LENGTH];
	char *names;
	int n = asprintf(&names, "%zu %s%zu %s%u %zu %s%zu %s%llu", strlen(o->cluster), o->cluster,
			 strlen(o->job), o->job, o->attempt, strlen(o->node), o->node,
			 strlen(s->boot_id), s->boot_id, (unsigned long long)s->instance);

	/* A user chooses names, so the hash must be one for which no other names can be found. */
	if (n >= 0) {
		SHA256((const uint8_t *)names, (size_t)n, hash);
		memcpy(&s->origin.stream, hash, sizeof(s->origin.stream));
		free(names);
	}
	s->shard = (unsigned)(s->origin.stream % k->target->n_shards);
	SHA256(s->secret, s->secret_bytes, hash);
	put_hex(hash, sizeof(hash), s->hash);
}

struct finding {
	struct hr_ch_sink_stream *const *streams;
	size_t n;
	unsigned shard;
};

static struct hr_ch_sink_stream *find_stream(const struct finding *f, uint64_t stream)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->streams[i]->origin.stream == stream)
			return f->streams[i];
	return NULL;
}

/* A generation: stream, generation, day, secret, uid + 1 */
static int take_generation(void *self, struct hr_ch_answer *a)
{
	const struct finding *f = self;
	struct hr_ch_sink_stream *s = find_stream(f, hr_ch_take_u64(a));
	uint64_t generation = hr_ch_take_u64(a), day = hr_ch_take_u64(a), uid_plus1;
	size_t n;
	const char *secret = hr_ch_take_text(a, &n);

	uid_plus1 = hr_ch_take_u64(a);
	if (a->failed || !s)
		return 0;
	if (!s->begun || day < s->origin.day)
		s->origin.day = (uint16_t)day;
	s->same_secret = n == strlen(s->hash) && memcmp(secret, s->hash, n) == 0 &&
			 (!s->begun || s->same_secret);
	s->begun = true;
	s->shard = f->shard; /* the number of shards can have changed since */
	if (generation > s->last_generation)
		s->last_generation = generation;
	if (uid_plus1 > 0) {
		s->owner_known = true;
		s->owner = (uint32_t)(uid_plus1 - 1);
	}
	return 0;
}

static int take_stream_owner(void *self, struct hr_ch_answer *a)
{
	struct hr_ch_sink_stream *s = find_stream(self, hr_ch_take_u64(a));
	uint64_t uid = hr_ch_take_u64(a);

	if (!a->failed && s) {
		s->owner_known = true;
		s->owner = (uint32_t)uid;
	}
	return 0;
}

/* Asks for columns of the rows of streams in a table. */
static int ask_streams(struct hr_ch_sink *k, struct finding *f, const char *columns,
		       const char *table, const char *rest, hr_ch_row *row, char **ret_error)
{
	struct sql sql;
	FILE *to = open_memstream(&sql.text, &sql.bytes);

	if (!to)
		return -ENOMEM;
	fprintf(to, "%s FROM `%s`.%s_rows WHERE ", columns, k->target->database, table);
	put_streams(to, f->streams, f->n);
	fputs(rest, to);
	return ask_shards(k, &sql, to, row, f, &f->shard, ret_error);
}

int hr_ch_sink_find(struct hr_ch_sink *k, struct hr_ch_sink_stream *const *streams, size_t n,
		    char **ret_error)
{
	struct finding f = {.streams = streams, .n = n};
	uint16_t today = (uint16_t)(time(NULL) / DAY_S);
	int r;

	for (size_t i = 0; i < n; i++) {
		streams[i]->origin.day = today;
		streams[i]->begun = streams[i]->owner_known = false;
	}
	r = ask_streams(k, &f, "stream, generation, toUInt64(day), secret, toUInt64(uid + 1)",
			"generations", "", take_generation, ret_error);
	if (r == 0)
		r = ask_streams(k, &f, "stream, toUInt64(max(uid))", "job_events",
				" AND uid >= 0 GROUP BY stream", take_stream_owner, ret_error);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct hr_ch_sink_stream *s = streams[i];

		if (strcmp(s->origin.job, NODE_JOB) == 0)
			s->origin.day = today;
		if (s->last_generation >= s->opening)
			s->last_generation += OPEN_NUMBERS;
		else
			s->last_generation = s->opening;
	}
	return r;
}

struct owning {
	struct hr_ch_sink_stream *const *streams;
	size_t n;
	hr_ch_sink_owner *owner;
	void *self;
};

/* job, by_node, uid */
static int take_owner(void *self, struct hr_ch_answer *a)
{
	const struct owning *o = self;
	size_t bytes;
	const char *job = hr_ch_take_text(a, &bytes);
	uint64_t by_node = hr_ch_take_u64(a), uid = hr_ch_take_u64(a);

	for (size_t i = 0; !a->failed && i < o->n; i++) {
		const char *name = o->streams[i]->origin.job;
		char *escaped = hr_text_escaped(name, strlen(name));

		if (escaped && strlen(escaped) == bytes && memcmp(escaped, job, bytes) == 0)
			o->owner(o->self, i, by_node != 0, (uint32_t)uid);
		free(escaped);
	}
	return 0;
}

int hr_ch_sink_owners(struct hr_ch_sink *k, struct hr_ch_sink_stream *const *streams, size_t n,
		      hr_ch_sink_owner *owner, void *self, char **ret_error)
{
	struct owning o = {streams, n, owner, self};
	struct sql sql;
	FILE *to = open_memstream(&sql.text, &sql.bytes);
	unsigned shard;

	if (!to)
		return -ENOMEM;
	fprintf(to,
		"job, toUInt64(by_node) AS named, toUInt64(uid) AS owner FROM `%s`.job_events_rows "
		"WHERE uid >= 0 AND job IN (",
		k->target->database);
	for (size_t i = 0; i < n; i++) {
		fputs(i > 0 ? "," : "", to);
		hr_ch_put_name(to, streams[i]->origin.job);
	}
	fputs(") GROUP BY job, named, owner", to);
	return ask_shards(k, &sql, to, take_owner, &o, &shard, ret_error);
}

/* ---- frames ---- */

static void begin_generation(struct hr_ch_sink *k, struct hr_ch_sink_stream *s, uint64_t seq,
			     uint64_t real_ns)
{
	struct hr_ch_block *b = &k->rows[s->shard].blocks[HR_CH_TABLE_generations];

	s->origin.generation = ++s->last_generation;
	hr_ch_rows_begin(b, &s->origin, seq, 1);
	hr_ch_block_string(b, HR_CH_generations_boot_id, s->boot_id);
	hr_ch_block_number(b, HR_CH_generations_instance, s->instance);
	hr_ch_block_string(b, HR_CH_generations_secret, s->hash);
	hr_ch_block_string(b, HR_CH_generations_peer, s->peer);
	hr_ch_block_number(b, HR_CH_generations_opened_ns, real_ns);
}

int hr_ch_sink_add(struct hr_ch_sink *k, struct hr_ch_sink_stream *s, Headrace__Frame *msg,
		   const uint8_t *packed, size_t bytes, uint64_t real_ns)
{
	if (s->origin.uid < 0 && msg->body_case == HEADRACE__FRAME__BODY_JOB)
		s->origin.uid = msg->job->uid;
	if (s->origin.generation == 0)
		begin_generation(k, s, msg->seq, real_ns);
	return hr_ch_rows_add(&k->rows[s->shard], &s->origin, msg, packed, bytes, (int64_t)real_ns);
}

size_t hr_ch_sink_waiting(const struct hr_ch_sink *k, unsigned shard)
{
	return hr_ch_rows_count(&k->rows[shard]);
}

bool hr_ch_sink_full(const struct hr_ch_sink *k, unsigned shard)
{
	const struct hr_ch_rows *r = &k->rows[shard];

	return r->blocks[HR_CH_TABLE_events].rows >= HR_CH_SINK_ROWS ||
	       hr_ch_rows_bytes(r) >= HR_CH_SINK_BYTES;
}

int hr_ch_sink_insert(struct hr_ch_sink *k, unsigned shard, char **ret_error)
{
	struct hr_ch_block *b = k->rows[shard].blocks;
	int r;

	_Static_assert((int)HR_CH_TABLE_generations == 0 && (int)HR_CH_TABLE_frames == 1,
		       "the order of the tables");
	r = hr_ch_insert(k->client, shard, &b[HR_CH_TABLE_generations], 1, ret_error);
	if (r == 0)
		r = hr_ch_insert(k->client, shard, &b[HR_CH_TABLE_frames + 1],
				 HR_CH_TABLES - HR_CH_TABLE_frames - 1, ret_error);
	if (r == 0)
		r = hr_ch_insert(k->client, shard, &b[HR_CH_TABLE_frames], 1, ret_error);
	hr_ch_sink_clear(k, shard);
	return r;
}

void hr_ch_sink_clear(struct hr_ch_sink *k, unsigned shard)
{
	hr_ch_rows_clear(&k->rows[shard]);
}

/* ---- a sink ---- */

static int take_count(void *self, struct hr_ch_answer *a)
{
	uint64_t *least = self, n = hr_ch_take_u64(a);

	if (!a->failed && n < *least)
		*least = n;
	return 0;
}

int hr_ch_sink_check(struct hr_ch_sink *k, char **ret_error)
{
	uint64_t least = UINT64_MAX, all = 0;
	struct sql sql;
	FILE *to = open_memstream(&sql.text, &sql.bytes);
	unsigned shard;
	int r;

	if (!to)
		return -ENOMEM;
	fprintf(to, "count() FROM system.columns WHERE database = '%s' AND (table, name) IN (",
		k->target->database);
	for (unsigned t = 0; t < HR_CH_TABLES; t++) {
		for (unsigned c = 0; c < hr_ch_tables[t].n_columns; c++)
			fprintf(to, "%s('%s_rows','%s')", all++ > 0 ? "," : "",
				hr_ch_tables[t].name, hr_ch_column(&hr_ch_tables[t], c)->name);
	}
	fputc(')', to);
	r = ask_shards(k, &sql, to, take_count, &least, &shard, ret_error);
	if (r == -EREMOTEIO && strstr(*ret_error, "Code: 81")) { /* no such database */
		free(*ret_error);
		*ret_error = NULL;
		least = 0;
	}
	if ((r == 0 || least == 0) && least < all)
		return hr_text_fail(
		    -ENOENT, ret_error,
		    "%s has no database %s with the tables of this release: " TABLES_HINT,
		    k->target->hosts[0].url, k->target->database);
	return r;
}

int hr_ch_sink_new(const struct hr_ch_target *target, struct hr_ch_sink **ret, char **ret_error)
{
	struct hr_ch_sink *k = calloc(1, sizeof(*k));
	int r = k ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	k->target = target;
	k->rows = calloc(target->n_shards, sizeof(*k->rows));
	if (!k->rows)
		r = -ENOMEM;
	for (unsigned i = 0; r == 0 && i < target->n_shards; i++)
		r = hr_ch_rows_init(&k->rows[i]);
	if (r == 0)
		r = hr_ch_client_new(target, NULL, &k->client, ret_error);
	if (r < 0)
		hr_ch_sink_free(k);
	else
		*ret = k;
	return r;
}

void hr_ch_sink_free(struct hr_ch_sink *k)
{
	if (!k)
		return;
	for (unsigned i = 0; k->rows && i < k->target->n_shards; i++)
		if (k->rows[i].decoder)
			hr_ch_rows_done(&k->rows[i]);
	free(k->rows);
	hr_ch_client_free(k->client);
	free(k);
}
