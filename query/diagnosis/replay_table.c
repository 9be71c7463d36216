/* SPDX-License-Identifier: Apache-2.0 */
/* replays: how long the training loops of each rank would take with other settings. */
#include <errno.h>
#include <stdlib.h>

#include "query/diagnosis/replay.h"
#include "query/tables/rows.h"

static const char *const parameters[] = {"workers", "prefetch", "persistent", "cores", "io", NULL};
enum { WORKERS, PREFETCH, PERSISTENT, CORES, IO };

struct replays {
	struct hr_diagnosis d;
	struct hr_replayed *list; /* of each life */
};

static bool is_number(const char *text, double least, double most)
{
	char *end;
	double value = text != NULL ? strtod(text, &end) : least;

	return text == NULL || (*text != '\0' && *end == '\0' && value >= least && value <= most);
}

static const char *replay_check(const char *const *p)
{
	if (!is_number(p[WORKERS], 0, 1024))
		return "hr_replays: `workers` must be a number from 0 to 1024";
	if (!is_number(p[PREFETCH], 1, 1024))
		return "hr_replays: `prefetch` must be a number from 1 to 1024";
	if (p[PERSISTENT] != NULL && strcmp(p[PERSISTENT], "true") != 0 &&
	    strcmp(p[PERSISTENT], "false") != 0)
		return "hr_replays: `persistent` must be true or false";
	if (!is_number(p[CORES], 1, 65536))
		return "hr_replays: `cores` must be a number from 1 to 65536";
	if (!is_number(p[IO], 0, 1000000))
		return "hr_replays: `io` must be a number from 0 to 1000000";
	return NULL;
}

static double number(const char *text, double absent)
{
	return text != NULL ? strtod(text, NULL) : absent;
}

static int replay_gather(struct hr_rows *rows, uint64_t want)
{
	const char *const *p = rows->parameters;
	struct hr_setting setting = {
	    .workers = (uint32_t)number(p[WORKERS], HR_REPLAY_SAME),
	    .prefetch = (uint32_t)number(p[PREFETCH], HR_REPLAY_SAME),
	    .persistent = p[PERSISTENT] != NULL && strcmp(p[PERSISTENT], "true") == 0,
	    .cores = number(p[CORES], 0),
	    .io = number(p[IO], 1),
	};
	struct replays *all = calloc(1, sizeof(*all));
	int r;

	(void)want;
	rows->data = all;
	if (all == NULL)
		return -ENOMEM;
	r = hr_diagnosis_make(rows->q, &all->d);
	if (r == 0 && (all->list = calloc(all->d.lives.n + 1, sizeof(*all->list))) == NULL)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < all->d.lives.n; i++)
		r = hr_replay(&all->d, &all->d.lives.list[i], &setting, &all->list[i]);
	rows->n = all->d.lives.n;
	return r;
}

static void replay_done(struct hr_rows *rows)
{
	struct replays *all = rows->data;

	if (all != NULL) {
		hr_diagnosis_done(&all->d);
		free(all->list);
	}
	free(all);
	rows->data = NULL;
}

static const struct hr_train_life *replay_life(const struct hr_rows *rows, size_t row)
{
	return &((const struct replays *)rows->data)->d.lives.list[row];
}

static uint64_t replay_proc(const struct hr_rows *rows, size_t row)
{
	return replay_life(rows, row)->proc;
}

static const struct hr_qstream *replay_stream(const struct hr_rows *rows, size_t row)
{
	return &rows->q->streams[replay_life(rows, row)->stream];
}

static const char *const refusals[] = {
    [HR_REPLAY_NO_LOOP] = "no loop over a PyTorch DataLoader trains",
    [HR_REPLAY_UNKNOWN_FETCH] = "the fetches of some batches were not recorded",
    [HR_REPLAY_DIFFERS] = "with the recorded settings, the replay differs by more than 5 %",
};

static void replay_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct hr_replayed *r = &((const struct replays *)rows->data)->list[row];

	c->null = r->refusal == HR_REPLAY_NO_LOOP || r->refusal == HR_REPLAY_UNKNOWN_FETCH;
	switch (column) {
	case HR_REPLAYS_recorded_ns:
		c->i = (int64_t)(r->recorded * 1e9);
		break;
	case HR_REPLAYS_replayed_ns:
		c->i = (int64_t)(r->replayed * 1e9);
		break;
	case HR_REPLAYS_low_ns:
		c->i = (int64_t)(r->low * 1e9);
		c->null = r->refusal != HR_REPLAY_OK;
		break;
	case HR_REPLAYS_high_ns:
		c->i = (int64_t)(r->high * 1e9);
		c->null = r->refusal != HR_REPLAY_OK;
		break;
	default:
		hr__cell_constant(c, refusals[r->refusal]);
	}
}

const struct hr_row_kind hr__replays_kind = {
    .table = HR_TABLE_REPLAYS,
    .parameters = parameters,
    .check = replay_check,
    .gather = replay_gather,
    .done = replay_done,
    .proc = replay_proc,
    .stream = replay_stream,
    .cell = replay_cell,
};
