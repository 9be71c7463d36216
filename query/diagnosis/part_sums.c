/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table function hr_part_sums(): the parts of each step, added up over all training processes
 * of a job, and the parts of each training process, added up over pieces of the job's time. A large
 * job has far fewer of these sums than rows in the table `parts`.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/text.h"
#include "query/tables/each.h"
#include "query/diagnosis/parts_internal.h"
#include "query/tables/rows.h"

#define SLOTS_MIN   1024u
#define PIECES_MOST 100000u

/* The time of one part: in one step, or in one process during one piece of the job's time. */
struct sum {
	uint64_t proc;	 /* 0: the sum of a step */
	uint64_t step;	 /* HR_REGION_UNKNOWN: the sum of a process */
	int64_t piece;	 /* sum of a process: the number of the piece */
	uint32_t stream; /* sum of a step: the stream of any process */
	uint32_t job;
	uint8_t phase; /* sum of a step only */
	uint8_t part;
	int64_t start_ns; /* the earliest start */
	uint64_t ns;
};

/* Sums of steps, and a hash table of them. A slot is an index plus 1; 0: the slot is free. */
struct step_sums {
	struct sum *list;
	size_t n, room;
	uint32_t *slots;
	size_t n_slots;
};

struct piece_sums {
	struct sum *list;
	size_t n, room;
	size_t last; /* index of the first sum of the last process and piece */
};

struct part_sums {
	const struct hr_diagnosis *d;
	struct hr_job_span *jobs; /* start and end of each job; `pieces` parts of this time */
	int64_t pieces;
	_Atomic size_t next; /* index of the next training process */
	pthread_mutex_t lock;
	struct step_sums steps;
	struct piece_sums processes;
	int error;
};

static void add_to(struct sum *to, const struct sum *sum)
{
	to->start_ns = sum->start_ns < to->start_ns ? sum->start_ns : to->start_ns;
	to->ns += sum->ns;
}

/* ---- steps ---- */

static uint32_t *slot_of(const struct step_sums *s, const struct sum *key)
{
	uint64_t hash = (key->step * HR_PART_END + key->part) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 20) & (s->n_slots - 1);

	for (; s->slots[at] != 0; at = (at + 1) & (s->n_slots - 1)) {
		const struct sum *other = &s->list[s->slots[at] - 1];

		if (other->step == key->step && other->part == key->part &&
		    other->phase == key->phase && other->job == key->job)
			break;
	}
	return &s->slots[at];
}

static int grow(struct step_sums *s)
{
	size_t n = s->n_slots > 0 ? 2 * s->n_slots : SLOTS_MIN;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	free(s->slots);
	s->slots = slots;
	s->n_slots = n;
	for (size_t i = 0; i < s->n; i++)
		*slot_of(s, &s->list[i]) = (uint32_t)i + 1;
	return 0;
}

static int add_to_step(struct step_sums *s, const struct sum *sum)
{
	uint32_t *slot;

	if (2 * s->n >= s->n_slots && grow(s) < 0)
		return -ENOMEM;
	slot = slot_of(s, sum);
	if (*slot != 0) {
		add_to(&s->list[*slot - 1], sum);
		return 0;
	}
	if (!hr_array_reserve(s->list, s->n, s->room))
		return -ENOMEM;
	s->list[s->n++] = *sum;
	*slot = (uint32_t)s->n;
	return 0;
}

/* ---- processes ---- */

/* A process's sums are added in the order of time: sums of a piece follow each other. -ENOMEM. */
static int add_to_piece(struct piece_sums *p, const struct sum *sum)
{
	const struct sum *last = p->last < p->n ? &p->list[p->last] : NULL;

	if (last != NULL &&
	    (last->proc != sum->proc || last->stream != sum->stream || last->piece != sum->piece))
		p->last = p->n;
	for (size_t i = p->last; last != NULL && i < p->n; i++) {
		if (p->list[i].part != sum->part)
			continue;
		add_to(&p->list[i], sum);
		return 0;
	}
	if (!hr_array_reserve(p->list, p->n, p->room))
		return -ENOMEM;
	p->list[p->n++] = *sum;
	return 0;
}

/* ---- lives ---- */

struct own_sums {
	const struct part_sums *of;
	struct step_sums steps;
	struct piece_sums processes;
};

static int64_t piece_of(const struct part_sums *s, uint32_t job, int64_t start_ns)
{
	const struct hr_job_span *span = &s->jobs[job];
	int64_t all, since;

	/* A damaged store can contain any time. */
	if (__builtin_sub_overflow(span->until, span->from, &all) ||
	    __builtin_sub_overflow(start_ns, span->from, &since))
		return 0;
	return since / (all > s->pieces ? all / s->pieces : 1);
}

