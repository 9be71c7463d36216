/* SPDX-License-Identifier: Apache-2.0 */
#include "store/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"
#include "common/fnv.h"
#include "common/text.h"

/* ---- folders --------------------------------------------------------------------------------- */

struct opening {
	struct hr_catalog *catalog;
	const char *store;
	const struct hr_catalog_filter *filter;
	const char *job; /* encoded name of the only job to open; NULL: all jobs */
	const char *job_folder;
	struct hr__stream_folder folder;
};

/* A function that is called for each folder in the open folder `fd`, in the order of names. */
typedef int visit_folder(struct opening *o, int fd, const char *name);

/* Reports a symbolic link in the place of a folder, because that folder's streams are missing. */
static void report_link(const struct opening *o, const char *name)
{
	if (!o->filter->one_user)
		hr__problem(o->catalog,
			    "%s%s/%s is left out: it is a symbolic link, which headrace does not "
			    "follow in a store",
			    o->job_folder ? "jobs/" : "jobs", o->job_folder ? o->job_folder : "",
			    name);
}

static int one_folder(struct opening *o, int fd, const char *name, visit_folder *visit)
{
	int inner = hr_store_open_folder(fd, name), r = 0;

	if (inner == -ELOOP)
		report_link(o, name);
	if (inner < 0)
		return 0;
	r = visit(o, inner, name);
	close(inner);
	return r;
}

static int each_folder(struct opening *o, int fd, visit_folder *visit)
{
	struct hr__folder folder;
	int r = hr__folder_read(fd, &folder);

	if (r < 0)
		return r;
	for (size_t i = 0; i < folder.n && r == 0; i++)
		r = one_folder(o, fd, folder.names[i], visit);
	hr__folder_done(&folder);
	return r;
}

/* Whether both are the same stream. A damaged StreamStart contains neither boot nor cluster. */
static bool same_stream(const struct hr_stream *a, const Headrace__StreamStart *b)
{
	bool guess = a->boot_id[0] == '\0' || b->boot_id[0] == '\0';

	return a->attempt == b->attempt && a->instance == b->instance &&
	       strcmp(a->job, b->job) == 0 && strcmp(a->node, b->node) == 0 &&
	       (guess ||
		(strcmp(a->boot_id, b->boot_id) == 0 && strcmp(a->cluster, b->cluster) == 0));
}

/* Returns a key of the streams that can be the same one. */
static uint64_t stream_key(const char *job, const char *node, uint32_t attempt, uint64_t instance)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, job, strlen(job) + 1);

	hash = hr_fnv(hash, node, strlen(node) + 1);
	hash = hr_fnv(hash, &attempt, sizeof(attempt));
	return hr_fnv(hash, &instance, sizeof(instance));
}

static struct hr__stream *find_stream(const struct hr_catalog *c,
				      const Headrace__StreamStart *start)
{
	uint32_t i = hr_map64_get(
	    &c->by_key, stream_key(start->job, start->node, start->attempt, start->instance));
	struct hr__stream *s = i != HR_MAP64_NONE ? c->streams[i] : NULL;

	while (s && !same_stream(&s->view, start))
		s = s->next;
	return s;
}

/* Appends the last stream to those with its key: find_stream finds the first store's copy first. */
static int index_stream(struct hr_catalog *c)
{
	struct hr__stream *s = c->streams[c->n_streams - 1], **at;
	uint64_t key = stream_key(s->view.job, s->view.node, s->view.attempt, s->view.instance);
	uint32_t first = hr_map64_get(&c->by_key, key);

	if (first == HR_MAP64_NONE)
		return hr_map64_set(&c->by_key, key, (uint32_t)(c->n_streams - 1));
	for (at = &c->streams[first]->next; *at; at = &(*at)->next)
		;
	*at = s;
	return 0;
}

static int new_stream(const struct opening *o, const Headrace__StreamStart *start,
		      struct hr__stream **ret)
{
	struct hr_catalog *c = o->catalog;
	struct hr__stream *s;
	struct hr_stream *v;

	if (!hr_array_reserve(c->streams, c->n_streams, c->streams_room))
		return -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->files_lock, NULL);
	c->streams[c->n_streams++] = s;
	v = &s->view;
	v->own = s;
	v->attempt = start->attempt;
	v->instance = start->instance;
	s->added_to = start->added_to;
	v->store = hr_arena_text(&s->memory, o->store);
	v->cluster = hr_arena_text(&s->memory, start->cluster);
	v->job = hr_arena_text(&s->memory, start->job);
	v->node = hr_arena_text(&s->memory, start->node);
	v->boot_id = hr_arena_text(&s->memory, start->boot_id);
	*ret = s;
	if (!v->store || !v->cluster || !v->job || !v->node || !v->boot_id)
		return -ENOMEM;
	return index_stream(c);
}

