/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of Python in which batches were made while the training loops waited, and the lines in
 * which the training threads were outside of waits.
 */
#include "query/diagnosis/findings_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/map64.h"
#include "proto/args.h"

/* A longer fetch has a sample, if stacks are recorded. */
#define SAMPLED_NS (INT64_C(2) * HR_ARGS_SAMPLES_EVERY_NS)

struct line_time {
	const char *line;
	double ns;
};

struct line_times {
	struct line_time *list;
	size_t n, room;
	struct hr_map64 by_text; /* from a hash of the text to its index in `list` */
	double all;		 /* ns of waits while a batch was made, sampled or not */
	double found;		 /* ns in lines; with short fetches, it may be more */
	uint64_t samples;
	bool sampled, unsampled;
};

static int time_add(struct line_times *t, const char *line, double ns)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, line, strlen(line));
	uint32_t i = hr_map64_get(&t->by_text, hash);

	if (i >= t->n) { /* HR_MAP64_NONE */
		i = (uint32_t)t->n;
		if (!hr_array_reserve(t->list, t->n, t->room) ||
		    hr_map64_set(&t->by_text, hash, i) < 0)
			return -ENOMEM;
		t->list[t->n++] = (struct line_time){.line = line};
	}
	t->list[i].ns += ns;
	return 0;
}

/* Returns the probability that a fetch has a sample; hr_sampled() in SQL. */
static double probability(double ns)
{
	double x = ns / HR_ARGS_SAMPLES_EVERY_NS;

	if (x <= 0.5)
		return x;
	return x < 1.5 ? 1 - (1.5 - x) * (1.5 - x) / 2 : 1;
}

/* Adds the parts of a fetch during the block in which the loop waited for it. -ENOMEM. */
static int block_add(struct line_times *t, const struct hr_train_lives *lives,
		     const struct hr_block *b)
{
	const struct hr_fetch *f = &lives->fetches[b->fetch];
	int r = 0;

	t->all += (double)(b->to - b->from);
	t->sampled |= f->n_lines > 0;
	t->unsampled |= f->n_lines == 0 && f->to - f->from > SAMPLED_NS;
	for (uint32_t i = 0; r == 0 && i < f->n_lines; i++) {
		const struct hr_line_part *part = &lives->lines[f->first_line + i];
		int64_t end = i + 1 < f->n_lines ? part[1].from : f->to;
		int64_t from = part->from > b->from ? part->from : b->from;
		int64_t to = end < b->to ? end : b->to;
		double ns;

		if (from >= to)
			continue;
		/* A short fetch with a sample stands for others without. */
		ns = (double)(to - from) / probability((double)(f->to - f->from));
		r = time_add(t, part->line, ns);
		t->found += ns;
		t->samples += part->samples;
	}
	return r;
}

/* ---- the lines of the training thread ---- */

#define SHOWN_MAX 3
/* Lines that took a smaller share of the wall time are not mentioned. Chosen. */
#define OWN_SHARE 0.01
/* A line besides the first one in which batches were made. Chosen. */
#define LINES_SHARE 0.1
/* A library's line is named if it is this share of the line that called it. Chosen. */
#define INNER_SHARE 0.3

static int by_time(const void *a, const void *b)
{
	const struct line_time *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/*
 * Sums the samples of all training threads in a phase: by line or, if `line` is not NULL, by
 * innermost line of this line.
 */
static int own_sum(struct line_times *t, const struct hr_training_job *j, unsigned phase,
		   const char *line)
{
	int r = 0;

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];

		for (size_t k = 0; k < life->n_own_lines && hr__job_has(j, i) && r == 0; k++) {
			const struct hr_own_line *own = &life->own_lines[k];

			if (own->phase != phase || (line != NULL && strcmp(own->line, line) != 0))
				continue;
			r = time_add(t, line != NULL ? own->inner : own->line, (double)own->ns);
			t->samples += own->samples;
		}
	}
	if (t->n > 0)
		qsort(t->list, t->n, sizeof(*t->list), by_time);
	return r;
}

static void times_done(struct line_times *t)
{
	free(t->list);
	hr_map64_done(&t->by_text);
}

