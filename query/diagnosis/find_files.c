/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "query/diagnosis/findings_internal.h"

/*
 * The folder that a finding names has at least this share of the waits (or bytes) of all files.
 * Chosen, not measured: a few files elsewhere do not hide the folder of the others.
 */
#define MOST 0.9
/* With more files, only the name of every n-th file is read, because each name takes 1 us. */
#define FOLDER_FILES 100000u

/* Whether the file is shared memory, in which workers pass batches to the training process. */
static bool is_in_memory(const struct hr_training_job *j, const struct hr_item *item)
{
	const struct hr_qmount *m = hr__item_mounted(j->d, item);

	return m != NULL && hr__text_is(&m->fs_type, "tmpfs", 5);
}

static void add_item(const struct hr_training_job *j, struct hr_job_files *to,
		     const struct hr_item *item)
{
	uint64_t operations = item->reads - item->empty_reads + item->opens + item->examined;

	to->files += item->reads + item->opens + item->examined > 0;
	to->read_files += item->bytes > 0;
	to->operations += operations;
	to->data_reads += item->reads - item->empty_reads;
	to->opens += item->opens;
	to->examined += item->examined;
	to->bytes += item->bytes;
	to->sized_files += item->extent > 0;
	to->sized_bytes += item->extent > 0 ? item->bytes : 0;
	to->extent += item->extent;
	to->read_s += (double)item->read_ns / 1e9;
	to->metadata_s += (double)item->metadata_ns / 1e9;
	to->waited_s += (double)item->waited_ns / 1e9;
	to->syncs += (double)item->own_syncs;
	if (to->slowest == NULL || item->waited_ns > to->slowest->waited_ns)
		to->slowest = item;
	if (to->most_read == NULL || item->bytes > to->most_read->bytes)
		to->most_read = item;
	if (to->own == NULL || item->own_ns > to->own->own_ns)
		to->own = item;
	if (to->synced == NULL || item->own_sync_ns > to->synced->own_sync_ns)
		to->synced = item;
	if (item->mapped_bytes > (to->mapped != NULL ? to->mapped->mapped_bytes : 0) &&
	    !is_in_memory(j, item))
		to->mapped = item;
}

/* Returns the entry of a mount, and adds the entry if there is none. NULL: the array is full. */
static struct hr_job_mount *mount_of(struct hr_job_files *files, const char *path)
{
	for (size_t i = 0; i < files->n_mounts; i++)
		if (strcmp(files->mounts[i].path, path) == 0)
			return &files->mounts[i];
	if (files->n_mounts == sizeof(files->mounts) / sizeof(files->mounts[0]))
		return NULL;
	files->mounts[files->n_mounts].path = path;
	return &files->mounts[files->n_mounts++];
}

static void add_to_mount(struct hr_job_mount *m, const struct hr_item *item)
{
	m->files += item->reads + item->opens + item->examined > 0;
	m->read_files += item->bytes > 0;
	m->operations += item->reads - item->empty_reads + item->opens + item->examined;
	m->read_s += (double)item->read_ns / 1e9;
	m->metadata_s += (double)item->metadata_ns / 1e9;
	m->waited_s += (double)item->waited_ns / 1e9;
}

/* The last mount that was looked up. The next file is often on the same mount. */
struct last_mount {
	uint32_t stream, mount;
	struct hr_job_mount *to;
};

static void add_mount(struct hr_training_job *j, const struct hr_item *item,
		      struct last_mount *last, struct hr_job_files *to)
{
	struct hr_file_info info;

	if (item->reads + item->opens + item->examined == 0 ||
	    hr_stream_file(j->d->q->streams[item->stream].s, item->file, false, &info) < 0)
		return;
	if (last->to == NULL || last->stream != item->stream || last->mount != info.mount)
		*last = (struct last_mount){item->stream, info.mount,
					    mount_of(to, hr__item_mount(j, item))};
	if (last->to != NULL)
		add_to_mount(last->to, item);
}

void hr__job_files(struct hr_training_job *j, struct hr_job_files *ret)
{
	const struct hr_item *items = j->d->items;
	struct last_mount last = {0};

	*ret = (struct hr_job_files){0};
	for (size_t i = j->first_item; i < j->end_item; i++) {
		add_item(j, ret, &items[i]);
		add_mount(j, &items[i], &last, ret);
	}
	for (size_t i = 0; i < ret->n_mounts; i++)
		if (ret->slowest_mount == NULL ||
		    ret->mounts[i].waited_s > ret->slowest_mount->waited_s)
			ret->slowest_mount = &ret->mounts[i];
}

/*
 * Adds the I/O of a loop's batches to *io, and the part of this I/O for which the loop waited to
 * *wait. Returns the number of batches.
 */
static size_t add_pass(const struct hr_diagnosis *d, const struct hr_loop *l, double *io,
		       double *wait)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		double waited = (double)(l->waits[i].to - l->waits[i].cost_from), ns;

		if (l->waits[i].fetch == HR_NO_FETCH)
			continue;
		ns = d->spent[l->waits[i].fetch].io;
		*io += ns / 1e9;
		*wait += (waited < ns ? waited : ns) / 1e9;
		n++;
	}
	return n;
}

