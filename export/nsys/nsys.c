/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format "nsys": the SQLite database that Nsight Systems exports (nsys_tables.h). Operations
 * are calls of OS runtime libraries, and regions are NVTX ranges and marks.
 *
 * Times are ns since the job began. Ids of categories and domains are ids of their texts in
 * StringIds. What the schema has no column for is in tables whose names begin with HEADRACE.
 */
#include "export/nsys/nsys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "export/seekable.h"

#define OPERATION_BYTES 76u  /* typical bytes of an operation in the file */
#define REGION_BYTES	150u /* of a region, with its texts */

/*
 * Finds time 0. This is the begin of the job, unless the clock of a node is late: then it is the
 * first recorded moment. The files of all ranks of a job have the same time 0.
 */
static void find_base(struct hr__nsys *n)
{
	const struct hr_walk *w = n->x->walk;

	n->base_ns = n->x->start_ns;
	for (size_t i = 0; i < w->n_streams; i++) {
		const struct hr_stream *s = w->streams[i].s;

		for (uint32_t b = 0; b < s->n_batches; b++) {
			int64_t ns = hr_stream_real_ns(s, s->batches[b].base_ns);

			n->base_ns = ns < n->base_ns ? ns : n->base_ns;
		}
	}
	n->end_ns = n->x->end_ns - n->base_ns;
}

/* Decides which operations and regions are written, so that the file has the wanted size. */
static int find_limits(struct hr__nsys *n)
{
	struct hr_gather_room room = {.event_bytes = OPERATION_BYTES, .region_bytes = REGION_BYTES};
	uint64_t max = n->x->options->max_bytes;

	if (max == 0 || max == UINT64_MAX)
		return 0;
	for (size_t i = 0; i < n->x->walk->n_streams; i++)
		room.regions += n->x->walk->streams[i].n_regions * REGION_BYTES;
	room.regions = room.regions < max / 2 ? room.regions : max / 2;
	room.events = max - room.regions;
	return hr_gather_limits(n->x, &room, &n->limits);
}

static int put_meta(struct hr__nsys *n, const char *name, const char *value)
{
	struct hr_nsys_text texts[2] = {hr_nsys_text(name), hr_nsys_text(value)};

	return hr_nsys_insert(n->db, HR_NSYS_META_DATA_EXPORT, NULL, texts);
}

/* Writes the notes about missing data, each with a name of its own. */
static int nsys_notes(struct hr__nsys *n)
{
	char name[40], *text = hr_gather_left_out(n->x, &n->limits, "");
	int r = text != NULL ? put_meta(n, "HEADRACE_LEFT_OUT", text) : 0;

	for (size_t i = 0; i < n->x->n_notes && r == 0; i++) {
		snprintf(name, sizeof(name), "HEADRACE_NOTE_%zu", i + 1);
		r = put_meta(n, name, n->x->notes[i]);
	}
	free(text);
	return r;
}

static int put_start(struct hr__nsys *n)
{
	time_t seconds = n->base_ns / 1000000000;
	char utc[40] = "", local[40] = "";
	struct hr_nsys_text texts[2];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%S", &tm);
	if (localtime_r(&seconds, &tm) != NULL)
		strftime(local, sizeof(local), "%Y-%m-%dT%H:%M:%S", &tm);
	texts[0] = hr_nsys_text(utc);
	texts[1] = hr_nsys_text(local);
	return hr_nsys_insert(n->db, HR_NSYS_TARGET_INFO_SESSION_START_TIME, &n->base_ns, texts);
}

static int nsys_metadata(struct hr__nsys *n)
{
	int64_t details[4] = {hr__nsys_node_bits(n->x->walk, 0), n->end_ns, 0, n->end_ns};
	int r = put_meta(n, "EXPORT_SCHEMA_VERSION", HR_NSYS_SCHEMA_VERSION);

	if (r == 0)
		r = put_meta(n, "EXPORT_PRODUCT_VERSION", "headrace " HEADRACE_VERSION);
	if (r == 0)
		r = put_meta(n, "HEADRACE_JOB", n->x->walk->streams[0].s->job);
	if (r == 0)
		r = nsys_notes(n);
	if (r == 0)
		r = put_start(n);
	return r == 0 ? hr_nsys_insert(n->db, HR_NSYS_ANALYSIS_DETAILS, details, NULL) : r;
}

static int nsys_job(struct hr__nsys *n)
{
	int r = find_limits(n);

	if (r == 0)
		r = hr__nsys_categories(n);
	for (size_t i = 0; i < n->x->walk->n_streams && r == 0; i++)
		r = hr__nsys_stream(n, i);
	return r == 0 ? nsys_metadata(n) : r;
}

int hr_nsys_write(struct hr_export *x, FILE *to)
{
	struct hr__nsys n = {.x = x};
	struct hr_seekable file;
	int r = hr_seekable_open(x, to, &file), closed;

	if (r < 0)
		return r;
	find_base(&n);
	r = hr_nsys_db_open(file.path, &n.db);
	hr_seekable_hide(&file);
	if (r == 0)
		r = nsys_job(&n);
	closed = hr_nsys_db_close(n.db, r == 0);
	r = r < 0 ? r : closed;
	if (file.temporary && (r == -ENOSPC || r == -EIO))
		hr_temporary_failed(x, r);
	hr_map64_done(&n.threads);
	hr_map64_done(&n.defined);
	return hr_seekable_close(&file, r);
}
