/* SPDX-License-Identifier: Apache-2.0 */
/* The table `waits`: what each wait for a batch was spent on, and which worker it waited for. */
#include <errno.h>

#include "query/diagnosis/parts_internal.h"
#include "query/tables/rows.h"

/* ---- rows ---- */

/*
 * A wait is cut into pieces where the worker of its batch begins or ends a batch. A row has the
 * time of one part (parts.def) of one piece. The rows of a piece follow each other, and add up to
 * the piece.
 */
struct wait_row {
	const struct hr_train_life *life;
	const struct hr_block *piece;
	int64_t from, to; /* start and end of the wait */
	uint64_t batch;	  /* UINT64_MAX: none, or unknown */
	/* the process that makes a batch during the piece; 0: none, or unknown */
	uint64_t maker;
	uint32_t maker_tid;
	uint8_t part;
	uint64_t ns;
};

static void find_maker(const struct hr_diagnosis *d, struct wait_row *row)
{
	uint32_t worker;

	if (row->piece->kind == HR_BLOCK_UNKNOWN) {
		row->maker = row->life->proc;
		row->maker_tid = row->life->tid;
	}
	if (row->piece->kind != HR_BLOCK_FETCH)
		return;
	worker = d->lives.fetches[row->piece->fetch].worker;
	row->maker = worker != HR_NO_FETCH ? d->lives.workers[worker].proc : row->life->proc;
	row->maker_tid = worker != HR_NO_FETCH ? d->lives.workers[worker].tid : row->life->tid;
}

static int add_piece(const struct hr_diagnosis *d, const struct hr_train_life *life,
		     const struct hr_block *b, struct hr_rows *to)
{
	const struct hr_wait *wait = hr_block_wait(life, b);
	struct wait_row row = {.life = life,
			       .piece = b,
			       .from = wait != NULL ? wait->from : b->from,
			       .to = wait != NULL ? wait->to : b->to,
			       .batch = wait != NULL ? wait->batch : UINT64_MAX};
	double parts[HR_PART_END] = {0};
	uint64_t ns[HR_PART_END];

	find_maker(d, &row);
	hr__block_parts(d, b, INT64_MIN, parts);
	hr__whole_ns(parts, (uint64_t)(b->to - b->from), ns);
	for (unsigned part = 0; part < HR_PART_END; part++) {
		struct wait_row *new;

		if (ns[part] == 0)
			continue;
		new = hr_rows_add(to, sizeof(*new));
		if (new == NULL)
			return -ENOMEM;
		row.part = (uint8_t)part;
		row.ns = ns[part];
		*new = row;
	}
	return 0;
}

static int add_pieces(const struct hr_diagnosis *d, const struct hr_train_life *life,
		      const struct hr_longest_wait *within, struct hr_rows *to)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < life->n; k++) {
		const struct hr_block *b = &life->blocks[k];

		if ((hr_block_costs(b) || b->kind == HR_BLOCK_HIDDEN) && b->from >= within->from &&
		    b->to <= within->to)
			r = add_piece(d, life, b, to);
	}
	return r;
}

/* ---- the table ---- */

static const char *const parameters[] = {"longest", NULL};

static const char *waits_check(const char *const *p)
{
	if (p[0] != NULL && strcmp(p[0], "true") != 0 && strcmp(p[0], "false") != 0)
		return "hr_waits: `longest` must be true or false";
	return NULL;
}

static int waits_gather(struct hr_rows *rows, uint64_t want)
{
	static const struct hr_longest_wait any = {INT64_MIN, INT64_MAX};
	const char *parameter = rows->parameters[0];
	bool longest = parameter != NULL && strcmp(parameter, "true") == 0;
	const struct hr_diagnosis *d;
	int r = hr_diagnosis_shared(rows->q, &d);

	(void)want;
	for (size_t i = 0; r == 0 && !longest && i < d->lives.n; i++)
		r = add_pieces(d, &d->lives.list[i], &any, rows);
	for (uint32_t job = 0; r == 0 && longest && job < d->n_jobs; job++) {
		const struct hr_train_life *life = hr__longest_waiter(d, job);

		if (life != NULL)
			r = add_pieces(d, life, &d->longest[life - d->lives.list], rows);
	}
	return r;
}

static const void *waits_row(const struct hr_rows *rows, size_t row)
{
	const struct wait_row *w = (const struct wait_row *)rows->data + row;

	rows->made->wait =
	    (struct hr_wait_row){.of = {&rows->q->streams[w->life->stream], w->life->proc},
				 .epoch = w->piece->epoch,
				 .step = w->piece->step,
				 .loop_loader = hr_block_loader(w->life, w->piece),
				 .phase = hr_phase_name(w->piece->phase),
				 .batch = w->batch,
				 .start_ns = w->from,
				 .dur_ns = w->to - w->from,
				 .piece_ns = w->piece->from,
				 .piece_dur_ns = w->piece->to - w->piece->from,
				 .maker = w->maker,
				 .maker_tid = w->maker_tid,
				 .part = hr_part_name(w->part),
				 .ns = w->ns};
	return &rows->made->wait;
}

const struct hr_row_kind hr_waits_kind = {
    .table = HR_TABLE_WAITS,
    .all = true,
    .many = true,
    .parameters = parameters,
    .check = waits_check,
    .gather = waits_gather,
    .row = waits_row,
};
