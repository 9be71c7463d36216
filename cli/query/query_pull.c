/* SPDX-License-Identifier: Apache-2.0 */
/* query_pull.c - copies the frames of a job from ClickHouse into a temporary store */
#include "cli/query/query_clickhouse.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/array.h"
#include "common/text.h"
#include "store/store.h"
#include "store/stream_state.h"

#define PAGE_FRAMES 256u /* frames of a request, which a server holds in memory */

struct pulled_stream {
	char *cluster, *node, *boot_id, *peer; /* as they were, not escaped */
	uint64_t stream, attempt, instance, last_seq, stored_ns, uid_plus1;
};

struct pull {
	struct hr_ch_target target;
	struct hr_ch_client *client;
	const char *job;
	char *store;
	struct pulled_stream *streams;
	size_t n, room;
	/* the stream whose frames arrive */
	struct hr_writer *writer;
	uint64_t frames;
};

static atomic_bool pull_stopped;

static void stop_pull(int signal)
{
	(void)signal;
	atomic_store(&pull_stopped, true);
}

/* ---- streams ---- */

static char *take_name(struct hr_ch_answer *a)
{
	size_t n;
	const char *text = hr_ch_take_text(a, &n);
	char *copy = strndup(text, n);

	if (copy && hr_text_unescape(copy) < 0)
		a->failed = true;
	return copy;
}

static void stream_done(struct pulled_stream *s)
{
	free(s->cluster);
	free(s->node);
	free(s->boot_id);
	free(s->peer);
}

static int take_stream(void *self, struct hr_ch_answer *a)
{
	struct pull *p = self;
	struct pulled_stream s;
	bool good;

	s.stream = hr_ch_take_u64(a);
	s.attempt = hr_ch_take_u64(a);
	s.instance = hr_ch_take_u64(a);
	s.uid_plus1 = hr_ch_take_u64(a);
	s.cluster = take_name(a);
	s.node = take_name(a);
	s.boot_id = take_name(a);
	s.peer = take_name(a);
	s.last_seq = s.stored_ns = 0;
	good = !a->failed && s.cluster && s.node && s.boot_id && s.peer;
	if (good && hr_array_reserve(p->streams, p->n, p->room)) {
		p->streams[p->n++] = s;
		return 0;
	}
	stream_done(&s);
	/* Of a row that is not complete, the rest follows. */
	return a->failed ? 0 : -ENOMEM;
}

static int take_last(void *self, struct hr_ch_answer *a)
{
	struct pull *p = self;
	uint64_t stream = hr_ch_take_u64(a), seq = hr_ch_take_u64(a), ns = hr_ch_take_u64(a);

	for (size_t i = 0; !a->failed && i < p->n; i++) {
		if (p->streams[i].stream != stream)
			continue;
		p->streams[i].last_seq = seq;
		p->streams[i].stored_ns = ns;
	}
	return 0;
}

/* Asks for `selection`, where %s is the name of the job as a literal. */
static int ask(struct pull *p, const char *columns, const char *view, const char *rest,
	       hr_ch_row *row, char **ret_error)
{
	char *sql = NULL;
	size_t bytes;
	FILE *to = open_memstream(&sql, &bytes);
	int r;

	if (!to)
		return -ENOMEM;
	fprintf(to, "%s FROM `%s`.%s WHERE job = ", columns, p->target.database, view);
	hr_ch_put_name(to, p->job);
	fputs(rest, to);
	r = fclose(to) == 0 ? hr_ch_ask(p->client, 0, sql, row, p, ret_error) : -ENOMEM;
	free(sql);
	return r;
}

static int list_streams(struct pull *p, char **ret_error)
{
	int r = ask(
	    p,
	    "stream, toUInt64(any(attempt)), any(instance), toUInt64(max(ifNull(uid, -1)) + 1), "
	    "any(cluster), any(node), any(boot_id), any(peer)",
	    "generations", " GROUP BY stream", take_stream, ret_error);

	if (r == 0)
		r = ask(p, "stream, max(seq), toUInt64(max(stored_ns))", "frames",
			" GROUP BY stream", take_last, ret_error);
	return r;
}

/* ---- frames ---- */

static int take_frame(void *self, struct hr_ch_answer *a)
{
	struct pull *p = self;
	uint64_t seq = hr_ch_take_u64(a), mark = hr_writer_mark(p->writer);
	size_t n;
	const char *frame = hr_ch_take_text(a, &n);
	int r = 0;

	if (a->failed)
		return 0;
	if (seq > mark + 1)
		r = hr_writer_skip(p->writer, seq - 1);
	if (r == 0)
		r = hr_writer_append(p->writer, (const uint8_t *)frame, n);
	p->frames += r == 0;
	return r == -EALREADY ? 0 : r;
}

