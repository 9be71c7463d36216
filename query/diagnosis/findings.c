/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/findings_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/tables/each.h"
#include "query/tables/rows.h"

/* A smaller loss is no finding. Chosen, not measured: the spread of short jobs. */
#define LEAST_SECONDS 0.1
/*
 * A rank is named if it caused at least this share of a loss, and this many times as much as the
 * mean of the others. Chosen, not measured: half, so that no second rank can be named.
 */
#define RANK_SHARE  0.5
#define RANK_FACTOR 4
/*
 * A gain of more than this share of the loss comes from other waits, and of more than the second
 * one from the rest (HR_REST).
 */
#define NOTE_WAITS (HR_REST + 0.02)
#define NOTE_REST  1.01

enum { WAIT = 1, ITEM = 2, LOOP = 4, NOTED = 8 }; /* flags of causes.def */

static const struct {
	const char *name;
	/* Bits 1 << enum hr_part: the parts whose time this cause explains; 0: unknown. */
	uint64_t parts;
	unsigned flags;
	double low, high;
	const char *meaning, *note, *action;
} causes[] = {
#define P(part)		    (UINT64_C(1) << HR_PART_##part)
#define HR_FOUND(NAME, ...) {__VA_ARGS__},
#include "query/diagnosis/causes.def"
#undef HR_FOUND
#undef P
};

const char *hr_finding_name(enum hr_finding_cause cause)
{
	return causes[cause].name;
}

bool hr_finding_is_wait(enum hr_finding_cause cause)
{
	return causes[cause].flags & WAIT;
}

/* ---- the job ---- */

static int read_levels(struct hr_training_job *j)
{
	struct hr_query *q = j->d->q;

	struct hr_job_streams s = hr__job_streams(j->d, j->stream);

	for (size_t i = s.first; i < s.end; i++) {
		struct hr_frames frames = {0};
		int r;

		r = hr_frames_read(q, &q->streams[i], HEADRACE__FRAME__BODY_LEVELS, &frames);
		for (size_t k = 0; r == 0 && k < frames.n; k++)
			j->counters |= strcmp(frames.list[k]->levels->level, "counters") == 0;
		hr_frames_free(&frames);
		if (r < 0)
			return r;
	}
	return 0;
}

static void add_life(struct hr_training_job *j, const struct hr_train_life *life)
{
	for (size_t i = 0; i < life->n_loops; i++) {
		const struct hr_loop *l = &life->loops[i];

		j->all_loops++;
		if (!l->trains)
			continue;
		j->loop += (double)(l->to - l->from) / 1e9;
		j->loops++;
		j->workers = l->workers;
		j->prefetch = l->prefetch;
		j->persistent = l->persistent;
		j->other_kind = l->other_kind;
		j->own = l->own;
		j->waits += (double)l->n;
	}
	j->wall += (double)(life->to - life->from) / 1e9;
	j->cores += life->cores;
	j->quota = life->quota ? life->cores : 0;
	j->lives++;
}

/*
 * Adds the time of a training process. The time for which other ranks waited for this one counts as
 * what this rank did meanwhile, and not as stalls of the other ranks.
 */
static void add_parts(struct hr_training_job *j, size_t life)
{
	const struct hr_part_sums *sums = &j->d->sums[life], *caused = &j->d->caused[life];

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		for (unsigned part = 0; part < HR_PART_END; part++)
			if (part != HR_PART_STALL)
				j->part[phase][part] +=
				    (double)(sums->ns[phase][part] + caused->ns[phase][part]) /
				    1e9 / (double)j->lives;
}

/* Returns how many cores a training process (without its workers) uses at most in a part. */
static double busy_share(unsigned part, struct hr_main_use use)
{
	switch (part) {
	case HR_PART_COMPUTE:
	case HR_PART_BACKWARD:
	case HR_PART_COLLECTIVE:
	case HR_PART_OPTIMIZER:
		return (isnan(use.share) ? 1 : use.share) + use.others;
	case HR_PART_IMPORTS:
	case HR_PART_OTHER:
		return 1;
	default:
		return 0;
	}
}

