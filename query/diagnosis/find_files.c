/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a job, for findings. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "query/diagnosis/findings_internal.h"

/* The folder of a finding has this share of the time of all files. */
#define MOST 0.9

static bool is_of(const struct hr_training_job *j, const struct hr_item *item)
{
	return item->file != 0 && hr__same_job(j->d->q, item->stream, j->stream);
}

void hr__job_files(const struct hr_training_job *j, struct hr_job_files *ret)
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

static const char *text(struct hr_training_job *j, duckdb_string_t s, size_t n)
{
	return hr__finding_text(j, "%.*s", (int)n, hr__string_text(&s));
}

static int info_of(const struct hr_training_job *j, const struct hr_item *item,
		   struct hr_file_info *ret)
{
	return hr_stream_file(j->d->q->streams[item->stream].s, item->file, true, ret);
}

/* Escaped. */
static const char *path_text(struct hr_training_job *j, const uint8_t *path, size_t bytes)
{
	duckdb_string_t s = hr__string_of(&j->d->q->pool, path, bytes);

	return text(j, s, s.value.inlined.length);
}

const char *hr__item_path(struct hr_training_job *j, const struct hr_item *item)
{
	struct hr_file_info info;

	if (item == NULL || info_of(j, item, &info) < 0)
		return "";
	return path_text(j, info.path, info.path_bytes);
}

/* The length of the folder that two paths have in common, with its slash. */
static size_t common_folder(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
	size_t folder = 0;

	for (size_t i = 0; i < a_bytes && i < b_bytes && a[i] == b[i]; i++)
		if (a[i] == '/')
			folder = i + 1;
	return folder;
}

static uint64_t time_of(const struct hr_item *item, bool own)
{
	return own ? item->own_ns : item->waited_ns;
}

const char *hr__files_folder(struct hr_training_job *j, const struct hr_item *most, bool own)
{
	const struct hr_items *items = &j->d->scan.items;
	uint64_t *ns, all = 0,
		      below = 0; /* ns: by the length of the folder in common with `most` */
	uint8_t path[PATH_MAX];
	struct hr_file_info info;
	size_t bytes;

	if (most == NULL || info_of(j, most, &info) < 0 || info.path_bytes > sizeof(path))
		return "";
	bytes = info.path_bytes;
	memcpy(path, info.path, bytes); /* valid until the next one is read */
	ns = calloc(bytes + 1, sizeof(*ns));
	if (ns == NULL) {
		j->error = -ENOMEM;
		return "";
	}
	for (size_t i = 0; i < items->room; i++) {
		const struct hr_item *item = &items->list[i];

		if (!is_of(j, item) || time_of(item, own) == 0)
			continue;
		all += time_of(item, own);
		if (info_of(j, item, &info) == 0)
			ns[common_folder(path, bytes, info.path, info.path_bytes)] +=
			    time_of(item, own);
	}
	while (bytes > 0 && (double)(below + ns[bytes]) < MOST * (double)all)
		below += ns[bytes--];
	free(ns);
	return path_text(j, path, bytes);
}

const char *hr__item_mount(struct hr_training_job *j, const struct hr_item *item)
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
