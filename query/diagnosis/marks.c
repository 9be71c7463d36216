/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/json_part.h"
#include "proto/args.h"
#include "query/tables/rows.h"

#define FETCH_AHEAD_NS INT64_C(60000000000)
/* The largest valid value of since_ns: headrace's Python module reports at most 10 s at once. */
#define BUSY_NS_MOST UINT64_C(60000000000)

/* ---- args: a JSON object ---- */

/* A member of args, and its field in struct hr_mark. `absent`: the value without the member. */
struct member {
	const char *name;
	size_t bytes, offset; /* `offset`: of the field in struct hr_mark */
	uint64_t absent;
};
#define MEMBER(NAME, field, absent)                                                                \
	{                                                                                          \
		HR_ARGS_##NAME, sizeof(HR_ARGS_##NAME) - 1, offsetof(struct hr_mark, field),       \
		    absent                                                                         \
	}

static const struct member numbers[] = {
    MEMBER(LOADER, loader, HR_UNKNOWN),
    MEMBER(BATCH, batch, HR_UNKNOWN),
    MEMBER(PREFETCH, prefetch, HR_UNKNOWN),
    MEMBER(BATCH_SIZE, batch_size, HR_UNKNOWN),
    MEMBER(BEFORE_CPU_NS, before_cpu_ns, 0),
    MEMBER(BEFORE_NS, before_ns, 0),
    MEMBER(OTHERS_CPU_NS, others_cpu_ns, 0),
    MEMBER(BEFORE_CORE_NS, before_core_ns, 0),
    MEMBER(CPU_NS, used.cpu_ns, HR_UNKNOWN),
    MEMBER(MAJOR_FAULTS, used.major_faults, 0),
    MEMBER(CORE_WAIT_NS, used.core_wait_ns, 0),
    MEMBER(SLEEP_NS, used.sleep_ns, 0),
    MEMBER(NETWORK_NS, used.network_ns, 0),
    MEMBER(LOCK_NS, used.lock_ns, 0),
    MEMBER(SINCE_NS, since_ns, 0),
    MEMBER(BUSY_PERCENT, busy_percent, HR_UNKNOWN),
    MEMBER(WORKERS, workers, HR_UNKNOWN),
    MEMBER(WORKER, workers, HR_UNKNOWN),
    MEMBER(TID, about_tid, 0),
};
#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const struct member flags[] = {
    MEMBER(PERSISTENT, persistent, 0),
    MEMBER(ITERABLE, iterable, 0),
    MEMBER(HIDDEN, hidden, 0),
    MEMBER(END, end, 0),
};
#define N_FLAGS (sizeof(flags) / sizeof(flags[0]))

static const struct member *member_of(const struct member *list, size_t n, const uint8_t *name,
				      size_t bytes)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].bytes == bytes && memcmp(list[i].name, name, bytes) == 0)
			return &list[i];
	return NULL;
}

/* Reads a member's value, which begins at `at`. If a member occurs twice, the first one counts. */
static void read_member(struct hr_mark *to, const uint8_t *name, size_t bytes, const uint8_t *at,
			const uint8_t *end, uint32_t *seen)
{
	const struct member *m = member_of(numbers, N_NUMBERS, name, bytes);
	uint64_t value = 0;

	if (m == NULL) {
		m = member_of(flags, N_FLAGS, name, bytes);
		if (m != NULL && end - at >= 4 && memcmp(at, "true", 4) == 0)
			*(bool *)((char *)to + m->offset) = true;
		return;
	}
	if ((*seen >> (m - numbers) & 1) != 0 || (m->offset == offsetof(struct hr_mark, workers) &&
						  (bytes == 6) != (to->kind == HR_REGION_FETCH)))
		return;
	*seen |= UINT32_C(1) << (m - numbers);
	if (at == end || *at < '0' || *at > '9')
		return;
	for (; at < end && *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	*(uint64_t *)((char *)to + m->offset) = value;
}

/* Returns the closing quote of the string whose text begins at `at`, or `end`. */
static const uint8_t *end_of_string(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at != '"')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	return at;
}

/* Returns the value of the member `stacks`; NULL: there is none. */
static const uint8_t *read_args(struct hr_mark *to, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *ret = NULL;
	uint32_t seen = 0;

	for (size_t i = 0; i < N_NUMBERS; i++)
		*(uint64_t *)((char *)to + numbers[i].offset) = numbers[i].absent;
	while (at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
		const uint8_t *name = at + 1, *stop = end_of_string(name, end);

		at = stop < end ? stop + 1 : end;
		if (at == end || *at != ':')
			continue;
		at++;
		if (stop - name == sizeof(HR_ARGS_STACKS) - 1 &&
		    memcmp(name, HR_ARGS_STACKS, sizeof(HR_ARGS_STACKS) - 1) == 0)
			ret = at;
		else
			read_member(to, name, (size_t)(stop - name), at, end, &seen);
	}
	return ret;
}