static void add_used(struct hr_training_job *j, size_t life)
{
	const struct hr_part_sums *sums = &j->d->sums[life];
	struct hr_main_use use = hr_life_main_use(&j->d->lives.list[life]);

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		for (unsigned part = 0; part < HR_PART_END; part++)
			j->used += busy_share(part, use) * (double)sums->ns[phase][part] / 1e9;
}

/* Computes the means over all training processes of the job to which the process `life` belongs. */
static void make_job(struct hr_training_job *j, const struct hr_diagnosis *d, size_t life)
{
	struct hr_job_streams s = hr__job_streams(d, d->lives.list[life].stream);
	const struct hr_stream_firsts *first = &d->first[s.first], *end = &d->first[s.end];

	*j = (struct hr_training_job){.d = d,
				      .stream = d->lives.list[life].stream,
				      .first = first->life,
				      .end = end->life,
				      .first_fetch = first->fetch,
				      .end_fetch = end->fetch,
				      .first_item = first->item,
				      .end_item = end->item};
	for (size_t i = j->first; i < j->end; i++) {
		if (!hr__job_has(j, i))
			continue;
		add_life(j, &d->lives.list[i]);
		add_used(j, i);
	}
	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			add_parts(j, i);
	for (size_t i = j->first_fetch; i < j->end_fetch; i++) {
		if (hr__job_made(j, &d->lives.fetches[i]))
			j->used += (d->spent[i].cpu + d->spent[i].cached) / 1e9;
	}
	j->used /= j->wall;
	j->wall /= (double)j->lives;
	j->loop /= (double)j->lives;
	j->cores /= (double)j->lives;
	j->loops /= (double)j->lives;
	j->waits /= (double)j->lives;
}

double hr__job_part(const struct hr_training_job *j, enum hr_part part)
{
	double s = 0;

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		s += phase != HR_PHASE_VALIDATION ? j->part[phase][part] : 0;
	return s;
}

/* ---- findings ---- */

static struct hr_finding *add(struct hr_training_job *j, enum hr_finding_cause cause, double lost)
{
	struct hr_finding *f;

	if (!hr_array_reserve(j->to->list, j->to->n, j->to->room)) {
		j->error = -ENOMEM;
		return NULL;
	}
	f = &j->to->list[j->to->n++];
	*f = (struct hr_finding){.st = &j->d->q->streams[j->stream],
				 .cause = cause,
				 .lost = lost,
				 .wall = j->wall,
				 .gain_low = causes[cause].low * lost,
				 .gain_high = causes[cause].high * lost,
				 .action = causes[cause].action,
				 .rank = -1,
				 .worker = -1};
	return f;
}

struct hr_finding *hr__finding_add(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost)
{
	return lost < LEAST_SECONDS || lost < hr__worth(j) ? NULL : add(j, cause, lost);
}

const char *hr__finding_text(struct hr_training_job *j, const char *format, ...)
{
	va_list args;
	char *text = NULL, *copy;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	copy = n >= 0 ? hr_pool_get(&j->d->q->pool, (size_t)n + 1) : NULL;
	if (copy != NULL)
		memcpy(copy, text, (size_t)n + 1);
	else
		j->error = -ENOMEM;
	if (n >= 0)
		free(text);
	return copy;
}

/* ---- one rank of several ---- */

/* Returns the time of a cause in a training process, and in ranks that waited for this process. */
static double loss_of(const struct hr_training_job *j, enum hr_finding_cause cause, size_t life)
{
	double ns = 0;

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		for (unsigned part = 0; part < HR_PART_END; part++)
			if (causes[cause].parts >> part & 1 && phase != HR_PHASE_VALIDATION)
				ns += (double)(j->d->sums[life].ns[phase][part] +
					       j->d->caused[life].ns[phase][part]);
	return ns;
}

void hr__finding_rank(struct hr_training_job *j, struct hr_finding *f, size_t life)
{
	const struct hr_train_life *l = &j->d->lives.list[life];

	f->rank = l->rank;
	f->whose =
	    hr__finding_text(j, "rank %d on %s", l->rank, j->d->q->streams[l->stream].s->node);
}

