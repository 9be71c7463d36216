/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an export, and the modules of the log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "export/darshan/darshan_internal.h"
#include "export/seekable.h"

/* ---- ranks and times ---- */

/* Counts the distinct ranks of the selected processes, and those without a rank. */
static int count_ranks(struct hr__darshan *d)
{
	const struct hr_walk *w = d->x->walk;
	struct hr_map64 seen = {0};
	bool ranked = false;
	int r = 0;

	for (size_t i = 0; i < w->n_streams; i++) {
		if (w->streams[i].s->added_to != NULL) /* only regions */
			continue;
		for (uint32_t k = 0; k < w->streams[i].s->n_processes && r == 0; k++) {
			const struct hr_walk_process *p = &w->streams[i].processes[k];
			int64_t world = p->p->msg->world_size;

			ranked = ranked || p->p->rank >= 0;
			world = p->p->rank >= world ? p->p->rank + INT64_C(1) : world;
			d->n_ranks = world > d->n_ranks ? world : d->n_ranks;
			if (p->number != 0 && p->p->rank < 0)
				d->n_unranked++;
			else if (p->number != 0)
				r = hr_map64_set(&seen, (uint64_t)p->p->rank, 0);
		}
	}
	d->n_recorded_ranks = seen.used;
	if (!ranked) {
		d->n_ranks = d->n_recorded_ranks = 1;
		d->n_unranked = 0;
	}
	hr_map64_done(&seen);
	return r;
}

/*
 * Finds the start and the end of the log. Times of operations are not negative: the job starts with
 * its first process, at the latest.
 */
static void find_times(struct hr__darshan *d)
{
	const struct hr_walk *w = d->x->walk;
	int64_t end_ns;

	d->x->total = 0; /* its unit is a batch of events */
	d->start_ns = d->x->start_ns;
	end_ns = d->x->end_ns;
	for (size_t i = 0; i < w->n_streams; i++) {
		const struct hr_stream *s = w->streams[i].s;

		d->x->total += 2 * (uint64_t)s->n_batches;
		for (uint32_t k = 0; k < s->n_processes; k++) {
			uint64_t start_ns = s->processes[k].msg->start_ns;

			if (start_ns != 0 && hr_stream_real_ns(s, start_ns) < d->start_ns)
				d->start_ns = hr_stream_real_ns(s, start_ns);
		}
		for (uint32_t k = 0; k < s->n_batches; k++)
			if (hr_stream_real_ns(s, s->batches[k].last_ns) > end_ns)
				end_ns = hr_stream_real_ns(s, s->batches[k].last_ns);
	}
	if (__builtin_sub_overflow(end_ns, d->start_ns, &d->end_ns) || d->end_ns < 0)
		d->end_ns = 0;
}

static void set_limits(struct hr__darshan *d)
{
	const struct hr_export_options *o = d->x->options;

	d->whole = o->from_ns == INT64_MIN && o->to_ns == INT64_MAX && o->first_step < 0;
	if (o->max_bytes == UINT64_MAX)
		d->dxt.limit = HR__DARSHAN_SEGMENTS_MAX;
	else if (o->max_bytes == 0)
		d->dxt.limit = UINT64_MAX;
	else
		d->dxt.limit = o->max_bytes / sizeof(struct hr_darshan_segment);
}

/* ---- regions ---- */

/* PyDarshan requires UTF-8: another name is escaped as in SQL. The id is that of the bytes. */
static int name_write(struct hr__darshan *d, uint64_t id, const void *name, size_t bytes)
{
	int r = hr_darshan_put(&d->log, &id, sizeof(id));
	char *escaped = NULL;

	if (!hr_text_is_utf8(name, bytes)) {
		escaped = hr_text_escaped(name, bytes);
		if (escaped == NULL)
			return -ENOMEM;
		bytes = strlen(escaped);
	}
	if (r == 0)
		r = hr_darshan_put(&d->log, escaped != NULL ? escaped : name, bytes);
	free(escaped);
	return r == 0 ? hr_darshan_put(&d->log, "", 1) : r;
}

