/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of a stream as marks. */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "query/tables/rows.h"

#define FETCH_AHEAD_NS INT64_C(60000000000)

/* The number after "name": in a JSON object; HR_UNKNOWN: none. */
static uint64_t number_in(const ProtobufCBinaryData *args, const char *name)
{
	size_t n = strlen(name);
	const uint8_t *at = memmem(args->data, args->len, name, n), *end = args->data + args->len;
	uint64_t value = 0;

	if (at == NULL || at + n == end || at[n] < '0' || at[n] > '9')
		return HR_UNKNOWN;
	for (at += n; at < end && *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

static uint64_t or_zero(uint64_t value)
{
	return value == HR_UNKNOWN ? 0 : value;
}

static bool is_text(const Headrace__Regions *m, uint32_t text, const char *what)
{
	return text > 0 && m->texts[text - 1].len == strlen(what) &&
	       memcmp(m->texts[text - 1].data, what, strlen(what)) == 0;
}

static uint32_t kind_of_range(const Headrace__Regions *m, const struct hr_region *g)
{
	if (is_text(m, g->name, "DataLoader.__iter__"))
		return HR_MARK_CREATES;
	if (is_text(m, g->domain, "torch.distributed"))
		return HR_MARK_COLLECTIVE;
	if (is_text(m, g->domain, "torch") && is_text(m, g->name, "backward"))
		return HR_MARK_BACKWARD;
	return HR_REGION_RANGE;
}

static int add_mark(struct hr_life_reader *r, const Headrace__Regions *m, const struct hr_region *g)
{
	const ProtobufCBinaryData none = {.data = (uint8_t *)""};
	const ProtobufCBinaryData *args = g->args > 0 ? &m->texts[g->args - 1] : &none;
	int64_t from = hr__wall_ns(&r->q->streams[r->stream], g->start_ns), to;
	uint32_t kind = g->kind;

	if (kind == HR_REGION_RANGE)
		kind = kind_of_range(m, g);
	if (kind == HR_REGION_RANGE || kind == HR_REGION_SPAN || kind == HR_REGION_MARK ||
	    (kind == HR_REGION_FETCH && g->count > 1))
		return 0;
	to = __builtin_add_overflow(from, g->dur_ns, &to) ? INT64_MAX : to;
	/* A batch may be made long before the wait for it ends. */
	if (from >= r->until ||
	    to <= r->from - (kind == HR_REGION_FETCH && r->from > INT64_MIN ? FETCH_AHEAD_NS : 0))
		return 0;
	if (!hr_array_reserve(r->marks, r->n_marks, r->marks_room))
		return -ENOMEM;
	r->marks[r->n_marks++] = (struct hr_mark){
	    .proc = g->proc,
	    .tid = g->tid,
	    .kind = kind,
	    .from = from,
	    .to = to,
	    .step = g->step,
	    .epoch = g->epoch,
	    .loader = number_in(args, "\"loader\":"),
	    .batch = number_in(args, "\"batch\":"),
	    .workers = number_in(args, kind == HR_REGION_FETCH ? "\"worker\":" : "\"workers\":"),
	    .before_cpu_ns = or_zero(number_in(args, "\"before_cpu_ns\":")),
	    .before_ns = or_zero(number_in(args, "\"before_ns\":")),
	    .cpu_ns = number_in(args, "\"cpu_ns\":"),
	    .major_faults = or_zero(number_in(args, "\"major_faults\":")),
	    .core_wait_ns = or_zero(number_in(args, "\"core_wait_ns\":")),
	    .sleep_ns = or_zero(number_in(args, "\"sleep_ns\":")),
	    .network_ns = or_zero(number_in(args, "\"network_ns\":")),
	    .lock_ns = or_zero(number_in(args, "\"lock_ns\":")),
	    .open = g->open,
	    .added = g->count > 1,
	    .batch_size = number_in(args, "\"batch_size\":"),
	    .prefetch = number_in(args, "\"prefetch\":"),
	    .persistent = memmem(args->data, args->len, "\"persistent\":true", 17) != NULL,
	    .iterable = memmem(args->data, args->len, "\"iterable\":true", 15) != NULL,
	    .hidden = memmem(args->data, args->len, "\"hidden\":true", 13) != NULL,
	    .end = memmem(args->data, args->len, "\"end\":true", 10) != NULL,
	};
	return 0;
}

/* The longer one of two that start together comes first: it contains the other one. */
static int by_process_and_time(const void *a, const void *b)
{
	const struct hr_mark *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

int hr__marks_read(struct hr_life_reader *r)
{
	struct hr_frames frames;
	int error = hr__regions_read(r->q, &r->q->streams[r->stream], &frames);

	if (error < 0)
		return error;
	r->n_marks = 0;
	for (size_t i = 0; error == 0 && i < frames.n; i++) {
		const Headrace__Regions *m = frames.list[i]->regions;

		for (size_t k = 0; error == 0 && k < m->n_key; k++) {
			struct hr_region region;

			hr_regions_get(m, k, &region);
			error = add_mark(r, m, &region);
		}
	}
	hr__frames_free(&frames);
	if (r->n_marks > 0)
		qsort(r->marks, r->n_marks, sizeof(*r->marks), by_process_and_time);
	return error;
}
