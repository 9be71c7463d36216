/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of Python in which batches were made: samples of stacks (proto/args.def: `stacks`). */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/json_part.h"
#include "proto/args.h"
#include "query/diagnosis/parts.h"

const char *hr__line_text(struct hr_life_reader *r, const struct hr_json_part *line)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, line->p, line->n);
	uint32_t i = hr_map64_get(&r->line_numbers, hash);
	char *text;

	if (i != HR_MAP64_NONE)
		return r->line_texts[i];
	i = (uint32_t)r->n_line_texts;
	if (!hr_array_reserve(r->line_texts, r->n_line_texts, r->line_texts_room) ||
	    hr_map64_set(&r->line_numbers, hash, i) < 0)
		return NULL;
	text = hr_pool_get(&r->q->pool, line->n + 1);
	if (text == NULL)
		return NULL;
	text[hr_json_part_text(line, text)] = '\0';
	r->line_texts[r->n_line_texts++] = text;
	return text;
}

static int add_part(struct hr_life_reader *r, const struct hr_json_part *part, int64_t began)
{
	struct hr_train_lives *to = r->to;
	struct hr_json_part from, line, samples;
	const char *text;
	int64_t ns, n = 1;

	if (!hr_json_part_find(part->p, part->n, HR_ARGS_FROM_NS, &from) ||
	    !hr_json_part_int(&from, &ns) || ns < 0 ||
	    !hr_json_part_find(part->p, part->n, HR_ARGS_LINE, &line) ||
	    line.type != HR_JSON_STRING)
		return 0;
	if (hr_json_part_find(part->p, part->n, HR_ARGS_SAMPLES, &samples))
		hr_json_part_int(&samples, &n);
	text = hr__line_text(r, &line);
	if (text == NULL)
		return -ENOMEM;
	if (!hr_array_reserve(to->lines, to->n_lines, to->lines_room))
		return -ENOMEM;
	to->lines[to->n_lines++] = (struct hr_line_part){
	    .from = hr_end_ns(began, (uint64_t)ns), .samples = (uint32_t)n, .line = text};
	return 0;
}

int hr__lines_add(struct hr_life_reader *r, const uint8_t *at, const uint8_t *end,
		  struct hr_mark *to)
{
	const char *p = (const char *)at;
	struct hr_json_part list, part;
	int error = 0;

	to->first_line = (uint32_t)r->to->n_lines;
	if (hr_json_part_read(&p, (const char *)end, &list) < 0 || list.type != HR_JSON_ARRAY)
		return 0;
	p = list.p + 1;
	while (error == 0 && hr__next_of(&list, &p, &part))
		error = add_part(r, &part, to->from);
	to->n_lines = (uint32_t)r->to->n_lines - to->first_line;
	return error;
}

/* Returns the innermost frame of a stack, or `line`. NULL: memory is short. */
static const char *inner_text(struct hr_life_reader *r, const struct hr_json_part *stack,
			      const char *line)
{
	struct hr_json_part frames;
	const char *end;

	if (!hr_json_part_find(stack->p, stack->n, HR_ARGS_STACK, &frames) ||
	    frames.type != HR_JSON_STRING)
		return line;
	end = memmem(frames.p, frames.n, " < ", 3);
	if (end != NULL)
		frames.n = (size_t)(end - frames.p);
	return hr__line_text(r, &frames);
}

/* Returns the framework that compiles a function for a stack; NULL: none, or an unknown one. */
static const char *compiler_of(const struct hr_json_part *stack)
{
	static const char *const known[] = {"jax", "torch", "tensorflow"};
	struct hr_json_part part;

	if (!hr_json_part_find(stack->p, stack->n, HR_ARGS_COMPILER, &part))
		return NULL;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (hr_json_part_is(&part, known[i]))
			return known[i];
	return NULL;
}

/* Adds the samples of a stack; `point` is that of the mark. */
static int add_points(struct hr_life_reader *r, const struct hr_json_part *stack,
		      struct hr_line_point point)
{
	struct hr_json_part line, list, ago, part;
	bool model = hr_json_part_find(stack->p, stack->n, HR_ARGS_MODEL, &part);
	const char *p;
	int64_t ns;

	if (!hr_json_part_find(stack->p, stack->n, HR_ARGS_LINE, &line) ||
	    line.type != HR_JSON_STRING ||
	    !hr_json_part_find(stack->p, stack->n, HR_ARGS_AGO_NS, &list) ||
	    list.type != HR_JSON_ARRAY)
		return 0;
	point.compiler = compiler_of(stack);
	if (!model || point.compiler != NULL) {
		point.line = hr__line_text(r, &line);
		point.inner = point.line != NULL ? inner_text(r, stack, point.line) : NULL;
		if (point.inner == NULL)
			return -ENOMEM;
	}
	p = list.p + 1;
	while (hr__next_of(&list, &p, &ago)) {
		struct hr_line_point one = point;

		if (!hr_json_part_int(&ago, &ns) || ns < 0)
			continue;
		one.at -= ns;
		if (!hr_array_reserve(r->points, r->n_points, r->points_room))
			return -ENOMEM;
		r->points[r->n_points++] = one;
	}
	return 0;
}