static int complete_start(struct hr__stream *s, const Headrace__StreamStart *start)
{
	if (s->view.boot_id[0] != '\0' || start->boot_id[0] == '\0')
		return 0;
	s->view.cluster = hr_arena_text(&s->memory, start->cluster);
	s->view.boot_id = hr_arena_text(&s->memory, start->boot_id);
	return s->view.cluster && s->view.boot_id ? 0 : -ENOMEM;
}

/* Returns NULL if the segment has no StreamStart yet, or a damaged one (*damaged). */
static Headrace__Frame *read_start(struct hr__stream_folder *f, const char *name, bool *damaged)
{
	const uint64_t at = sizeof(struct hr_segment_hdr);
	uint8_t header[HR_FRAME_HDR_BYTES];
	Headrace__Frame *msg = NULL;
	struct hr_source source;
	size_t bytes;

	if (hr__stream_folder_segment(f, name, &source) < 0)
		return NULL;
	if (hr__source_read(&source, at, header, sizeof(header)) == 0 &&
	    hr_frame_check(header, sizeof(header), &bytes) == -EAGAIN)
		(void)hr__source_frame(&source, at, (uint32_t)bytes, NULL, &msg);
	*damaged |= source.bytes > at + sizeof(header);
	if (msg && msg->body_case != HEADRACE__FRAME__BODY_STREAM_START) {
		headrace__frame__free_unpacked(msg, NULL);
		msg = NULL;
	}
	return msg;
}

/*
 * Identifies the stream of a folder by the StreamStart of any of its segments. The caller frees
 * *ret_msg. If no StreamStart is readable, *ret_msg is NULL, and *ret_guess contains `job` and
 * `node` from the folder's name.
 */
static int catalog_identify(struct opening *o, const char *name, Headrace__Frame **ret_msg,
			    Headrace__StreamStart *ret_guess, char job[HR__NAME_BYTES],
			    char node[HR__NAME_BYTES])
{
	const struct hr__folder *names = &o->folder.names;
	bool damaged = false, segments = false;
	char *dot, *end;

	*ret_msg = NULL;
	headrace__stream_start__init(ret_guess);
	for (size_t i = 0; i < names->n && !*ret_msg; i++) {
		if (hr__segment_number(names->names[i]) == 0)
			continue;
		segments = true;
		*ret_msg = read_start(&o->folder, names->names[i], &damaged);
	}
	if (!segments)
		return -ENOENT;
	hr_name_decode(o->job_folder, job);
	hr_name_decode(name, node);
	dot = strrchr(node, '.');
	if (dot) {
		ret_guess->instance = strtoull(dot + 1, &end, 16);
		ret_guess->attempt = *end == '-' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
		*dot = '\0';
	}
	if (!*ret_msg && damaged)
		hr__problem(o->catalog,
			    "jobs/%s/%s: frame at %zu is damaged: job, node and attempt are taken "
			    "from the name of the folder; cluster and boot are unknown",
			    o->job_folder, name, sizeof(struct hr_segment_hdr));
	ret_guess->job = job;
	ret_guess->node = node;
	return 0;
}

/* Call this before the folder is read, so that problems of invisible folders are not reported. */
static bool visible(const struct opening *o, int fd)
{
	uint32_t uid;

	if (!o->filter->one_user)
		return true;
	return strcmp(o->job_folder, HR__NODE_JOB) != 0 && hr__folder_owner(fd, &uid) == 0 &&
	       uid == o->filter->uid;
}

/* Adds the stream of a folder without segments, if frames of the stream were removed. */
static int add_retired(struct hr_catalog *c, int fd, const char *job)
{
	struct hr_retired *last = c->n_retired > 0 ? &c->retired[c->n_retired - 1] : NULL;
	struct hr_stream_state state;

	if (hr_stream_state_read(fd, &state) < 0 || !state.retired)
		return 0;
	if (!last || strcmp(last->job, job) != 0) {
		if (!hr_array_reserve(c->retired, c->n_retired, c->retired_room))
			return -ENOMEM;
		last = &c->retired[c->n_retired];
		*last = (struct hr_retired){.job = strdup(job)};
		if (!last->job)
			return -ENOMEM;
		c->n_retired++;
	}
	last->streams++;
	if (state.heard_ns > last->heard_ns)
		last->heard_ns = state.heard_ns;
	if (state.retired_ns > last->retired_ns)
		last->retired_ns = state.retired_ns;
	return 0;
}

static int add_folder(struct opening *o, const char *name)
{
	struct hr_catalog *c = o->catalog;
	char job[HR__NAME_BYTES], node[HR__NAME_BYTES];
	Headrace__StreamStart guess;
	const Headrace__StreamStart *start = &guess;
	Headrace__Frame *msg;
	struct hr__stream *s = NULL;
	int r;

	r = catalog_identify(o, name, &msg, &guess, job, node);
	if (r == -ENOENT) {
		hr_name_decode(o->job_folder, job);
		return add_retired(c, o->folder.fd, job);
	}
	if (r < 0)
		return r;
	if (msg)
		start = msg->stream_start;
	s = find_stream(c, start);
	r = s ? complete_start(s, start) : new_stream(o, start, &s);
	headrace__frame__free_unpacked(msg, NULL);
	return r < 0 ? r : hr__stream_add_folder(c, s, &o->folder);
}