/* ---- kinds ---- */

/* Whether args are those of headrace's own wait for a loader; json.dumps() adds a blank. */
static bool is_of_loader(const ProtobufCBinaryData *args)
{
	struct hr_json_part loader;

	return hr_json_part_find(args->data, args->len, HR_ARGS_LOADER, &loader) &&
	       loader.p[-1] == ':';
}

static uint32_t kind_of(const Headrace__Regions *m, const struct hr_region *g)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} marks[] = {
	    {"accelerator", HR_MARK_BUSY},  {"samples", HR_MARK_SAMPLES},
	    {"hang", HR_MARK_HANG},	    {"exception", HR_MARK_EXCEPTION},
	    {"optimizer", HR_MARK_UPDATES}, {"padding", HR_MARK_PADDING},
	};

	for (size_t i = 0; g->kind == HR_REGION_MARK && i < sizeof(marks) / sizeof(marks[0]); i++)
		if (hr_regions_text_is(m, g->name, marks[i].name) &&
		    hr_regions_text_is(m, g->domain, "headrace"))
			return marks[i].kind;
	if (g->kind != HR_REGION_RANGE)
		return g->kind;
	if (hr_regions_text_is(m, g->name, "DataLoader.__iter__"))
		return HR_MARK_CREATES;
	if (hr_regions_text_is(m, g->domain, "torch.distributed"))
		return HR_MARK_COLLECTIVE;
	if (hr_regions_text_is(m, g->domain, "torch") && hr_regions_text_is(m, g->name, "backward"))
		return HR_MARK_BACKWARD;
	/* A loader's wait within another wait is recorded as a range, without a category. */
	if (g->args > 0 && g->category == 0 && is_of_loader(&m->texts[g->args - 1]))
		return HR_REGION_INPUT_WAIT;
	return HR_REGION_RANGE;
}

static int set_made(struct hr_life_reader *r, const ProtobufCBinaryData *args, struct hr_mark *to)
{
	struct hr_json_part made;

	if (!hr_json_part_find(args->data, args->len, HR_ARGS_MADE, &made) ||
	    made.type != HR_JSON_STRING)
		return 0;
	to->made = hr__line_text(r, &made);
	return to->made != NULL ? 0 : -ENOMEM;
}

static int add_mark(struct hr_life_reader *r, const Headrace__Regions *m, const struct hr_region *g)
{
	const ProtobufCBinaryData none = {.data = (uint8_t *)""};
	const ProtobufCBinaryData *args = g->args > 0 ? &m->texts[g->args - 1] : &none;
	int64_t from = hr_wall_ns(&r->q->streams[r->stream], g->start_ns);
	int64_t to = hr_end_ns(from, g->dur_ns);
	uint32_t kind = kind_of(m, g);
	const uint8_t *stacks;
	struct hr_mark *mark;
	bool torch;

	if (kind == HR_REGION_RANGE || kind == HR_REGION_SPAN || kind == HR_REGION_MARK ||
	    (kind == HR_REGION_FETCH && g->count > 1))
		return 0;
	/* The loop may wait within the span for a batch that was made earlier. */
	if (from >= r->span.until ||
	    to <= r->span.from -
		      (kind == HR_REGION_FETCH && r->span.from > INT64_MIN ? FETCH_AHEAD_NS : 0))
		return 0;
	if (kind == HR_MARK_SAMPLES)
		return hr__points_add(r, args, g->proc, from);
	if (kind == HR_MARK_EXCEPTION || kind == HR_MARK_UPDATES || kind == HR_MARK_PADDING)
		return hr__process_mark_add(r, kind, args, g->proc, from);
	if (kind == HR_MARK_HANG && hr__process_mark_add(r, kind, args, g->proc, from) < 0)
		return -ENOMEM;
	if (!hr_array_reserve(r->marks, r->n_marks, r->marks_room))
		return -ENOMEM;
	mark = &r->marks[r->n_marks++];
	*mark = (struct hr_mark){
	    .proc = g->proc,
	    .tid = g->tid,
	    .kind = kind,
	    .from = from,
	    .to = to,
	    .step = g->step,
	    .epoch = g->epoch,
	    .open = g->open,
	    .added = g->count > 1,
	};
	if (kind == HR_MARK_CREATES && set_made(r, args, mark) < 0)
		return -ENOMEM;
	stacks = read_args(mark, args->data, args->data + args->len);
	mark->hidden_to = mark->hidden ? to : from;
	torch = hr_regions_text_is(m, g->domain, "torch");
	/* The args of headrace's marks have the loader. */
	mark->own = kind == HR_REGION_INPUT_WAIT && !torch && mark->loader == HR_UNKNOWN &&
		    mark->workers == HR_UNKNOWN;
	mark->other_kind = g->domain > 0 ? !torch : mark->own;
	if (kind == HR_MARK_HANG)
		mark->tid = (uint32_t)mark->about_tid;
	if (kind == HR_MARK_BUSY && (mark->busy_percent > 100 || mark->since_ns > BUSY_NS_MOST))
		r->n_marks--; /* not from headrace: the program made a mark of the same name */
	return stacks != NULL ? hr__lines_add(r, stacks, args->data + args->len, mark) : 0;
}

