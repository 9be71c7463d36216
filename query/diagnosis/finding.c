/* SPDX-License-Identifier: Apache-2.0 */
/* One finding: its cause (causes.def), its texts, its place, and the rank that it is about. */
#include "query/diagnosis/findings_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

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
/*
 * A finding names a line if at least this share of the time in which loops waited while a batch was
 * made belongs to the cause and to the line. Chosen, not measured.
 */
#define LINE_SURE 0.3
/* A cause of so much of the time in which batches are made is in their lines. Chosen. */
#define MOSTLY 0.5

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

const char *hr__cause_action(enum hr_finding_cause cause)
{
	return causes[cause].action;
}

struct hr_finding *hr__finding_new(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost)
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
	return lost < LEAST_SECONDS || lost < hr__worth(j) ? NULL : hr__finding_new(j, cause, lost);
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
	const char *name = j->d->q->streams[l->stream].s->node;
	char node[1024];

	hr_text_escape(node, sizeof(node), name, strlen(name));
	f->rank = l->rank;
	f->whose = hr__finding_text(j, "rank %d on %s", l->rank, node);
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

/* ---- the text ---- */

/* Returns the text of a cause, with the words for those who make the batches: {workers|threads}. */
static const char *meaning_of(struct hr_training_job *j, enum hr_finding_cause cause)
{
	bool workers = hr__has_workers(j);
	const char *text = causes[cause].meaning, *from = strchr(text, '{'), *to, *other;

	if (from == NULL)
		return text;
	to = strchr(from, '}');
	other = strchr(from, '|') + 1;
	return hr__finding_text(j, "%.*s%.*s%s", (int)(from - text), text,
				(int)(workers ? other - 1 - (from + 1) : to - other),
				workers ? from + 1 : other, to + 1);
}

/* ---- the line ---- */

double hr__line_seconds(const struct hr_training_job *j, const struct hr_finding *f)
{
	double sure;

	if (j->line == NULL || !(causes[f->cause].flags & ITEM))
		return 0;
	sure = fmin(1, f->lost / j->making) + j->line_share - 1;
	return sure >= LINE_SURE ? sure * j->making : 0;
}

const char *hr__find_line(struct hr_training_job *j, const struct hr_finding *f)
{
	if (hr__line_seconds(j, f) > 0)
		return "";
	if (j->sampled)
		return "; `headrace query STORE blame by=line` lists the lines";
	return j->unsampled ? "; to find the line, record it with `headrace run`, without "
			      "--no-stacks, and use `headrace query STORE blame by=line`"
			    : "; " HR_FIND_STACK;
}

/* ---- the place ---- */

const char *hr__set_loader(struct hr_training_job *j, const char *name, uint32_t to, uint32_t now)
{
	return hr__finding_text(j, "set %s=%u of the DataLoader (%s%snow %u)", name, to,
				j->made != NULL ? j->made : "", j->made != NULL ? ", " : "", now);
}

const char *hr__raise_quota(struct hr_training_job *j)
{
	return hr__finding_text(
	    j, "raise the CPU quota (cpu.max of the cgroup, now %g cores for each rank)", j->quota);
}

/* Returns which code to look at, for a cause that names no file; NULL: unknown. */
static const char *code_of(struct hr_training_job *j, const struct hr_finding *f)
{
	if (f->line != NULL)
		return f->line;
	if (causes[f->cause].flags & LOOP)
		return "the training loop";
	if (!(causes[f->cause].flags & ITEM))
		return hr_finding_is_wait(f->cause) && j->made != NULL
			   ? hr__finding_text(j, "%s (the DataLoader)", j->made)
			   : NULL;
	if (hr__line_seconds(j, f) > 0)
		return hr__finding_text(j, "%s (%.0f %% of the wait)", j->line,
					100 * j->line_share);
	if (j->lines != NULL && f->lost >= MOSTLY * j->making)
		return j->lines;
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
		where = code_of(j, f);
	if (f->worker >= 0 && j->workers == 0) /* the first wait has not ended */
		worker = hr__finding_text(j, "worker %lld, counted from 0", (long long)f->worker);
	else if (f->worker >= 0)
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

void hr__finding_describe(struct hr_training_job *j, struct hr_finding *f)
{
	f->gain_high = fmin(f->gain_high, j->wall);
	f->gain_low = fmin(f->gain_low, f->gain_high);
	if (j->lives > 1)
		find_rank(j, f);
	set_place(j, f);
	if (f->meaning == NULL)
		f->meaning = meaning_of(j, f->cause);
	f->gain_note = gain_note(f);
}
