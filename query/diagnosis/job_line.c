/* SPDX-License-Identifier: Apache-2.0 */
/* The line of Python in which batches were made while the training loops waited for them. */
#include "query/diagnosis/findings_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/map64.h"

/* A longer fetch has a sample, if stacks are recorded (python/stacks.h). */
#define SAMPLED_NS 40000000

struct line_time {
	const char *line;
	double ns;
};

struct line_times {
	struct line_time *list;
	size_t n, room;
	struct hr_map64 by_text; /* from a hash of the text to its index in `list` */
	double all;		 /* ns of waits while a batch was made, sampled or not */
	bool sampled, unsampled;
};

static int time_add(struct line_times *t, const char *line, double ns)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, line, strlen(line));
	uint32_t i = hr_map64_get(&t->by_text, hash);

	if (i == HR_MAP64_NONE) {
		i = (uint32_t)t->n;
		if (!hr_array_reserve(t->list, t->n, t->room) ||
		    hr_map64_set(&t->by_text, hash, i) < 0)
			return -ENOMEM;
		t->list[t->n++] = (struct line_time){.line = line};
	}
	t->list[i].ns += ns;
	return 0;
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

		if (from < to && part->line != NULL)
			r = time_add(t, part->line, (double)(to - from));
	}
	return r;
}

void hr__job_line(struct hr_training_job *j)
{
	const struct hr_train_lives *lives = &j->d->lives;
	const struct line_time *most = NULL;
	struct line_times t = {0};

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &lives->list[i];

		for (size_t k = 0; k < life->n && j->error == 0 && hr__job_has(j, i); k++)
			if (life->blocks[k].kind == HR_BLOCK_FETCH &&
			    hr_phase_loops(life->blocks[k].phase))
				j->error = block_add(&t, lives, &life->blocks[k]);
	}
	for (size_t i = 0; i < t.n; i++)
		if (most == NULL || t.list[i].ns > most->ns)
			most = &t.list[i];
	j->making = t.all / 1e9 / (double)j->lives;
	j->sampled = t.sampled;
	j->unsampled = t.unsampled && !t.sampled;
	if (most != NULL) {
		j->line = hr__path_text(j, (const uint8_t *)most->line, strlen(most->line));
		j->line_share = most->ns / t.all;
	}
	free(t.list);
	hr_map64_done(&t.by_text);
}