/* Returns " in torchmetrics/functional.py:9 f", where a library is longest for this line; or "". */
static const char *inner_of(struct hr_training_job *j, unsigned phase, const struct line_time *line)
{
	struct line_times t = {0};
	const char *text = "";

	if (own_sum(&t, j, phase, line->line) < 0)
		j->error = -ENOMEM;
	else if (t.n > 0 && t.list[0].line[0] != '\0' && strcmp(t.list[0].line, line->line) != 0 &&
		 t.list[0].ns >= INNER_SHARE * line->ns)
		text = hr__finding_text(
		    j, " in %s",
		    hr__path_text(j, (const uint8_t *)t.list[0].line, strlen(t.list[0].line)));
	times_done(&t);
	return text;
}

static void own_lines(struct hr_training_job *j, unsigned phase, struct hr_own_lines *to)
{
	struct line_times t = {0};
	int r = own_sum(&t, j, phase, NULL);

	for (size_t i = 0; r == 0 && i < t.n && i < SHOWN_MAX && t.samples >= HR_SAMPLES_LEAST;
	     i++) {
		double s = t.list[i].ns / 1e9 / (double)j->lives;
		const char *line =
		    hr__path_text(j, (const uint8_t *)t.list[i].line, strlen(t.list[i].line));

		if (s < OWN_SHARE * j->wall)
			break;
		if (i == 0)
			*to = (struct hr_own_lines){.first = line, .first_s = s};
		line = hr__finding_text(j, "%s (%s%s)", line, hr__seconds(s).s,
					inner_of(j, phase, &t.list[i]));
		if (i == 0)
			to->where = to->text = line;
		else
			to->text = hr__finding_text(j, "%s, %s", to->text, line);
	}
	times_done(&t);
	j->error = j->error == 0 ? r : j->error;
}

/* ---- both ---- */

/* Sets the line in which most of the wait was, and the text of the longest ones. */
static void set_lines(struct hr_training_job *j, const struct line_times *t)
{
	double all = fmax(t->all, t->found);

	for (size_t i = 0; i < t->n && i < SHOWN_MAX; i++) {
		double share = t->list[i].ns / all;
		const char *line =
		    hr__path_text(j, (const uint8_t *)t->list[i].line, strlen(t->list[i].line));

		if (i == 0) {
			j->line = line;
			j->line_share = share;
		} else if (share < LINES_SHARE) {
			break;
		}
		j->lines = hr__finding_text(j, "%s%s%s (%.0f %%%s)", i > 0 ? j->lines : "",
					    i > 0 ? ", " : "", line, 100 * share,
					    i > 0 ? "" : " of the wait");
	}
}

void hr__job_line(struct hr_training_job *j)
{
	const struct hr_train_lives *lives = &j->d->lives;
	struct line_times t = {0};

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &lives->list[i];

		for (size_t k = 0; k < life->n && j->error == 0 && hr__job_has(j, i); k++)
			if (life->blocks[k].kind == HR_BLOCK_FETCH &&
			    hr_phase_loops(life->blocks[k].phase))
				j->error = block_add(&t, lives, &life->blocks[k]);
	}
	if (t.n > 0)
		qsort(t.list, t.n, sizeof(*t.list), by_time);
	j->making = t.all / 1e9 / (double)j->lives;
	j->sampled = t.sampled;
	j->unsampled = t.unsampled && !t.sampled;
	if (t.n > 0 && t.samples >= HR_SAMPLES_LEAST)
		set_lines(j, &t);
	times_done(&t);
	for (size_t i = j->first; i < j->end; i++)
		j->model_samples += hr__job_has(j, i) ? lives->list[i].model_samples : 0;
	own_lines(j, HR_PHASE_TRAIN, &j->own_lines);
	own_lines(j, HR_PHASE_START, &j->start_lines);
	own_lines(j, HR_PHASE_VALIDATION, &j->validation_lines);
	own_lines(j, HR_OWN_BACKWARD, &j->backward_lines);
	own_lines(j, HR_OWN_OPTIMIZER, &j->optimizer_lines);
	own_lines(j, HR_OWN_COMPILER, &j->compiler_lines);
}