/* For a query, a stream without an end runs as long as frames arrived lately. */
static int write_state(const struct hr_writer *w, const struct pulled_stream *s)
{
	struct hr_stream_state state = {.uid_known = s->uid_plus1 > 0,
					.uid = (uint32_t)(s->uid_plus1 - 1),
					.connected = true,
					.heard_ns = s->stored_ns};

	snprintf(state.peer, sizeof(state.peer), "%s", s->peer);
	return hr_stream_state_write(hr_writer_dir_fd(w), &state, false);
}

static int pull_stream(struct pull *p, const struct pulled_stream *s, char **ret_error)
{
	const struct hr_stream_id id = {.cluster = s->cluster,
					.job = p->job,
					.attempt = (uint32_t)s->attempt,
					.node = s->node,
					.boot_id = s->boot_id,
					.instance = s->instance};
	char rest[128];
	int r = hr_writer_open(p->store, &id, &p->writer, NULL);

	if (r < 0)
		return r;
	for (uint64_t seq = 0, end; r == 0 && seq <= s->last_seq; seq = end) {
		end = seq + PAGE_FRAMES;
		snprintf(rest, sizeof(rest),
			 " AND stream = %llu AND seq >= %llu AND seq < %llu ORDER BY seq",
			 (unsigned long long)s->stream, (unsigned long long)seq,
			 (unsigned long long)end);
		r = ask(p, "seq, frame", "frames", rest, take_frame, ret_error);
	}
	if (r == 0)
		r = write_state(p->writer, s);
	if (r == 0)
		r = hr_writer_close(p->writer);
	else
		hr_writer_abandon(p->writer);
	return r;
}

static int pull_job(struct pull *p, char **ret_error)
{
	int r = hr__query_client(&p->target, &pull_stopped, &p->client, ret_error);

	if (r == 0)
		r = list_streams(p, ret_error);
	if (r == 0 && p->n == 0)
		return hr_text_fail(-ESRCH, ret_error,
				    "%s has no job %s" HR_HINT
				    "headrace query %s... jobs lists the jobs",
				    p->target.database, p->job, "clickhouse://");
	for (size_t i = 0; r == 0 && i < p->n; i++)
		r = pull_stream(p, &p->streams[i], ret_error);
	return r;
}

static void pull_done(struct pull *p)
{
	for (size_t i = 0; i < p->n; i++)
		stream_done(&p->streams[i]);
	free(p->streams);
	hr_ch_client_free(p->client);
	hr_ch_target_done(&p->target);
}

/* Makes the folder of the store, and copies. Signals end it, so that the folder is removed. */
static int pull_into_folder(struct pull *p, char **ret_error)
{
	struct sigaction stop = {.sa_handler = stop_pull}, old_int, old_term;
	int r;

	p->store = hr_temporary_folder("job");
	if (!p->store)
		return hr_text_fail(
		    -errno, ret_error,
		    "cannot create a folder for the data of the job in %s: %s" HR_HINT
		    "set TMPDIR to a folder that you can write to",
		    hr_temporary(), strerrordesc_np(errno));
	sigaction(SIGINT, &stop, &old_int);
	sigaction(SIGTERM, &stop, &old_term);
	r = pull_job(p, ret_error);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	return r;
}

int hr_query_pull(const char *address, const char *job, char **ret)
{
	struct pull p = {.job = job};
	char *error = NULL;
	int r = hr_ch_target_parse(address, &p.target, &error);
	int status = r < 0 ? HR_EXIT_USAGE : HR_ASK_ANSWERED;

	if (r == 0) {
		r = pull_into_folder(&p, &error);
		if (r == -ESRCH)
			status = HR_ASK_NO_STORE;
		else if (r < 0)
			status = r == -ECANCELED ? HR_ASK_INTERRUPTED : HR_ASK_FAILED;
	}
	if (r == -ENOSPC || (r < 0 && !error))
		hr_report("cannot copy job %s to %s: %s", job, p.store ? p.store : hr_temporary(),
			  strerrordesc_np(-r));
	else if (r < 0)
		hr_report("%s", error);
	if (r < 0 && p.store)
		hr_remove_tree(p.store);
	if (r < 0)
		free(p.store);
	else
		*ret = p.store;
	free(error);
	pull_done(&p);
	return status;
}