static int names_write(struct hr__darshan *d)
{
	int r = 0;

	hr_darshan_region_start(&d->log);
	for (size_t i = 0; i < d->n_names && r == 0; i++) {
		const struct hr__darshan_name *n = &d->names[i];

		if (n->used)
			r = name_write(d, n->id, n->path, n->bytes);
	}
	for (size_t i = 0; i < HR__DARSHAN_GROUPS && r == 0; i++) {
		const char *name = hr__darshan_heat_names[i];

		r = name_write(d, hr_darshan_id(name, strlen(name)), name, strlen(name));
	}
	return r == 0 ? hr_darshan_region_end(&d->log, &d->log.header.names) : r;
}

static int by_file(const void *a, const void *b)
{
	const struct hr__darshan_use *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Returns the number of records from `from` on that belong to the same file. */
static size_t file_records(const struct hr__darshan *d, size_t from)
{
	size_t n = 1;

	while (from + n < d->n_uses && d->uses[from + n].name == d->uses[from].name)
		n++;
	return n;
}

/* Whether all ranks have used the file, so that it gets one record for all of them. */
static bool is_shared(const struct hr__darshan *d, size_t n)
{
	return n > 1 && (int64_t)n == d->n_ranks && d->n_recorded_ranks == d->n_ranks;
}

/* Returns the record of a module; NULL: none. */
static void *record_of(const struct hr__darshan_use *u, enum hr_darshan_module module)
{
	if (module == HR_DARSHAN_POSIX)
		return u->posix != NULL ? &u->posix->log : NULL;
	return u->stdio != NULL ? &u->stdio->log : NULL;
}

/* Writes the POSIX or STDIO records of a file, whose ranks are in uses[0..n). */
static int records_write(struct hr__darshan *d, enum hr_darshan_module module,
			 const struct hr__darshan_use *uses, size_t n, void **list)
{
	bool posix = module == HR_DARSHAN_POSIX;
	size_t bytes = posix ? sizeof(struct hr_darshan_posix) : sizeof(struct hr_darshan_stdio);
	union {
		struct hr_darshan_posix posix;
		struct hr_darshan_stdio stdio;
	} shared;
	size_t used = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (record_of(&uses[i], module) != NULL)
			list[used++] = record_of(&uses[i], module);
	if (is_shared(d, used)) {
		if (posix)
			hr__darshan_posix_reduce(list, used, &shared.posix);
		else
			hr__darshan_stdio_reduce(list, used, &shared.stdio);
		return hr_darshan_put(&d->log, &shared, bytes);
	}
	for (size_t i = 0; i < used && r == 0; i++)
		r = hr_darshan_put(&d->log, list[i], bytes);
	return r;
}

static int dxt_write(struct hr__darshan *d, const struct hr__darshan_use *uses, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (uses[i].posix != NULL)
			r = hr__darshan_dxt_write(d, &uses[i]);
	return r;
}

static int module_write(struct hr__darshan *d, enum hr_darshan_module module,
			enum hr_darshan_version version)
{
	void **list = calloc(d->n_uses + 1, sizeof(*list));
	int r = 0;

	if (list == NULL)
		return -ENOMEM;
	hr_darshan_region_start(&d->log);
	for (size_t i = 0, n; i < d->n_uses && r == 0; i += n) {
		n = file_records(d, i);
		r = module == HR_DARSHAN_DXT_POSIX ? dxt_write(d, &d->uses[i], n)
						   : records_write(d, module, &d->uses[i], n, list);
		if (r == 0 && i % 4096 == 0)
			r = hr_export_advance(d->x, 0);
	}
	free(list);
	return r == 0 ? hr_darshan_module_end(&d->log, module, version) : r;
}

static bool has_records(const struct hr__darshan *d, enum hr_darshan_module module)
{
	if (module == HR_DARSHAN_DXT_POSIX)
		return d->dxt.total > 0;
	for (size_t i = 0; i < d->n_uses; i++)
		if (record_of(&d->uses[i], module) != NULL)
			return true;
	return false;
}

static int log_write(struct hr__darshan *d, int fd)
{
	static const struct {
		enum hr_darshan_module module;
		enum hr_darshan_version version;
	} modules[] = {
	    {HR_DARSHAN_POSIX, HR_DARSHAN_POSIX_VERSION},
	    {HR_DARSHAN_STDIO, HR_DARSHAN_STDIO_VERSION},
	    {HR_DARSHAN_DXT_POSIX, HR_DARSHAN_DXT_VERSION},
	};
	int r;

	hr_darshan_begin(&d->log, fd);
	if (d->n_uses > 1)
		qsort(d->uses, d->n_uses, sizeof(*d->uses), by_file);
	r = hr__darshan_job_write(d);
	if (r == 0)
		r = names_write(d);
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]) && r == 0; i++)
		if (has_records(d, modules[i].module))
			r = module_write(d, modules[i].module, modules[i].version);
	if (r == 0)
		r = hr__darshan_heat_write(d);
	if (d->without_offset > 0)
		d->partial |= UINT64_C(1) << HR_DARSHAN_DXT_POSIX;
	d->log.header.partial = d->partial;
	return r == 0 ? hr_darshan_finish(&d->log) : r;
}