static int add_parts(void *data, const struct hr_train_life *life, const struct hr_block *first,
		     const uint64_t ns[HR_PART_END])
{
	struct own_sums *own = data;
	struct sum of_process = {.proc = life->proc,
				 .step = HR_REGION_UNKNOWN,
				 .stream = life->stream,
				 .job = own->of->d->jobs[life->stream],
				 .start_ns = first->from};
	struct sum of_step = of_process;
	int r = 0;

	of_process.piece = piece_of(own->of, of_process.job, first->from);
	of_step.proc = 0;
	of_step.step = first->step;
	of_step.phase = first->phase;
	for (unsigned part = 0; r == 0 && part < HR_PART_END; part++) {
		if (ns[part] == 0)
			continue;
		of_process.part = of_step.part = (uint8_t)part;
		of_process.ns = of_step.ns = ns[part];
		r = add_to_piece(&own->processes, &of_process);
		if (r == 0 && of_step.step != HR_REGION_UNKNOWN)
			r = add_to_step(&own->steps, &of_step);
	}
	return r;
}

static int merge(struct part_sums *to, const struct own_sums *own)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < own->steps.n; i++)
		r = add_to_step(&to->steps, &own->steps.list[i]);
	for (size_t i = 0; r == 0 && i < own->processes.n; i++)
		r = add_to_piece(&to->processes, &own->processes.list[i]);
	return r;
}

static void *add_lives(void *data)
{
	struct part_sums *s = data;
	struct own_sums own = {.of = s};
	int error = 0;
	size_t i;

	while (error == 0 && (i = atomic_fetch_add(&s->next, 1)) < s->d->lives.n)
		error = hr__parts_each(s->d, i, add_parts, &own);
	pthread_mutex_lock(&s->lock);
	if (error == 0)
		error = merge(s, &own);
	s->error = error < 0 ? error : s->error;
	pthread_mutex_unlock(&s->lock);
	free(own.steps.list);
	free(own.steps.slots);
	free(own.processes.list);
	return NULL;
}

/* ---- the table ---- */

static const char *const parameters[] = {"pieces", NULL};

static const char *sums_check(const char *const *p)
{
	uint64_t pieces;

	if (p[0] != NULL && (hr_text_parse_uint(p[0], PIECES_MOST, &pieces) < 0 || pieces == 0))
		return "hr_part_sums: `pieces` must be a whole number from 1 to 100000";
	return NULL;
}

static int sums_gather(struct hr_rows *rows, uint64_t want)
{
	struct part_sums *s = calloc(1, sizeof(*s));
	int r;

	(void)want;
	rows->data = s;
	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->pieces = rows->parameters[0] != NULL ? strtol(rows->parameters[0], NULL, 10) : 1;
	r = hr_diagnosis_shared(rows->q, &s->d);
	if (r == 0)
		r = hr__job_times(s->d, &s->jobs);
	if (r == 0) {
		hr_threads_run(rows->q->threads, add_lives, s);
		r = s->error;
	}
	rows->n = s->steps.n + s->processes.n;
	return r;
}

static void sums_done(struct hr_rows *rows)
{
	struct part_sums *s = rows->data;

	if (s == NULL)
		return;
	free(s->jobs);
	free(s->steps.list);
	free(s->steps.slots);
	free(s->processes.list);
	pthread_mutex_destroy(&s->lock);
	free(s);
	rows->data = NULL;
}

static const void *sums_row(const struct hr_rows *rows, size_t row)
{
	const struct part_sums *s = rows->data;
	const struct sum *at =
	    row < s->steps.n ? &s->steps.list[row] : &s->processes.list[row - s->steps.n];
	bool of_step = at->step != HR_REGION_UNKNOWN;

	rows->made->part = (struct hr_part_row){.of = {&rows->q->streams[at->stream], at->proc},
						.epoch = HR_REGION_UNKNOWN,
						.step = at->step,
						.loop_loader = UINT64_MAX,
						.phase = of_step ? hr_phase_name(at->phase) : NULL,
						.part = hr_part_name(at->part),
						.start_ns = at->start_ns,
						.ns = at->ns};
	return &rows->made->part;
}

const struct hr_row_kind hr_part_sums_kind = {
    .table = HR_TABLE_PARTS,
    .function = "hr_part_sums",
    .all = true,
    .many = true,
    .parameters = parameters,
    .check = sums_check,
    .gather = sums_gather,
    .done = sums_done,
    .row = sums_row,
};
