/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "query/diagnosis/findings.h"
#include "query/query.h"

/* number of events that headrace reads in about a second */
#define EVENTS_MAX 20000000u

static char *copy(const char *text, int *error)
{
	char *to = text != NULL && *text != '\0' ? strdup(text) : NULL;

	if (text != NULL && *text != '\0' && to == NULL)
		*error = -ENOMEM;
	return to;
}

static uint64_t to_ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

/* Returns the largest finding of the last attempt, which is the first in its list. */
static const struct hr_finding *largest(const struct hr_findings *all)
{
	const struct hr_finding *best = NULL;

	for (size_t i = 0; i < all->n; i++)
		if (best == NULL || all->list[i].st->s->attempt > best->st->s->attempt)
			best = &all->list[i];
	return best;
}

static int take(struct hr_summary_finding *to, const struct hr_finding *f)
{
	int error = 0;

	if (f == NULL)
		return 0;
	*to = (struct hr_summary_finding){.failed = f->cause == HR_FOUND_FAILED,
					  .meaning = copy(f->meaning, &error),
					  .object = copy(f->object, &error),
					  .whose = copy(f->whose, &error),
					  .place = copy(f->place, &error),
					  .gain_note = copy(f->gain_note, &error),
					  .evidence = copy(f->evidence, &error),
					  .action = copy(f->action, &error),
					  .lost_ns = to_ns(f->lost),
					  .wall_ns = to_ns(f->wall),
					  .gain_low_ns = to_ns(f->gain_low),
					  .gain_high_ns = to_ns(f->gain_high)};
	return error;
}

void hr_loop_add_life(struct hr_summary_loop *l, const struct hr_part_sums *sums)
{
	for (unsigned phase = 0; phase <= HR_PHASE_END; phase++) {
		for (unsigned part = 0; part < HR_PART_END; part++) {
			uint64_t ns = sums->ns[phase][part];

			l->wait_ns += hr_part_waits(part) ? ns : 0;
			l->loop_ns += hr_phase_loops(phase) ? ns : 0;
		}
	}
}

/*
 * Replaces the wait times, which are sums over regions, by those of the diagnosis. If the program
 * reported no steps, they are those of the diagnosis, too.
 */
static void take_loops(struct hr_summary *s, const struct hr_diagnosis *d)
{
	for (size_t i = 0; i < s->n_who; i++) {
		struct hr_summary_loop *l = &s->who[i].loop;
		bool reported = l->steps > 0;

		if (s->who[i].worker >= 0)
			continue;
		l->wait_ns = 0;
		for (size_t k = 0; k < d->lives.n; k++) {
			const struct hr_train_life *life = &d->lives.list[k];

			if (life->rank != s->who[i].rank)
				continue;
			hr_loop_add_life(l, &d->sums[k]);
			l->steps += reported ? 0 : life->n_steps;
			l->step_ns += reported ? 0 : life->steps_ns;
		}
	}
}

static int take_parts(struct hr_summary *s, const struct hr_diagnosis *d)
{
	s->parts = calloc(HR_PART_END, sizeof(*s->parts));
	if (s->parts == NULL)
		return -ENOMEM;
	for (unsigned part = 0; part < HR_PART_END; part++) {
		struct hr_summary_part p = {.name = hr_part_name(part),
					    .label = hr_part_label(part),
					    .waits = hr_part_waits(part)};

		for (size_t k = 0; k < d->lives.n; k++)
			for (unsigned phase = 0; phase <= HR_PHASE_END; phase++)
				if (p.waits || hr_phase_loops(phase))
					p.ns += d->sums[k].ns[phase][part];
		if (p.ns > 0)
			s->parts[s->n_parts++] = p;
	}
	return 0;
}

/* Returns the row of the file, or (`folders`) of the deepest folder above it; NULL: none. */
static struct hr_summary_path *path_row(struct hr_summary_path *list, size_t n, const char *path,
					bool folders)
{
	struct hr_summary_path *best = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t bytes = strlen(list[i].path);

		if (strncmp(list[i].path, path, bytes) == 0 &&
		    path[bytes] == (folders ? '/' : '\0') &&
		    (best == NULL || bytes > strlen(best->path)))
			best = &list[i];
	}
	return best;
}

static void add_batches(struct hr_summary_path *row, const struct hr_item *item)
{
	if (row == NULL)
		return;
	row->batch_bytes += item->bytes;
	row->batch_extent_bytes += item->extent;
}