void hr__job_passes(const struct hr_training_job *j, struct hr_passes *ret)
{
	const struct hr_diagnosis *d = j->d;
	size_t first = 0, later = 0, firsts = 0;

	*ret = (struct hr_passes){0};
	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &d->lives.list[i];

		if (!hr__job_has(j, i))
			continue;
		for (size_t k = 0; k < life->n_loops; k++) {
			const struct hr_loop *l = &life->loops[k];

			if (!l->trains)
				continue;
			if (hr__loop_is_first(life, l)) {
				first += add_pass(d, l, &ret->first_io, &ret->first_wait);
				firsts++;
			} else {
				later += add_pass(d, l, &ret->later_io, &ret->later_wait);
				ret->later++;
			}
		}
	}
	ret->first_io /= first > 0 ? (double)first : 1;
	ret->later_io /= later > 0 ? (double)later : 1;
	ret->first_wait /= firsts > 0 ? (double)firsts : 1;
	ret->later_wait /= ret->later > 0 ? (double)ret->later : 1;
}

static const char *text(struct hr_training_job *j, duckdb_string_t s, size_t n)
{
	return hr__finding_text(j, "%.*s", (int)n, hr_string_text(&s));
}

static int info_of(const struct hr_training_job *j, const struct hr_item *item,
		   struct hr_file_info *ret)
{
	return hr_stream_file(j->d->q->streams[item->stream].s, item->file, true, ret);
}

const char *hr__path_text(struct hr_training_job *j, const uint8_t *path, size_t bytes)
{
	duckdb_string_t s = hr_string_of(&j->d->q->pool, path, bytes);

	return text(j, s, s.value.inlined.length);
}

const char *hr__item_path(struct hr_training_job *j, const struct hr_item *item)
{
	struct hr_file_info info;

	if (item == NULL || info_of(j, item, &info) < 0)
		return "";
	return hr__path_text(j, info.path, info.path_bytes);
}

/* Returns the length of the longest folder that contains both paths, including its final slash. */
static size_t common_folder(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
	size_t folder = 0;

	for (size_t i = 0; i < a_bytes && i < b_bytes && a[i] == b[i]; i++)
		if (a[i] == '/')
			folder = i + 1;
	return folder;
}

static uint64_t amount_of(const struct hr_item *item, enum hr_item_amount which)
{
	switch (which) {
	case HR_ITEM_OWN:
		return item->own_ns;
	case HR_ITEM_MAPPED:
		return item->mapped_bytes;
	default:
		return item->waited_ns;
	}
}

const char *hr__files_folder(struct hr_training_job *j, const struct hr_item *most,
			     enum hr_item_amount which)
{
	/* part[n]: the sum for all files whose longest folder in common with `most` has n bytes */
	uint64_t *part, all = 0, below = 0;
	uint8_t path[PATH_MAX];
	struct hr_file_info info;
	size_t bytes, n = 0, step = 1;

	if (most == NULL || info_of(j, most, &info) < 0 || info.path_bytes > sizeof(path))
		return "";
	if (which != HR_ITEM_MAPPED) /* all files are read, because few are mapped */
		step += (j->end_item - j->first_item) / FOLDER_FILES;
	bytes = info.path_bytes;
	memcpy(path, info.path, bytes); /* the next call of info_of() overwrites info.path */
	part = calloc(bytes + 1, sizeof(*part));
	if (part == NULL) {
		j->error = -ENOMEM;
		return "";
	}
	for (size_t i = j->first_item; i < j->end_item; i += step) {
		const struct hr_item *item = &j->d->items[i];

		if (amount_of(item, which) == 0 ||
		    (which == HR_ITEM_MAPPED && is_in_memory(j, item)))
			continue;
		all += amount_of(item, which);
		n++;
		if (info_of(j, item, &info) == 0)
			part[common_folder(path, bytes, info.path, info.path_bytes)] +=
			    amount_of(item, which);
	}
	/*
	 * Names a folder even if the threads waited for only one of its files, because they may
	 * wait for other files later. A file is named only if it is the only mapped file.
	 */
	while ((n > 1 || which != HR_ITEM_MAPPED) && bytes > 0 &&
	       (double)(below + part[bytes]) < MOST * (double)all)
		below += part[bytes--];
	free(part);
	return hr__path_text(j, path, bytes);
}

const char *hr__item_mount(struct hr_training_job *j, const struct hr_item *item)
{
	const struct hr_qmount *m = item != NULL ? hr__item_mounted(j->d, item) : NULL;

	return m != NULL ? text(j, m->path, m->path.value.inlined.length) : "";
}

void hr__finding_place(struct hr_training_job *j, struct hr_finding *f, const struct hr_item *most,
		       enum hr_item_amount which)
{
	f->object = hr__files_folder(j, most, which);
	f->mount = hr__item_mount(j, most);
}