static int visit_stream(struct opening *o, int fd, const char *name)
{
	struct hr__stream_folder *f = &o->folder;
	char shown[2 * HR__NAME_BYTES + 8];
	int r;

	if (!visible(o, fd))
		return 0;
	snprintf(shown, sizeof(shown), "jobs/%s/%s", o->job_folder, name);
	f->fd = fd;
	f->store = o->store;
	f->name = shown;
	f->segment.fd = -1;
	f->locked = hr_stream_locked(fd);
	r = hr__folder_read(fd, &f->names);
	if (r < 0)
		return r;
	o->catalog->journals |= !f->locked && hr__folder_has(&f->names, HR__JOURNAL_FILE);
	r = add_folder(o, name);
	hr__stream_folder_close(f);
	hr__folder_done(&f->names);
	return r;
}

static int visit_job(struct opening *o, int fd, const char *name)
{
	int r;

	o->job_folder = name;
	r = each_folder(o, fd, visit_stream);
	o->job_folder = NULL;
	return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int catalog_explain(int error, const char *store, char **ret_error)
{
	const char *what = strerrordesc_np(-error);

	if (!ret_error)
		return error;
	if (error == -ENOENT)
		what = "no headrace store is there (headrace run -o creates one)";
	else if (error == -ENOTDIR)
		what = "not a headrace store: a store is a folder";
	else if (error == -ENOTEMPTY)
		what = "its file " HR__STORE_FILE " is damaged, or not of headrace: it must "
		       "contain the line \"headrace store 1\"";
	else if (error == -EPROTONOSUPPORT)
		what = "a newer headrace wrote it; read it with that version";
	else if (error == -ELOOP)
		what = HR__STORE_FILE " or jobs in it is a symbolic link, a FIFO or a device; "
				      "headrace does not open these in a store";
	else if (error == -EACCES)
		what = "permission denied: it belongs to another user (stores have mode 0700)";
	return hr_text_fail(error, ret_error, "%s: %s", store, what);
}

static int open_store(struct opening *o)
{
	int fd = open(o->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC), jobs, r;

	if (fd < 0)
		return -errno;
	r = hr_store_version(fd);
	if (r == -EAGAIN) /* another process is creating the store, which is still empty */
		r = 0;
	jobs = r < 0 ? r : hr_store_open_folder(fd, "jobs");
	if (jobs >= 0) {
		r = o->job ? one_folder(o, jobs, o->job, visit_job)
			   : each_folder(o, jobs, visit_job);
		close(jobs);
	} else if (r == 0 && jobs != -ENOENT) {
		r = jobs;
	}
	close(fd);
	return r;
}

int hr_catalog_open(const char *const *stores, size_t n, const struct hr_catalog_filter *filter,
		    struct hr_catalog **ret, char **ret_error)
{
	static const struct hr_catalog_filter all;
	struct hr_catalog *c = calloc(1, sizeof(*c));
	char encoded[HR__NAME_BYTES];
	int r = c ? 0 : -ENOMEM;

	filter = filter ? filter : &all;
	if (r == 0 && filter->job)
		r = hr_name_encode(filter->job, encoded);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct opening o = {.catalog = c,
				    .store = stores[i],
				    .filter = filter,
				    .job = filter->job ? encoded : NULL};

		r = open_store(&o);
		if (r < 0)
			catalog_explain(r, stores[i], ret_error);
	}
	if (r == 0) {
		r = hr__catalog_finish(c);
		if (r < 0)
			catalog_explain(r, stores[0], ret_error);
	}
	if (r < 0) {
		hr_catalog_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void hr_catalog_free(struct hr_catalog *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_streams; i++)
		hr__stream_free(c->streams[i]);
	for (size_t i = 0; i < c->n_problems; i++)
		free(c->problems[i].text);
	free(c->streams);
	hr_map64_done(&c->by_key);
	free(c->views);
	for (size_t i = 0; i < c->n_retired; i++)
		free(c->retired[i].job);
	free(c->retired);
	free(c->problems);
	hr_arena_free(&c->contents);
	free(c);
}

size_t hr_catalog_streams(const struct hr_catalog *c, const struct hr_stream **ret)
{
	*ret = c->views;
	return c->n_streams;
}

size_t hr_catalog_problems(const struct hr_catalog *c, const struct hr_problem **ret)
{
	*ret = c->problems;
	return c->n_problems;
}

bool hr_catalog_journals(const struct hr_catalog *c)
{
	return c->journals;
}

size_t hr_catalog_retired(const struct hr_catalog *c, const struct hr_retired **ret)
{
	*ret = c->retired;
	return c->n_retired;
}
