/* SPDX-License-Identifier: Apache-2.0 */
/* Settings whose effect depends on the files that the job read. */
#include <math.h>
#include <string.h>

#include "query/diagnosis/replay.h"

/* Sums of the operations in fetches of a job, on one mount or on all. */
struct storage_sums {
	double operations, reads, opens, bytes, extent, ns, read_ns;
};

static void add_item(struct storage_sums *to, const struct hr_item *item)
{
	double reads = (double)(item->reads - item->empty_reads);

	to->operations += reads + (double)(item->opens + item->examined);
	to->reads += reads;
	to->opens += (double)item->opens;
	to->bytes += (double)item->bytes;
	to->extent += (double)item->extent;
	to->ns += (double)(item->read_ns + item->metadata_ns);
	to->read_ns += (double)item->read_ns;
}

static bool is_on(const struct hr_diagnosis *d, const struct hr_item *item, const char *mount,
		  size_t bytes)
{
	const struct hr_qmount *m = hr__item_mounted(d, item);

	return m != NULL && hr__text_is(&m->path, mount, bytes);
}

/* Adds up the files on a mount; `mount` is NULL: all files. */
static struct storage_sums sum_up(const struct hr_diagnosis *d, uint32_t stream, const char *mount,
				  size_t mount_bytes)
{
	struct hr_job_streams job = hr__job_streams(d, stream);
	struct storage_sums sums = {0};

	for (size_t i = d->first[job.first].item; i < d->first[job.end].item; i++)
		if (mount == NULL || is_on(d, &d->items[i], mount, mount_bytes))
			add_item(&sums, &d->items[i]);
	return sums;
}

static void multiply(struct hr_multiple *m, double low, double high)
{
	m->low *= low;
	m->high *= high;
}

/*
 * Applies "A=B": the files of mount A are on mount B instead. One limit of the factor assumes that
 * an operation takes as long as one on B, the other that a byte takes as long as one on B. If B is
 * slower, operations that the kernel's caches serve also take longer.
 */
static enum hr_replay_refusal set_mount(const struct hr_diagnosis *d, uint32_t stream,
					const char *mounts, struct hr_setting *s)
{
	const char *to = strchr(mounts, '=');
	size_t bytes = (size_t)(to - mounts);
	struct storage_sums all = sum_up(d, stream, NULL, 0), a = sum_up(d, stream, mounts, bytes);
	struct storage_sums b = sum_up(d, stream, to + 1, strlen(to + 1));
	double share, by_operation, by_byte, low, high;

	if (a.operations == 0 || b.operations == 0)
		return HR_REPLAY_NO_MOUNT;
	share = all.ns > 0 ? a.ns / all.ns : 0;
	by_operation = (b.ns / b.operations) / fmax(1e-9, a.ns / a.operations);
	by_byte = b.bytes > 0 && a.bytes > 0 ? (b.ns / b.bytes) / fmax(1e-9, a.ns / a.bytes)
					     : by_operation;
	low = 1 - share + share * fmin(by_operation, by_byte);
	high = 1 - share + share * fmax(by_operation, by_byte);
	multiply(&s->io, low, high);
	if (high > 1)
		multiply(&s->cached, fmax(1, low), high);
	return HR_REPLAY_OK;
}

/*
 * Applies a cache of this size. After the first pass, reads of the data in the cache take no time.
 * Opens and examinations take as long as recorded, because the kernel may have cached what they
 * need already.
 */
static enum hr_replay_refusal set_cached(const struct hr_diagnosis *d,
					 const struct hr_train_life *life, double bytes,
					 struct hr_setting *s)
{
	struct storage_sums all = sum_up(d, life->stream, NULL, 0);
	double share = all.extent > 0 ? fmin(1, bytes / all.extent) : 1;
	double later = 1 - share * (all.ns > 0 ? all.read_ns / all.ns : 1);
	bool again = false;

	for (size_t i = 0; i < life->n_loops; i++)
		again |= life->loops[i].trains && !hr__loop_is_first(life, &life->loops[i]);
	if (!again)
		return HR_REPLAY_NO_PASS;
	multiply(&s->later, later, later);
	return HR_REPLAY_OK;
}

/*
 * A read of fewer bytes takes about the same time at any size, a larger one in proportion to its
 * size; with the kernel's caches, from a page on. At most SMALL_GROWS of the time of a small read
 * depends on its size. Assumed, not measured.
 */
#define SMALL_READ   65536
#define SMALL_CACHED 4096
#define SMALL_GROWS  0.3

/* Applies reads of this size. Each open is still followed by a read. */
static void set_reads(const struct hr_diagnosis *d, uint32_t stream, double size,
		      struct hr_setting *s)
{
	struct storage_sums all = sum_up(d, stream, NULL, 0);
	double mean = all.reads > 0 ? all.bytes / all.reads : 0, fewer;

	if (mean <= 0 || mean >= size)
		return;
	fewer = fmin(1, fmax(all.bytes / size, all.opens) / all.reads);
	multiply(&s->io, fewer, fewer + (1 - fewer) * (mean < SMALL_READ ? SMALL_GROWS : 1));
	multiply(&s->cached, fewer, fewer + (1 - fewer) * (mean < SMALL_CACHED ? SMALL_GROWS : 1));
}

static enum hr_replay_refusal set_batch(const struct hr_train_life *life, double size,
					struct hr_setting *s)
{
	for (size_t i = 0; i < life->n_loops; i++) {
		if (!life->loops[i].trains)
			continue;
		if (life->loops[i].batch_size == 0)
			return HR_REPLAY_NO_BATCH;
		s->batch = size / life->loops[i].batch_size;
		return HR_REPLAY_OK;
	}
	return HR_REPLAY_OK;
}

enum hr_replay_refusal hr_setting_storage(const struct hr_diagnosis *d,
					  const struct hr_train_life *life,
					  const struct hr_storage *storage, struct hr_setting *s)
{
	enum hr_replay_refusal r = HR_REPLAY_OK;

	if (storage->mounts != NULL)
		r = set_mount(d, life->stream, storage->mounts, s);
	if (r == HR_REPLAY_OK && storage->cached > 0)
		r = set_cached(d, life, storage->cached, s);
	if (r == HR_REPLAY_OK && storage->reads > 0)
		set_reads(d, life->stream, storage->reads, s);
	if (r == HR_REPLAY_OK && storage->batch > 0)
		r = set_batch(life, storage->batch, s);
	return r;
}