/* A region comes before those with the same start that it contains. */
static int by_process_and_time(const void *a, const void *b)
{
	const struct hr_mark *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to > y->to ? -1 : 1;
	return y->own - x->own;
}

static bool is_wait_of(const struct hr_mark *thread, const struct hr_mark *m)
{
	return m->tid == thread->tid && m->kind == HR_REGION_INPUT_WAIT && !m->outer && !m->hidden;
}

/*
 * Hides the time of waits in which the accelerator worked. If NVML reports that it was idle in the
 * last since_ns for less time than the training thread waited, it worked for the rest of these
 * waits: in the first part of each one, because its work only ends while it waits.
 */
static void hide_waits(struct hr_mark *marks, size_t busy)
{
	const struct hr_mark *b = &marks[busy];
	double waited = 0, idle = (100 - (double)b->busy_percent) / 100 * (double)b->since_ns;
	size_t first = busy;

	while (first > 0 && marks[first - 1].proc == b->proc &&
	       marks[first - 1].kind != HR_MARK_BUSY &&
	       b->from - marks[first - 1].from <= (int64_t)b->since_ns)
		first--;
	for (size_t i = first; i < busy; i++)
		if (is_wait_of(b, &marks[i]))
			waited += (double)(marks[i].to - marks[i].from);
	for (size_t i = first; i < busy && idle < waited; i++)
		if (is_wait_of(b, &marks[i]))
			marks[i].hidden_to +=
			    (int64_t)((1 - idle / waited) * (double)(marks[i].to - marks[i].from));
}

/*
 * Finds the loader's waits of the same thread that marks[i] contains, an own wait. They get its
 * samples, because a fetch within a wait that is sampled has none.
 */
static void find_loader_waits(struct hr_mark *marks, size_t n, size_t i)
{
	struct hr_mark *outer = &marks[i];

	for (size_t k = i + 1; k < n && marks[k].proc == outer->proc && marks[k].from < outer->to;
	     k++) {
		struct hr_mark *m = &marks[k];

		if (m->tid != outer->tid || m->kind != HR_REGION_INPUT_WAIT || m->own || m->added)
			continue;
		outer->outer = true;
		if (m->n_lines == 0) {
			m->first_line = outer->first_line;
			m->n_lines = outer->n_lines;
		}
	}
}

int hr__marks_read(struct hr_life_reader *r)
{
	struct hr_frames frames;
	int error = hr_regions_read(r->q, &r->q->streams[r->stream], &frames);

	if (error < 0)
		return error;
	r->n_marks = r->n_points = r->n_of_process = 0;
	r->saves = false;
	for (size_t i = 0; error == 0 && i < frames.n; i++) {
		const Headrace__Regions *m = frames.list[i]->regions;

		for (size_t k = 0; error == 0 && k < m->n_key; k++) {
			struct hr_region region;

			hr_regions_get(m, k, &region);
			r->saves |= region.kind == HR_REGION_CHECKPOINT;
			error = add_mark(r, m, &region);
		}
	}
	hr_frames_free(&frames);
	if (r->n_marks > 0)
		qsort(r->marks, r->n_marks, sizeof(*r->marks), by_process_and_time);
	hr__points_sort(r);
	for (size_t i = 0; i < r->n_marks; i++)
		if (r->marks[i].own)
			find_loader_waits(r->marks, r->n_marks, i);
	for (size_t i = 0; i < r->n_marks; i++)
		if (r->marks[i].kind == HR_MARK_BUSY)
			hide_waits(r->marks, i);
	return error;
}