int hr__points_add(struct hr_life_reader *r, const ProtobufCBinaryData *args, uint64_t proc,
		   int64_t at)
{
	struct hr_line_point point = {.proc = proc, .at = at};
	struct hr_json_part every, list, stack;
	const char *p;
	int64_t ns;
	int error = 0;

	if (!hr_json_part_find(args->data, args->len, HR_ARGS_EVERY_NS, &every) ||
	    !hr_json_part_int(&every, &ns) || ns < 0 ||
	    !hr_json_part_find(args->data, args->len, HR_ARGS_STACKS, &list) ||
	    list.type != HR_JSON_ARRAY)
		return 0;
	point.every_ns = (uint64_t)ns;
	p = list.p + 1;
	while (error == 0 && hr__next_of(&list, &p, &stack))
		error = add_points(r, &stack, point);
	return error;
}

static int by_time(const void *a, const void *b)
{
	const struct hr_line_point *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static int own_add(struct hr_train_life *life, const struct hr_line_point *p, unsigned phase)
{
	size_t i = 0;

	while (i < life->n_own_lines &&
	       (life->own_lines[i].line != p->line || life->own_lines[i].inner != p->inner ||
		life->own_lines[i].phase != phase))
		i++;
	if (i == life->n_own_lines) {
		if (!hr_array_reserve(life->own_lines, life->n_own_lines, life->own_lines_room))
			return -ENOMEM;
		life->own_lines[life->n_own_lines++] = (struct hr_own_line){
		    .line = p->line, .inner = p->inner, .compiler = p->compiler, .phase = phase};
	}
	life->own_lines[i].ns += p->every_ns;
	life->own_lines[i].samples++;
	return 0;
}

void hr__points_sort(struct hr_life_reader *r)
{
	if (r->n_points > 0)
		qsort(r->points, r->n_points, sizeof(*r->points), by_time);
}

/* Whether the loop that contains the block has had batches enough for all that must be compiled. */
static bool is_compiled(const struct hr_train_life *life, const struct hr_block *b, int64_t at)
{
	const struct hr_loop *loop = b->loop != HR_NO_LOOP ? &life->loops[b->loop] : NULL;

	for (uint32_t i = 0; loop != NULL && i < b->loop; i++)
		if (life->loops[i].loader == loop->loader && life->loops[i].n > 0)
			return true;
	return loop == NULL ||
	       (loop->n > HR_COMPILED_BATCHES && loop->waits[HR_COMPILED_BATCHES].from <= at);
}

#define NO_OWN_LINE UINT_MAX

/* Returns hr_own_line.phase of a sample in this block; NO_OWN_LINE: it is not for an own line. */
static unsigned phase_of(const struct hr_train_life *life, const struct hr_block *b,
			 const struct hr_line_point *p)
{
	if (p->compiler != NULL && hr_phase_loops(b->phase))
		return !hr_block_costs(b) && is_compiled(life, b, p->at) ? HR_OWN_COMPILER
									 : NO_OWN_LINE;
	if (b->kind == HR_BLOCK_BACKWARD)
		return HR_OWN_BACKWARD;
	if (b->kind == HR_BLOCK_OPTIMIZER)
		return HR_OWN_OPTIMIZER;
	if (b->kind == HR_BLOCK_GAP && (b->phase == HR_PHASE_START || hr_phase_loops(b->phase)))
		return b->phase;
	return NO_OWN_LINE;
}

int hr__own_lines_add(struct hr_life_reader *r)
{
	struct hr_train_life *life = r->life;
	size_t k = 0;
	int error = 0;

	for (size_t i = 0; error == 0 && i < r->n_points; i++) {
		const struct hr_line_point *p = &r->points[i];
		const struct hr_block *b;
		unsigned phase;

		while (k < life->n && life->blocks[k].to <= p->at)
			k++;
		if (k == life->n)
			break;
		b = &life->blocks[k];
		if (p->proc != life->proc || b->from > p->at)
			continue;
		phase = phase_of(life, b, p);
		if (phase == NO_OWN_LINE)
			continue;
		if (p->line != NULL)
			error = own_add(life, p, phase);
		else
			life->model_samples += phase == HR_PHASE_TRAIN;
	}
	return error;
}
