/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes records, and makes one record of those of all ranks, as Darshan does: sums, maxima,
 * earliest and latest times, the most frequent values, the fastest and the slowest rank, and the
 * variance over the ranks.
 */
#include <string.h>

#include "export/darshan/darshan_internal.h"

void hr__darshan_complete(struct hr__darshan *d)
{
	for (size_t i = 0; i < d->n_uses; i++) {
		struct hr__darshan_posix *posix = d->uses[i].posix;
		struct hr__darshan_stdio *stdio = d->uses[i].stdio;

		if (posix != NULL) {
			hr__darshan_common(posix->access.list, posix->access.n,
					   &posix->log.c[HR_DP_ACCESS]);
			hr__darshan_common(posix->strides.list, posix->strides.n,
					   &posix->log.c[HR_DP_STRIDE]);
		}
		if (stdio != NULL && stdio->lost_read)
			stdio->log.c[HR_DS_MAX_BYTE_READ] = HR_DARSHAN_UNKNOWN;
		if (stdio != NULL && stdio->lost_write)
			stdio->log.c[HR_DS_MAX_BYTE_WRITTEN] = HR_DARSHAN_UNKNOWN;
	}
}

/* ---- counters of two records ---- */

static int64_t sum_of(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? HR_DARSHAN_UNKNOWN : a + b;
}

static int64_t max_of(int64_t a, int64_t b)
{
	if (a < 0 || b < 0)
		return HR_DARSHAN_UNKNOWN;
	return a > b ? a : b;
}

static double first_of(double a, double b)
{
	return a != 0 && (b == 0 || a < b) ? a : b;
}

static double last_of(double a, double b)
{
	return a > b ? a : b;
}

/* Merges 4 values and their 4 counts into those of `to`. */
static void merge_common(int64_t *to, const int64_t *from)
{
	struct hr__darshan_value list[2 * HR_DARSHAN_COMMON];
	size_t n = 0;

	for (unsigned i = 0; i < HR_DARSHAN_COMMON; i++)
		list[n++] = (struct hr__darshan_value){to[i], to[HR_DARSHAN_COMMON + i]};
	for (unsigned i = 0; i < HR_DARSHAN_COMMON; i++) {
		size_t k = 0;

		while (k < n && list[k].value != from[i])
			k++;
		if (k == n)
			list[n++] = (struct hr__darshan_value){from[i], 0};
		list[k].count += from[HR_DARSHAN_COMMON + i];
	}
	hr__darshan_common(list, n, to);
}

/* ---- ranks ---- */

struct rank_spread {
	double mean, squares; /* sum of the squares of the differences from the mean */
	size_t n;
};

static void spread_add(struct rank_spread *s, double value)
{
	double before = value - s->mean;

	s->n++;
	s->mean += before / (double)s->n;
	s->squares += before * (value - s->mean);
}

/* What one rank did with a shared file. */
struct rank_work {
	int64_t rank, bytes;
	double seconds;
};

struct rank_sums {
	struct rank_work fastest, slowest;
	struct rank_spread seconds, bytes;
};

static void ranks_add(struct rank_sums *s, struct rank_work w)
{
	if (s->seconds.n == 0 || w.seconds < s->fastest.seconds)
		s->fastest = w;
	if (s->seconds.n == 0 || w.seconds > s->slowest.seconds)
		s->slowest = w;
	spread_add(&s->seconds, w.seconds);
	spread_add(&s->bytes, (double)w.bytes);
}

/* Writes the counters from FASTEST_RANK, and the times from FASTEST_RANK_TIME. */
static void ranks_set(const struct rank_sums *s, int64_t *counters, double *times)
{
	counters[0] = s->fastest.rank;
	counters[1] = s->fastest.bytes;
	counters[2] = s->slowest.rank;
	counters[3] = s->slowest.bytes;
	times[0] = s->fastest.seconds;
	times[1] = s->slowest.seconds;
	times[2] = s->seconds.squares / (double)s->seconds.n;
	times[3] = s->bytes.squares / (double)s->bytes.n;
}

/* ---- POSIX ---- */

/* Keeps the longer call, and its size. */
static void longest_call(struct hr_darshan_posix *to, const struct hr_darshan_posix *from, int time,
			 int size)
{
	if (from->f[time] > to->f[time]) {
		to->f[time] = from->f[time];
		to->c[size] = from->c[size];
	}
}

static bool posix_keeps(int counter)
{
	return counter == HR_DP_RENAMED_FROM || counter == HR_DP_MODE ||
	       counter == HR_DP_MEM_ALIGNMENT || counter == HR_DP_FILE_ALIGNMENT ||
	       counter == HR_DP_MAX_READ_TIME_SIZE || counter == HR_DP_MAX_WRITE_TIME_SIZE;
}