/* Names the rank that caused most of a loss. */
static void find_rank(struct hr_training_job *j, struct hr_finding *f)
{
	double loss = 0, all = 0;
	size_t most = j->first;

	for (size_t i = j->first; i < j->end; i++) {
		double ns = hr__job_has(j, i) ? loss_of(j, f->cause, i) : 0;

		all += ns;
		if (ns <= loss)
			continue;
		loss = ns;
		most = i;
	}
	if (loss > 0 && j->d->lives.list[most].rank >= 0 && loss >= RANK_SHARE * all &&
	    RANK_FACTOR * (all - loss) <= loss * (double)(j->lives - 1))
		hr__finding_rank(j, f, most);
}

static int by_loss(const void *a, const void *b)
{
	const struct hr_finding *x = a, *y = b;

	return (x->lost < y->lost) - (x->lost > y->lost);
}

static void find_nothing(struct hr_training_job *j)
{
	const double *p = j->part[HR_PHASE_TRAIN];
	double computed =
	    p[HR_PART_COMPUTE] + p[HR_PART_OPTIMIZER] + p[HR_PART_BACKWARD] + p[HR_PART_COLLECTIVE];
	double start = 0, loop = 0, hidden = hr__job_part(j, HR_PART_WAIT_HIDDEN);
	struct hr_finding *f = add(j, HR_FOUND_NOTHING, 0);

	if (f == NULL)
		return;
	for (unsigned part = 0; part < HR_PART_END; part++) {
		start += j->part[HR_PHASE_START][part];
		loop += p[part];
	}
	f->evidence = hr__finding_text(
	    j,
	    "%.0f %% of the time is before the first loop; %.0f %% is in training loops, which "
	    "compute during %.0f %% of their time%s",
	    100 * start / j->wall, 100 * loop / j->wall, loop > 0 ? 100 * computed / loop : 0,
	    j->counters ? " (this includes reads and writes, because only counters were recorded)"
			: "");
	if (hidden >= hr__worth(j))
		f->evidence = hr__finding_text(j,
					       "the loop waits for batches in %.0f %% of the time, "
					       "but the accelerator still works on the step before",
					       100 * hidden / j->wall);
}

static void add_evidence(struct hr_training_job *j, struct hr_finding *f, const char *text)
{
	f->evidence = f->evidence != NULL ? hr__finding_text(j, "%s; %s", f->evidence, text) : text;
}

/* Adds how busy the accelerators were, to findings about waits and to HR_FOUND_NOTHING. */
static void add_busy(struct hr_training_job *j, struct hr_finding *f)
{
	double asked = 0, busy = 0, hidden = hr__job_part(j, HR_PART_WAIT_HIDDEN);

	for (size_t i = j->first; i < j->end; i++) {
		asked += hr__job_has(j, i) ? j->d->lives.list[i].asked_ns : 0;
		busy += hr__job_has(j, i) ? j->d->lives.list[i].busy_ns : 0;
	}
	if (!hr_finding_is_wait(f->cause) && f->cause != HR_FOUND_NOTHING)
		return;
	if (f->cause != HR_FOUND_NOTHING && hidden >= hr__worth(j))
		add_evidence(j, f,
			     hr__finding_text(j,
					      "during another %s of waits, the accelerator still "
					      "worked, so they cost no time",
					      hr__seconds(hidden).s));
	if (asked > 0)
		add_evidence(
		    j, f,
		    hr__finding_text(j, "the accelerator was busy for %.0f %% of the time (NVML)",
				     100 * busy / asked));
}

/* ---- the text ---- */

/* Returns the text of a cause, with the words for those who make the batches: {workers|threads}. */
static const char *meaning_of(struct hr_training_job *j, enum hr_finding_cause cause)
{
	bool workers = j->workers > 0 || (j->other_kind && !j->own);
	const char *text = causes[cause].meaning, *from = strchr(text, '{'), *to, *other;

	if (from == NULL)
		return text;
	to = strchr(from, '}');
	other = strchr(from, '|') + 1;
	return hr__finding_text(j, "%.*s%.*s%s", (int)(from - text), text,
				(int)(workers ? other - 1 - (from + 1) : to - other),
				workers ? from + 1 : other, to + 1);
}

