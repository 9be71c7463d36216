/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a job, for findings. */
#include <stdlib.h>

#include "query/diagnosis/findings_internal.h"

static bool is_of(const struct hr_job *j, const struct hr_item *item)
{
	const struct hr_stream *a = j->d->q->streams[j->stream].s;
	const struct hr_stream *b;

	if (item->file == 0)
		return false;
	b = j->d->q->streams[item->stream].s;
	return a->attempt == b->attempt && strcmp(a->job, b->job) == 0 &&
	       strcmp(a->cluster, b->cluster) == 0;
}

void hr__job_files(const struct hr_job *j, struct hr_job_files *ret)
{
	const struct hr_items *items = &j->d->scan.items;

	*ret = (struct hr_job_files){0};
	for (size_t i = 0; i < items->room; i++) {
		const struct hr_item *item = &items->list[i];

		if (!is_of(j, item))
			continue;
		ret->files += item->reads + item->opens > 0;
		ret->reads += item->reads;
		ret->data_reads += item->reads - item->empty_reads;
		ret->bytes += item->bytes;
		ret->opens += item->opens;
		ret->read_s += (double)item->read_ns / 1e9;
		ret->metadata_s += (double)item->metadata_ns / 1e9;
		ret->waited_s += (double)item->waited_ns / 1e9;
		ret->own_s += (double)item->own_ns / 1e9;
		if (ret->slowest == NULL || item->waited_ns > ret->slowest->waited_ns)
			ret->slowest = item;
		if (ret->own == NULL || item->own_ns > ret->own->own_ns)
			ret->own = item;
		if (ret->synced == NULL || item->own_sync_ns > ret->synced->own_sync_ns)
			ret->synced = item;
	}
}

static const char *text(struct hr_job *j, duckdb_string_t s, size_t n)
{
	return hr__finding_text(j, "%.*s", (int)n, hr__string_text(&s));
}

/* The escaped path; without `file`, up to its last slash. */
static const char *path_of(struct hr_job *j, const struct hr_item *item, bool file)
{
	struct hr_file_info info;
	duckdb_string_t s;
	size_t n;

	if (item == NULL ||
	    hr_stream_file(j->d->q->streams[item->stream].s, item->file, true, &info) < 0)
		return "";
	for (n = info.path_bytes; !file && n > 1 && info.path[n - 1] != '/';)
		n--;
	s = hr__string_of(&j->d->q->pool, info.path, n);
	return text(j, s, s.value.inlined.length);
}

const char *hr__item_path(struct hr_job *j, const struct hr_item *item)
{
	return path_of(j, item, true);
}

const char *hr__item_folder(struct hr_job *j, const struct hr_item *item)
{
	return path_of(j, item, false);
}

const char *hr__item_mount(struct hr_job *j, const struct hr_item *item)
{
	const struct hr_qstream *st;
	struct hr_file_info info;

	if (item == NULL)
		return "";
	st = &j->d->q->streams[item->stream];
	if (hr_stream_file(st->s, item->file, false, &info) < 0 || info.mount >= st->s->n_mounts ||
	    !st->mount_known[info.mount])
		return "";
	return text(j, st->mounts[info.mount].path,
		    st->mounts[info.mount].path.value.inlined.length);
}