static void posix_merge(struct hr_darshan_posix *to, const struct hr_darshan_posix *from)
{
	for (int i = 0; i < HR_DP_STRIDE; i++) {
		if (i == HR_DP_MAX_BYTE_READ || i == HR_DP_MAX_BYTE_WRITTEN)
			to->c[i] = max_of(to->c[i], from->c[i]);
		else if (!posix_keeps(i))
			to->c[i] = sum_of(to->c[i], from->c[i]);
	}
	if (to->c[HR_DP_RENAMED_FROM] == 0)
		to->c[HR_DP_RENAMED_FROM] = from->c[HR_DP_RENAMED_FROM];
	if (to->c[HR_DP_MODE] == 0)
		to->c[HR_DP_MODE] = from->c[HR_DP_MODE];
	longest_call(to, from, HR_DP_MAX_READ_TIME, HR_DP_MAX_READ_TIME_SIZE);
	longest_call(to, from, HR_DP_MAX_WRITE_TIME, HR_DP_MAX_WRITE_TIME_SIZE);
	merge_common(&to->c[HR_DP_STRIDE], &from->c[HR_DP_STRIDE]);
	merge_common(&to->c[HR_DP_ACCESS], &from->c[HR_DP_ACCESS]);
	for (int i = HR_DP_OPEN_START; i <= HR_DP_CLOSE_START; i++)
		to->f[i] = first_of(to->f[i], from->f[i]);
	for (int i = HR_DP_OPEN_END; i <= HR_DP_CLOSE_END; i++)
		to->f[i] = last_of(to->f[i], from->f[i]);
	for (int i = HR_DP_READ_TIME; i <= HR_DP_META_TIME; i++)
		to->f[i] += from->f[i];
}

void hr__darshan_posix_reduce(void *const *list, size_t n, struct hr_darshan_posix *ret)
{
	struct rank_sums ranks = {0};

	*ret = *(const struct hr_darshan_posix *)list[0];
	ret->rank = HR_DARSHAN_SHARED;
	for (size_t i = 0; i < n; i++) {
		const struct hr_darshan_posix *rec = list[i];

		if (i > 0)
			posix_merge(ret, rec);
		ranks_add(&ranks,
			  (struct rank_work){rec->rank,
					     rec->c[HR_DP_BYTES_READ] + rec->c[HR_DP_BYTES_WRITTEN],
					     rec->f[HR_DP_READ_TIME] + rec->f[HR_DP_WRITE_TIME] +
						 rec->f[HR_DP_META_TIME]});
	}
	ranks_set(&ranks, &ret->c[HR_DP_FASTEST_RANK], &ret->f[HR_DP_FASTEST_RANK_TIME]);
}

/* ---- STDIO ---- */

static void stdio_merge(struct hr_darshan_stdio *to, const struct hr_darshan_stdio *from)
{
	for (int i = HR_DS_OPENS; i <= HR_DS_BYTES_READ; i++)
		to->c[i] = sum_of(to->c[i], from->c[i]);
	for (int i = HR_DS_MAX_BYTE_READ; i <= HR_DS_MAX_BYTE_WRITTEN; i++)
		to->c[i] = max_of(to->c[i], from->c[i]);
	for (int i = HR_DS_META_TIME; i <= HR_DS_READ_TIME; i++)
		to->f[i] += from->f[i];
	for (int i = HR_DS_OPEN_START; i <= HR_DS_READ_START; i++)
		to->f[i] = first_of(to->f[i], from->f[i]);
	for (int i = HR_DS_OPEN_END; i <= HR_DS_READ_END; i++)
		to->f[i] = last_of(to->f[i], from->f[i]);
}

void hr__darshan_stdio_reduce(void *const *list, size_t n, struct hr_darshan_stdio *ret)
{
	struct rank_sums ranks = {0};

	*ret = *(const struct hr_darshan_stdio *)list[0];
	ret->rank = HR_DARSHAN_SHARED;
	for (size_t i = 0; i < n; i++) {
		const struct hr_darshan_stdio *rec = list[i];

		if (i > 0)
			stdio_merge(ret, rec);
		ranks_add(&ranks,
			  (struct rank_work){rec->rank,
					     rec->c[HR_DS_BYTES_READ] + rec->c[HR_DS_BYTES_WRITTEN],
					     rec->f[HR_DS_READ_TIME] + rec->f[HR_DS_WRITE_TIME] +
						 rec->f[HR_DS_META_TIME]});
	}
	ranks_set(&ranks, &ret->c[HR_DS_FASTEST_RANK], &ret->f[HR_DS_FASTEST_RANK_TIME]);
}