/* ---- the export ---- */

static void report_missing(const struct hr__darshan *d)
{
	const struct hr_sink *messages = hr_asking_messages(d->x->asking);
	char has[160];

	if (d->without_offset > 0)
		hr_sink_line(messages,
			     "note: the log has no DXT segments of the reads and writes with an "
			     "unknown offset: %s",
			     hr_text_count(d->without_offset).s);
	if (d->left_out == 0)
		return;
	if (d->dxt.total == 0)
		snprintf(has, sizeof(has), "has none of the %s DXT segments",
			 hr_text_count(d->left_out).s);
	else
		snprintf(has, sizeof(has),
			 "has DXT segments of the first %s only, and lacks %s segments",
			 hr_text_duration((uint64_t)d->dxt.cut_ns).s, hr_text_count(d->left_out).s);
	hr_sink_line(messages,
		     "note: the log %s: export a part of the job with --from, --to-time or --step, "
		     "or more with --max-size",
		     has);
}

/* Writes the segments to a temporary file, with one or two more passes over the events. */
static int collect_segments(struct hr__darshan *d)
{
	int r = 0;

	if (d->dxt.total > d->dxt.limit) {
		hr__darshan_dxt_cut(d);
		d->pass = HR__DARSHAN_CUT;
		d->x->total += d->x->done; /* one pass more */
		r = hr__darshan_events(d);
	}
	if (r < 0 || d->dxt.total == 0)
		return r;
	r = hr__darshan_dxt_place(d);
	d->pass = HR__DARSHAN_PLACE;
	return r < 0 ? r : hr__darshan_events(d);
}

static int job_export(struct hr__darshan *d, int fd)
{
	int r = count_ranks(d);

	if (r < 0)
		return r;
	find_times(d);
	set_limits(d);
	r = hr__darshan_files_init(d);
	if (r == 0)
		r = hr__darshan_events(d);
	if (r == 0)
		r = hr__darshan_totals(d);
	if (r == 0 && d->whole)
		r = hr__darshan_rollups(d);
	if (r == 0)
		hr__darshan_complete(d);
	if (r == 0)
		r = collect_segments(d);
	if (r == 0)
		r = log_write(d, fd);
	if (r == 0)
		report_missing(d);
	return r;
}

/* The header contains offsets, so it is written last. A pipe needs it first. */
int hr_darshan_export(struct hr_export *x, FILE *to)
{
	struct hr__darshan *d = calloc(1, sizeof(*d));
	struct hr_seekable file;
	int r = d != NULL ? hr_seekable_open(x, to, &file) : -ENOMEM;

	if (r == 0) {
		hr_seekable_hide(&file);
		d->x = x;
		r = job_export(d, file.fd);
		hr__darshan_heat_done(d);
		hr__darshan_dxt_done(d);
		hr__darshan_files_done(d);
		r = hr_seekable_close(&file, r);
	}
	free(d);
	return r;
}
