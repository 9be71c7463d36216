/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool/spool_discard.h"

#include <string.h>

#include "daemon/spool/spool_stream.h"

struct discard {
	struct hr_spool *spool;
	const struct hr_stream *streams; /* the streams of all jobs of the spool */
	size_t n;
	struct hr_spool_discarded done;
};

static bool spool_discard_is(const struct hr_stream *s, const Headrace__StreamStart *id)
{
	return s->attempt == id->attempt && s->instance == id->instance &&
	       strcmp(s->cluster, id->cluster) == 0 && strcmp(s->job, id->job) == 0 &&
	       strcmp(s->node, id->node) == 0 && strcmp(s->boot_id, id->boot_id) == 0;
}

static const struct hr_stream *spool_discard_find(const struct discard *d,
						  const Headrace__StreamStart *id)
{
	for (size_t i = 0; i < d->n; i++)
		if (spool_discard_is(&d->streams[i], id))
			return &d->streams[i];
	return NULL;
}

static void spool_discard_count(struct discard *d, const struct hr_stream *s, uint64_t acked)
{
	d->done.streams++;
	for (uint32_t i = 0; i < s->n_frames; i++)
		d->done.frames += s->frames[i].seq > acked;
	for (uint32_t i = 0; i < s->n_batches; i++)
		if (s->frames[s->batches[i].frame].seq > acked)
			d->done.events += s->batches[i].count;
}

static int see(void *arg, const char *folder, int dir_fd)
{
	struct discard *d = arg;
	struct hr_spool_stream *st;
	const struct hr_stream *s;

	(void)dir_fd;
	if (hr_spool_stream_open(d->spool, folder, &st) < 0)
		return 0;
	s = spool_discard_find(d, st->id);
	if (s && hr_spool_stream_remove(st) == 0)
		spool_discard_count(d, s, st->acked);
	hr_spool_stream_free(st);
	return 0;
}

int hr_spool_discard(struct hr_spool *s, const char *job, struct hr_spool_discarded *ret,
		     char **ret_error)
{
	const struct hr_catalog_filter filter = {.job = job};
	const char *path = hr_spool_path(s);
	struct discard d = {.spool = s};
	struct hr_catalog *c;
	int r = hr_catalog_open(&path, 1, &filter, &c, ret_error);

	if (r < 0)
		return r;
	d.n = hr_catalog_streams(c, &d.streams);
	r = hr_spool_each(s, see, &d);
	d.done.kept = (unsigned)d.n - d.done.streams;
	hr_catalog_free(c);
	*ret = d.done;
	return r;
}