/* ---- the place ---- */

/* Returns which code to look at, for a cause that names no file; NULL: unknown. */
static const char *code_of(const struct hr_training_job *j, enum hr_finding_cause cause)
{
	if (causes[cause].flags & LOOP)
		return "the training loop";
	if (!(causes[cause].flags & ITEM))
		return NULL;
	if (j->own)
		return "the code in the waits that the program has marked";
	return j->workers > 0 ? "__getitem__ of the data set or collate_fn, in the workers"
			      : "__getitem__ of the data set or collate_fn, in the training thread "
				"(no workers)";
}

static const char *gain_note(const struct hr_finding *f)
{
	const char *note = causes[f->cause].note;

	if (f->gain_note != NULL)
		return f->gain_note;
	if (causes[f->cause].flags & NOTED)
		return note;
	if (f->gain_high > NOTE_WAITS * f->lost)
		return note != NULL ? note : "other waits for batches also become shorter";
	return f->gain_high > NOTE_REST * f->lost ? "the rest also runs a little faster" : NULL;
}

/* Example: "rank 1 on node7: worker 2 of 4, counted from 0: /set/ (files of the mount /nfs)". */
static void set_place(struct hr_training_job *j, struct hr_finding *f)
{
	const char *where = hr_text_or_null(f->object), *worker = NULL;
	const char *whose = f->whose;
	size_t mount = f->mount != NULL ? strlen(f->mount) : 0;

	while (mount > 0 && f->mount[mount - 1] == '/')
		mount--;
	/* The path can contain links to another mount. */
	if (where != NULL && mount > 0 &&
	    (strncmp(where, f->mount, mount) != 0 || (where[mount] != '/' && where[mount] != '\0')))
		where = hr__finding_text(j, "%s (files of the mount %s)", where, f->mount);
	if (where == NULL)
		where = code_of(j, f->cause);
	if (f->worker >= 0)
		worker = hr__finding_text(j, "worker %lld of %u, counted from 0",
					  (long long)f->worker, j->workers);
	if (whose == NULL && f->rank >= 0)
		whose = hr__finding_text(j, "rank %d", f->rank);
	f->place = hr__finding_text(j, "%s%s%s%s%s", whose != NULL ? whose : "",
				    whose != NULL && (worker != NULL || where != NULL) ? ": " : "",
				    worker != NULL ? worker : "",
				    worker != NULL && where != NULL ? ": " : "",
				    where != NULL ? where : "");
	if (f->place != NULL && f->place[0] == '\0')
		f->place = NULL;
}

static int find(struct hr_training_job *j)
{
	size_t first = j->to->n;
	struct hr_job_files files;

	hr__job_files(j, &files);
	hr__find_waits(j, &files);
	hr__find_others(j, &files);
	if (j->to->n == first)
		find_nothing(j);
	for (size_t i = first; j->lives > 1 && i < j->to->n; i++)
		find_rank(j, &j->to->list[i]);
	for (size_t i = first; i < j->to->n; i++) {
		add_busy(j, &j->to->list[i]);
		set_place(j, &j->to->list[i]);
		j->to->list[i].meaning = meaning_of(j, j->to->list[i].cause);
		j->to->list[i].gain_note = gain_note(&j->to->list[i]);
	}
	if (j->to->n > first)
		qsort(j->to->list + first, j->to->n - first, sizeof(*j->to->list), by_loss);
	return j->error;
}

int hr_findings_make(const struct hr_diagnosis *d, struct hr_findings *ret)
{
	size_t next = 0; /* index of the first training process of the next job */
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->lives.n; i++) {
		struct hr_training_job job;

		if (i < next ||
		    (d->scope.rank != HR_ANY_RANK && d->scope.rank != d->lives.list[i].rank))
			continue;
		make_job(&job, d, i);
		job.to = ret;
		next = job.end;
		r = read_levels(&job);
		r = r < 0 ? r : find(&job);
		hr__job_replay_done(&job);
	}
	return r;
}

void hr_findings_done(struct hr_findings *f)
{
	free(f->list);
}
