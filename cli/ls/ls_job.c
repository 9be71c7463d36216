/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/ls/ls.h"
#include "cli/summary/summary_parts.h"
#include "query/query.h"
#include "query/diagnosis/diagnosis.h"
#include "common/now.h"
#include "common/text.h"

static uint64_t wall_ns(const struct hr_stream *stream, uint64_t boot_ns)
{
	return boot_ns != 0 ? (uint64_t)hr_stream_real_ns(stream, boot_ns) : 0;
}

struct ls_part {
	struct hr_ls_row *row;
	const struct hr_stream *stream;
	struct hr_run_part part;
};

static int see_frame(void *context, Headrace__Frame *frame)
{
	struct ls_part *p = context;

	if (frame->body_case == HEADRACE__FRAME__BODY_JOB) {
		struct hr_run_part job = {.start_ns = wall_ns(p->stream, frame->job->start_ns),
					  .end_ns = wall_ns(p->stream, frame->job->end_ns)};

		hr_run_part_join(&p->part, &job);
		if (p->row->program == NULL && hr_text_given(frame->job->name))
			p->row->program = strdup(frame->job->name);
	} else {
		p->part.killed = strcmp(frame->stream_end->state, "killed") == 0;
		p->part.failed = strcmp(frame->stream_end->state, "failed") == 0;
	}
	return 0;
}

/* Returns the times of a stream. If the program is unknown, the name of the job replaces it. */
static struct hr_run_part stream_part(struct hr_ls_row *row, const struct hr_stream *stream)
{
	struct ls_part p = {row,
			    stream,
			    {.running = !stream->ended && stream->live,
			     .unfinished = !stream->ended && !stream->live}};

	for (uint32_t i = 0; i < stream->n_processes; i++) {
		hr_run_part_see(&p.part, wall_ns(stream, stream->processes[i].msg->start_ns));
		hr_run_part_see(&p.part, wall_ns(stream, stream->processes[i].msg->end_ns));
	}
	for (uint32_t i = 0; i < stream->n_batches; i++)
		hr_run_part_see(&p.part, wall_ns(stream, stream->batches[i].last_ns));
	hr_stream_each_frame(stream, HR_FRAME_BIT(JOB) | HR_FRAME_BIT(STREAM_END), see_frame, &p,
			     NULL);
	return p.part;
}

static void take_runs(struct hr_ls_row *row, const struct hr_stream *streams, size_t n)
{
	struct hr_summary s = {0};
	struct hr_runs runs = {0};
	struct hr_run_part job, part;

	for (size_t i = 0; i < n; i++) {
		part = stream_part(row, &streams[i]);
		hr_runs_add(&runs, &part);
	}
	hr_runs_take(&runs, &s, &job);
	row->state = s.run_state;
	row->span_ns = s.run_span_ns;
	row->start_ns = hr_run_part_start(&job);
	if (s.runs > 1)
		row->start_ns = hr_run_part_end(&job) - s.run_span_ns;
	if (job.running && row->start_ns != 0)
		row->span_ns = hr_now_ns(CLOCK_REALTIME) - row->start_ns;
	free(s.state);
	hr_runs_done(&runs);
}

/* Returns "train.py" for "/usr/bin/python3 /home/x/train.py --epochs 3" (malloc'ed). */
static char *program_of(const Headrace__Process *p)
{
	const ProtobufCBinaryData *line = p->cmdline.len > 0 ? &p->cmdline : &p->exe;
	char *text = strndup((const char *)line->data, line->len), *rest = text, *word, *program;

	word = text != NULL ? strsep(&rest, " ") : NULL;
	if (word == NULL)
		return NULL;
	program = strrchr(word, '/') != NULL ? strrchr(word, '/') + 1 : word;
	if (strncmp(program, "python", 6) == 0 && rest != NULL && rest[0] != '-' &&
	    rest[0] != '\0') {
		word = strsep(&rest, " ");
		program = strrchr(word, '/') != NULL ? strrchr(word, '/') + 1 : word;
	}
	program = strdup(program);
	free(text);
	return program;
}

/* Sets the program of the first rank, because the first process may be a launcher. */
static void take_program(struct hr_ls_row *row, const struct hr_stream *streams, size_t n)
{
	const struct hr_process *found = NULL;

	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < streams[i].n_processes; k++) {
			const struct hr_process *p = &streams[i].processes[k];

			if (found == NULL || (found->rank < 0 && p->rank >= 0))
				found = p;
		}
	}
	if (found != NULL)
		row->program = program_of(found->msg);
}

static bool has_regions(const struct hr_stream *stream)
{
	for (uint32_t i = 0; i < stream->n_frames; i++)
		if (stream->frames[i].kind == HEADRACE__FRAME__BODY_REGIONS)
			return true;
	return false;
}

static double loops_waited(const struct hr_diagnosis *d)
{
	struct hr_summary_loop all = {0};

	for (size_t i = 0; i < d->lives.n; i++) {
		struct hr_summary_loop loop = {0};

		hr_loop_add_life(&loop, &d->sums[i]);
		if (loop.wait_ns == 0)
			continue;
		all.wait_ns += loop.wait_ns;
		all.loop_ns += loop.loop_ns;
	}
	return all.loop_ns > 0 ? (double)all.wait_ns / (double)all.loop_ns : -1;
}

static void take_waited(struct hr_ls_row *row, const struct hr_catalog *catalog,
			uint64_t *events_left)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(catalog, &streams);
	const struct hr_diagnosis *d;
	struct hr_query *q;
	uint64_t events = 0;
	bool regions = false;

	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < streams[i].n_batches; k++)
			events += streams[i].batches[k].count;
		regions = regions || has_regions(&streams[i]);
	}
	if (!regions || events > *events_left || hr_query_new_without_sql(catalog, &q) < 0)
		return;
	*events_left -= events;
	if (hr_diagnosis_shared(q, &d) == 0)
		row->waited = loops_waited(d);
	hr_query_free(q);
}

void hr_ls_read(const struct hr_found_store *store, uint64_t *events_left, struct hr_ls_row *ret)
{
	const struct hr_store_outline *outline = &store->outline;
	const struct hr_catalog_filter filter = {.job =
						     outline->jobs > 0 ? outline->last_job : NULL};
	const char *const path = store->path;
	const struct hr_stream *streams;
	struct hr_catalog *catalog = NULL;
	size_t n = 0;

	*ret = (struct hr_ls_row){.store = strdup(path),
				  .job = strdup(outline->last_job),
				  .jobs = outline->jobs,
				  .bytes = outline->bytes,
				  .start_ns = outline->changed_ns,
				  .waited = -1};
	if (hr_catalog_open(&path, 1, &filter, &catalog, NULL) < 0)
		ret->state = strdup("unreadable");
	else
		n = hr_catalog_streams(catalog, &streams);
	if (n > 0) {
		take_program(ret, streams, n);
		take_waited(ret, catalog, events_left);
		take_runs(ret, streams, n);
	} else if (catalog != NULL) {
		ret->state = strdup("empty");
	}
	hr_catalog_free(catalog);
}

void hr_ls_row_done(struct hr_ls_row *row)
{
	free(row->store);
	free(row->job);
	free(row->state);
	free(row->program);
}