/* Sets batch_bytes and batch_extent_bytes of the rows of files and folders. */
static void take_batches(struct hr_summary *s, const struct hr_diagnosis *d)
{
	size_t n = d->first[d->q->n_streams].item;

	for (size_t i = 0; i < n; i++) {
		const struct hr_item *item = &d->items[i];
		struct hr_file_info info;
		char path[4 * PATH_MAX + 1];

		if (item->extent == 0 ||
		    hr_stream_file(d->q->streams[item->stream].s, item->file, true, &info) < 0 ||
		    hr_text_escape(path, sizeof(path), info.path, info.path_bytes) >= sizeof(path))
			continue;
		add_batches(path_row(s->folders, s->n_folders, path, true), item);
		add_batches(path_row(s->files, s->n_files, path, false), item);
	}
}

int hr_summary_diagnose(struct hr_summary *s, const struct hr_catalog *catalog)
{
	const struct hr_diagnosis *d;
	struct hr_query *q;
	struct hr_findings all = {0};
	int r;

	if ((!hr_loops_any(s) && !s->python.hangs) || s->events > EVENTS_MAX)
		return 0;
	r = hr_query_new_without_sql(catalog, &q);
	if (r < 0)
		return r;
	r = hr_diagnosis_shared(q, &d);
	if (r == 0) {
		take_loops(s, d);
		take_batches(s, d);
		r = take_parts(s, d);
	}
	if (r == 0)
		r = hr_findings_make(d, &all);
	if (r == 0)
		r = take(&s->finding, largest(&all));
	hr_findings_done(&all);
	hr_query_free(q);
	return r;
}

void hr_summary_finding_free(struct hr_summary_finding *f)
{
	free(f->meaning);
	free(f->object);
	free(f->whose);
	free(f->place);
	free(f->gain_note);
	free(f->evidence);
	free(f->action);
}

/* Prints the place. The path of the object in this text is shortened to fit on a line. */
static void print_place(const struct hr_summary_finding *f, struct hr_sheet *sheet)
{
	const char *object = f->object != NULL ? strstr(f->place, f->object) : NULL;
	char path[4 * PATH_MAX + 1] = "";
	int before = (int)strlen(f->place);

	if (object != NULL) {
		before = (int)(object - f->place);
		hr_sheet_path(sheet, path, sizeof(path), f->object,
			      hr_sheet_width(sheet) - HR_SUMMARY_INDENT);
	}
	hr__summary_say(sheet, HR_STYLE_PLAIN, "  where", "%.*s%s%s", before, f->place, path,
			object != NULL ? object + strlen(f->object) : "");
}

void hr_summary_finding_print(const struct hr_summary *s, struct hr_sheet *sheet)
{
	const struct hr_summary_finding *f = &s->finding;
	/* print the lower limit only if it is at least 1 % */
	bool least = f->gain_low_ns >= f->wall_ns / 100;

	if (f->meaning == NULL)
		return;
	if (f->failed) {
		hr__summary_say(sheet, HR_STYLE_BOLD, "  failed", "%s", f->meaning);
	} else if (f->lost_ns == 0) {
		hr__summary_say(sheet, HR_STYLE_PLAIN, "  loss", "%s: %s", f->meaning, f->evidence);
		return;
	} else {
		hr__summary_say(
		    sheet, HR_STYLE_BOLD, "  loss", "%.0f %% of %s (%s of %s): %s",
		    100.0 * (double)f->lost_ns / (double)f->wall_ns,
		    s->ranks > 1 ? "the time of a rank on average" : "the training process's time",
		    hr_text_duration(f->lost_ns).s, hr_text_duration(f->wall_ns).s, f->meaning);
	}
	if (f->place != NULL)
		print_place(f, sheet);
	if (f->evidence != NULL)
		hr__summary_say(sheet, HR_STYLE_PLAIN, "  shown", "%s", f->evidence);
	if (f->action != NULL)
		hr__summary_say(sheet, HR_STYLE_PLAIN, "  do", "%s", f->action);
	if (f->gain_high_ns > 0)
		hr__summary_say(
		    sheet, HR_STYLE_PLAIN, "  saves", "%s to %s%s%s%s",
		    least ? hr_text_duration(f->gain_low_ns).s : "up",
		    hr_text_duration(f->gain_high_ns).s, f->gain_note != NULL ? " (" : "",
		    f->gain_note != NULL ? f->gain_note : "", f->gain_note != NULL ? ")" : "");
	hr_sheet_end(sheet);
}
