/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module DXT_POSIX: a segment for each read and write. The log has the segments file by file,
 * and events are in the order of time, so a pass over the events writes the segments to their
 * places in a temporary file. If there are too many, only the first part of the job has segments.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/text.h"
#include "export/darshan/darshan_internal.h"
#include "export/seekable.h"

static int times_init(struct hr__darshan_dxt *dxt, int64_t end_ns)
{
	dxt->times = calloc(HR__DARSHAN_TIMES, sizeof(*dxt->times));
	dxt->time_ns = end_ns / (HR__DARSHAN_TIMES - 1) + 1;
	dxt->cut_ns = INT64_MAX;
	return dxt->times != NULL ? 0 : -ENOMEM;
}

static uint32_t time_bin(const struct hr__darshan_dxt *dxt, int64_t start_ns)
{
	int64_t bin = start_ns / dxt->time_ns;

	return bin < HR__DARSHAN_TIMES ? (uint32_t)bin : HR__DARSHAN_TIMES - 1;
}

int hr__darshan_segment_add(struct hr__darshan *d, struct hr__darshan_posix *rec,
			    enum hr__darshan_way way, int64_t offset,
			    const struct hr__darshan_op *o)
{
	struct hr__darshan_dxt *dxt = &d->dxt;

	if (dxt->times == NULL && times_init(dxt, d->end_ns) < 0)
		return -ENOMEM;
	if (time_bin(dxt, o->start_ns) * dxt->time_ns >= dxt->cut_ns)
		return 0;
	if (d->pass == HR__DARSHAN_PLACE) {
		/* A frame that was unreadable in the pass before may be readable now. */
		if (rec->segments_at[way] < dxt->total)
			dxt->map[rec->segments_at[way]++] = (struct hr_darshan_segment){
			    offset, (int64_t)o->bytes, (double)o->start_ns / 1e9,
			    (double)o->end_ns / 1e9};
		return 0;
	}
	dxt->times[time_bin(dxt, o->start_ns)]++;
	rec->segments[way]++;
	dxt->total++;
	return 0;
}

void hr__darshan_dxt_cut(struct hr__darshan *d)
{
	struct hr__darshan_dxt *dxt = &d->dxt;
	uint64_t sum = 0;
	uint32_t bin = 0;

	while (bin < HR__DARSHAN_TIMES && sum + dxt->times[bin] <= dxt->limit)
		sum += dxt->times[bin++];
	dxt->cut_ns = bin * dxt->time_ns;
	d->left_out += dxt->total - sum;
	d->partial |= UINT64_C(1) << HR_DARSHAN_DXT_POSIX;
	dxt->total = 0;
	for (size_t i = 0; i < d->n_uses; i++)
		if (d->uses[i].posix != NULL)
			memset(d->uses[i].posix->segments, 0, sizeof(d->uses[i].posix->segments));
}

static int segments_map(struct hr__darshan *d)
{
	struct hr__darshan_dxt *dxt = &d->dxt;
	int fd = hr_temporary_file(d->x, NULL), r;
	void *map;

	if (fd < 0)
		return fd;
	dxt->map_bytes = dxt->total * sizeof(*dxt->map);
	r = -posix_fallocate(fd, 0, (off_t)dxt->map_bytes);
	if (r < 0) {
		hr_temporary_failed(d->x, r);
	} else {
		map = mmap(NULL, dxt->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = map != MAP_FAILED ? 0 : -errno;
		dxt->map = r == 0 ? map : NULL;
	}
	close(fd);
	return r;
}

/* Assigns its place in the temporary file to each record. */
static void segments_place(struct hr__darshan *d)
{
	uint64_t at = 0;

	for (size_t i = 0; i < d->n_uses; i++) {
		struct hr__darshan_posix *rec = d->uses[i].posix;

		for (unsigned way = 0; rec != NULL && way < HR__DARSHAN_WAYS; way++) {
			rec->segments_at[way] = at;
			at += rec->segments[way];
		}
	}
}

int hr__darshan_dxt_place(struct hr__darshan *d)
{
	int r = segments_map(d);

	if (r == 0)
		segments_place(d);
	return r;
}

int hr__darshan_dxt_write(struct hr__darshan *d, const struct hr__darshan_use *u)
{
	const struct hr__darshan_posix *rec = u->posix;
	uint64_t n = rec->segments[HR__DARSHAN_WRITES] + rec->segments[HR__DARSHAN_READS];
	struct hr_darshan_dxt head = {.id = rec->log.id,
				      .rank = u->rank,
				      .writes = (int64_t)rec->segments[HR__DARSHAN_WRITES],
				      .reads = (int64_t)rec->segments[HR__DARSHAN_READS]};
	int r;

	if (n == 0)
		return 0;
	strncpy(head.host, rec->host, sizeof(head.host) - 1);
	r = hr_darshan_put(&d->log, &head, sizeof(head));
	/* The reads follow the writes, and segments_at is the end of both. */
	return r < 0 ? r
		     : hr_darshan_put(&d->log, &d->dxt.map[rec->segments_at[HR__DARSHAN_READS] - n],
				      n * sizeof(*d->dxt.map));
}

void hr__darshan_dxt_done(struct hr__darshan *d)
{
	if (d->dxt.map != NULL)
		munmap(d->dxt.map, d->dxt.map_bytes);
	free(d->dxt.times);
}
