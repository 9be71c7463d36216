/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/regions/region.h"

#include <string.h>

#include "common/pathid.h"
#include "shim/core/clock.h"
#include "shim/core/path.h"
#include "shim/core/ring.h"
#include "shim/core/sys.h"

#define NAME_BYTES 1000u /* bytes of a text; longer texts are cut */
#define KIND_SPAN  2u
#define KIND_STEP  4u
#define KIND_EPOCH 5u
/* The handle of a span: cell number, gen, and pid, so that a forked child cannot use it. */
#define SPAN_BITS 8
#define PID_SHIFT 40
#define PID_MASK  UINT64_C(0xffffff)
_Static_assert(HR_REGION_SPANS < 1u << SPAN_BITS, "a handle has room for the number");

#define TAKEN UINT64_C(1) /* key of a cell while a thread changes it */

/* ---- names ---------------------------------------------------------------------------------------- */

/* The text of a name: NUL, kind, domain NUL category NUL name. Its id is the key of the name. */
struct region_text {
	uint32_t bytes;
	char at[2 + 3 * (NAME_BYTES + 1)];
};

static void region_put(struct region_text *t, const char *s)
{
	size_t n = s != NULL ? strnlen(s, NAME_BYTES) : 0;

	memcpy(t->at + t->bytes, s != NULL ? s : "", n);
	t->bytes += (uint32_t)n;
	t->at[t->bytes++] = '\0';
}

static void region_text_of(const struct headrace_name *name, uint32_t kind, struct region_text *ret)
{
	ret->at[0] = '\0';
	ret->at[1] = (char)('A' + kind);
	ret->bytes = 2;
	region_put(ret, name->domain);
	region_put(ret, name->category);
	region_put(ret, name->name);
	ret->bytes--; /* the last NUL does not belong to the text */
}

/* Returns the kind of region that a name requests. Spans, steps and epochs use other functions. */
static uint32_t region_kind_of(const struct headrace_name *name)
{
	bool has = name->kind == HEADRACE_MARK ||
		   (name->kind >= HEADRACE_INPUT_WAIT && name->kind <= HEADRACE_RESTORE);

	return has ? name->kind : HEADRACE_RANGE;
}

/* Returns the key of a name. Sends the name if it is new. Returns 0 if it cannot be sent. */
static __attribute__((noinline)) uint64_t key_reported(struct headrace_name *name, uint32_t kind)
{
	struct hr_record head = {.op = HR_CTL_REGION_KEY, .offset = HR_OFFSET_NONE};
	struct region_text t;

	region_text_of(name, kind, &t);
	head.file = hr_path_id(t.at, t.bytes);
	if (!hr_sent(head.file)) {
		head.start_ticks = hr_shim_ticks();
		head.asked = t.bytes;
		head.flags = HR_REGION_KIND(kind);
		if (!hr_ring_control(&head, t.at, t.bytes))
			return 0;
		hr_sent_note(head.file);
	}
	__atomic_store_n(&name->reserved0, kind, __ATOMIC_RELAXED); /* threads share names */
	__atomic_store_n(&name->reserved[0], head.file, __ATOMIC_RELEASE);
	return head.file;
}

static uint64_t region_key_of(struct headrace_name *name, uint32_t kind)
{
	uint64_t key = __atomic_load_n(&name->reserved[0], __ATOMIC_ACQUIRE);

	if (hr_likely(key != 0 && __atomic_load_n(&name->reserved0, __ATOMIC_RELAXED) == kind &&
		      hr_sent(key)))
		return key;
	return key_reported(name, kind);
}

/* ---- records -------------------------------------------------------------------------------------- */

static struct hr_ring_hdr *ring_here(void)
{
	struct hr_ring_hdr *ring = hr_ring_current();

	if (hr_unlikely(ring == NULL))
		ring = hr_ring_find(HR__SEEK_FIRST);
	/* If two processes share a thread, its ranges and spans belong to the parent. */
	return ring == NULL || hr_in_vfork_child() ? NULL : ring;
}

static struct hr_ring_hdr *ring_or_loss(void)
{
	struct hr_ring_hdr *ring = ring_here();

	if (hr_unlikely(ring == NULL))
		hr_counters_region();
	return ring;
}

static void region_record(struct hr_ring_hdr *ring, const struct hr_region_cell *c, int32_t fd,
			  uint64_t end, uint32_t flags, const char *args)
{
	size_t bytes = args != NULL ? strnlen(args, HR_REGION_TEXT) : 0;
	struct hr_record head = {
	    .op = HR_CTL_REGION,
	    .start_ticks = c->start_ticks,
	    .file = c->key,
	    .offset = c->step,
	    .ret = c->epoch,
	    .fd = fd,
	    .flags = c->flags | flags,
	    .asked = 1,
	};

	if (hr_level_off())
		return;
	if (bytes > 0 && bytes < HR_REGION_TEXT) { /* longer JSON would be cut, and so be invalid */
		head.flags |= HR_REGION_HAS_ARGS;
		head.asked = bytes;
	} else {
		bytes = 0;
	}
	hr_record_duration(&head, c->start_ticks, end);
	if (c->key == 0 || !hr_ring_control(&head, args, bytes))
		hr_lost_add(ring, HR_CTL_REGION, 1, 0, 0);
}

static void cell_fill(struct hr_region_cell *c, uint32_t kind, const struct hr__payload *payload)
{
	/*
	 * hr_wiped has the numbers XOR HR_REGION_NONE, so that memory wiped by a fork means none.
	 */
	c->step = __atomic_load_n(&hr_wiped.step, __ATOMIC_RELAXED) ^ HR_REGION_NONE;
	c->epoch = __atomic_load_n(&hr_wiped.epoch, __ATOMIC_RELAXED) ^ HR_REGION_NONE;
	c->flags = HR_REGION_KIND(kind);
	c->payload_type = 0;
	if (hr_unlikely(payload != NULL)) {
		c->payload_type = payload->type;
		c->payload = payload->bits;
	}
}

/* Returns `args` of the end or, if NULL, the payload of the begin. */
static const char *args_of(const struct hr_region_cell *c, const char *args,
			   char room[HR__PAYLOAD_TEXT])
{
	const struct hr__payload p = {c->payload_type, c->payload};

	if (hr_likely(c->payload_type == 0) || args != NULL || !hr__payload_text(&p, room))
		return args;
	return room;
}

static uint32_t depth_of(const struct hr_ring_hdr *ring)
{
	return ring->region_depth < HR_REGION_DEPTH ? ring->region_depth : HR_REGION_DEPTH;
}

/* Returns whether the thread is in a wait for input. */
static bool waits_already(const struct hr_ring_hdr *ring)
{
	for (uint32_t i = depth_of(ring); i-- > 0;)
		if (ring->regions[i].flags == HR_REGION_KIND(HEADRACE_INPUT_WAIT))
			return true;
	return false;
}

/* ---- ranges: a stack per thread -------------------------------------------------------------- */

void hr__region_begin(struct headrace_name *name, uint32_t stack, const struct hr__payload *payload)
{
	struct hr_ring_hdr *ring = ring_or_loss();
	struct hr_region_cell *c;
	uint32_t depth, kind = region_kind_of(name);
	uint64_t key;

	if (ring == NULL)
		return;
	/* The outer wait has the time of a wait within it, so that sums over waits have it once. */
	if (kind == HEADRACE_INPUT_WAIT && waits_already(ring))
		kind = HEADRACE_RANGE;
	key = region_key_of(name, kind);
	/* The key of the next cell is still 0. A signal handler's ranges use the cells above. */
	depth = ring->region_depth;
	if (hr_unlikely(depth >= HR_REGION_DEEPEST)) {
		hr_lost_add(ring, HR_CTL_REGION, 1, 0, 0);
		return;
	}
	__atomic_store_n(&ring->region_depth, depth + 1, __ATOMIC_RELEASE);
	if (hr_unlikely(depth >= HR_REGION_DEPTH))
		return;
	c = &ring->regions[depth];
	cell_fill(c, kind, payload);
	c->stack = stack;
	c->start_ticks = hr_shim_ticks();
	/* Release: a reader of a dead thread's cell finds all its fields, or the key 0. */
	__atomic_store_n(&c->key, key, __ATOMIC_RELEASE);
}

/* Removes cell i of the stack, and moves the cells of inner ranges down by one. */
static void unstack(struct hr_ring_hdr *ring, uint32_t i, uint32_t depth)
{
	for (; i + 1 < depth; i++)
		ring->regions[i] = ring->regions[i + 1];
	__atomic_store_n(&ring->regions[i].key, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->region_depth, depth - 1, __ATOMIC_RELEASE);
}

static void range_end(struct hr_ring_hdr *ring, const struct hr_region_cell *c, uint32_t depth,
		      uint64_t end, const char *args)
{
	char room[HR__PAYLOAD_TEXT];

	args = args_of(c, args, room);
	if (args == NULL && c->flags == HR_REGION_KIND(HEADRACE_RANGE) && !hr_level_off() &&
	    hr__region_short(ring, c, depth, end))
		return;
	region_record(ring, c, (int32_t)depth, end, 0, args);
}

void hr__region_end(uint32_t stack, const char *args)
{
	uint64_t end = hr_shim_ticks();
	struct hr_ring_hdr *ring = hr_ring_current();
	uint32_t depth = ring != NULL ? ring->region_depth : 0, i;

	if (depth == 0 || hr_in_vfork_child())
		return;
	if (depth > HR_REGION_DEPTH) {
		hr_lost_add(ring, HR_CTL_REGION, 1, 0, 0);
		__atomic_store_n(&ring->region_depth, depth - 1, __ATOMIC_RELEASE);
		return;
	}
	for (i = depth; i-- > 0;) {
		if (ring->regions[i].stack != stack)
			continue;
		range_end(ring, &ring->regions[i], i, end, args);
		unstack(ring, i, depth);
		return;
	}
}

void hr__region_passed(struct headrace_name *name, uint64_t moment)
{
	uint64_t end = hr_shim_ticks();
	struct hr_ring_hdr *ring = ring_or_loss();
	uint32_t kind = region_kind_of(name);
	struct hr_region_cell c = {0};

	if (ring == NULL)
		return;
	cell_fill(&c, kind, NULL);
	c.key = region_key_of(name, kind);
	c.start_ticks = moment != 0 && moment < end ? moment : end;
	range_end(ring, &c, depth_of(ring), end, NULL);
}

void hr_regions_end_dead(struct hr_ring_hdr *ring)
{
	/* Acquire: pairs with the dead thread's release store. */
	uint32_t depth = __atomic_load_n(&ring->region_depth, __ATOMIC_ACQUIRE);
	uint64_t end = hr_shim_ticks();

	hr__region_shorts_end_dead(ring);
	if (depth > HR_REGION_DEPTH) {
		depth = depth < HR_REGION_DEEPEST ? depth : HR_REGION_DEEPEST;
		hr_lost_add(ring, HR_CTL_REGION, depth - HR_REGION_DEPTH, 0, 0);
		depth = HR_REGION_DEPTH;
	}
	while (depth-- > 0) {
		if (ring->regions[depth].key != 0)
			region_record(ring, &ring->regions[depth], (int32_t)depth, end,
				      HR_REGION_IS_OPEN, NULL);
		else /* its name found no room */
			hr_counters_region();
		__atomic_store_n(&ring->regions[depth].key, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&ring->region_depth, depth, __ATOMIC_RELEASE);
	}
}

void hr__region_mark(struct headrace_name *name, const char *args)
{
	struct hr_ring_hdr *ring = ring_or_loss();
	struct hr_region_cell c = {0};

	if (ring == NULL)
		return;
	cell_fill(&c, HEADRACE_MARK, NULL);
	c.key = region_key_of(name, HEADRACE_MARK);
	c.start_ticks = hr_shim_ticks();
	region_record(ring, &c, (int32_t)depth_of(ring), c.start_ticks, 0, args);
}

/* ---- spans: cells of the process ------------------------------------------------------------- */

static struct hr_region_cell *cell_claim(uint32_t *ret)
{
	struct hr_region_cell *cells = hr_session_map(0)->spans;

	for (uint32_t i = 0; i < HR_REGION_SPANS; i++) {
		uint64_t free = 0;

		if (__atomic_load_n(&cells[i].key, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&cells[i].key, &free, TAKEN, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			*ret = i;
			return &cells[i];
		}
	}
	return NULL;
}

/* Starts a span at time `at` (0: now), with the fields that cell_fill() has set in `as`. */
static uint64_t region_start(struct headrace_name *name, const struct hr_region_cell *as,
			     uint64_t at)
{
	struct hr_ring_hdr *ring = ring_or_loss();
	struct hr_region_cell *c;
	uint64_t key;
	uint32_t i;

	if (ring == NULL)
		return 0;
	key = region_key_of(name, as->flags >> HR_REGION_KIND_SHIFT);
	c = key != 0 ? cell_claim(&i) : NULL;
	if (c == NULL) {
		hr_lost_add(ring, HR_CTL_REGION, 1, 0, 0);
		return 0;
	}
	c->step = as->step;
	c->epoch = as->epoch;
	c->flags = as->flags | HR_REGION_IS_SPAN;
	c->payload = as->payload;
	c->payload_type = as->payload_type;
	c->tid = (uint32_t)hr_sys_gettid();
	__atomic_store_n(&c->gen, __atomic_add_fetch(&hr_wiped.span_gen, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	c->start_ticks = at != 0 ? at : hr_shim_ticks();
	__atomic_store_n(&c->key, key, __ATOMIC_RELEASE);
	return ((uint64_t)hr_wiped.pid & PID_MASK) << PID_SHIFT | (uint64_t)c->gen << SPAN_BITS |
	       (i + 1);
}

uint64_t hr__region_start(struct headrace_name *name, const struct hr__payload *payload)
{
	uint32_t kind = region_kind_of(name);
	struct hr_region_cell as = {0};

	cell_fill(&as, kind == HEADRACE_RANGE ? KIND_SPAN : kind, payload);
	return region_start(name, &as, 0);
}

/*
 * Takes a span's cell, whose key is TAKEN until the caller stores another key. False: no such span
 * exists, another thread is changing the cell, or the caller is a vfork child (its parent owns the
 * span).
 */
static bool span_take(uint64_t span, struct hr_region_cell **ret_cell,
		      struct hr_region_cell *ret_was)
{
	uint32_t i = (uint32_t)(span & ((1u << SPAN_BITS) - 1)) - 1;
	uint32_t gen = (uint32_t)(span >> SPAN_BITS);
	struct hr_region_cell *c;
	uint64_t key;

	if (span == 0 || hr_in_vfork_child() || i >= HR_REGION_SPANS ||
	    __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) == 0 ||
	    span >> PID_SHIFT != ((uint64_t)hr_wiped.pid & PID_MASK))
		return false;
	*ret_cell = c = &hr_session_map(0)->spans[i];
	key = __atomic_load_n(&c->key, __ATOMIC_RELAXED);
	if (key <= TAKEN || __atomic_load_n(&c->gen, __ATOMIC_RELAXED) != gen ||
	    !__atomic_compare_exchange_n(&c->key, &key, TAKEN, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	/* Copies all fields except the key, which other threads compare. */
	memcpy(&ret_was->start_ticks, &c->start_ticks,
	       sizeof(*c) - offsetof(struct hr_region_cell, start_ticks));
	ret_was->key = key;
	if (ret_was->gen == gen)
		return true;
	/* The cell now belongs to a new span of the same name: stores its key again. */
	__atomic_store_n(&c->key, key, __ATOMIC_RELEASE);
	return false;
}

static void region_finish(uint64_t span, uint64_t end, const char *args)
{
	struct hr_region_cell *c, was;
	struct hr_ring_hdr *ring;
	char room[HR__PAYLOAD_TEXT];

	if (!span_take(span, &c, &was))
		return;
	end = end > was.start_ticks ? end : was.start_ticks;
	ring = ring_or_loss();
	if (ring != NULL)
		region_record(ring, &was, (int32_t)was.tid, end, 0, args_of(&was, args, room));
	__atomic_store_n(&c->key, 0, __ATOMIC_RELEASE);
}

void hr__region_finish(uint64_t span, const char *args)
{
	region_finish(span, hr_shim_ticks(), args);
}

/* ---- steps and epochs: one span at a time ---------------------------------------------------- */

static struct headrace_name step_name = {.name = "step"}, epoch_name = {.name = "epoch"};

static void turn(int64_t *number, uint64_t *span, struct headrace_name *name, uint32_t kind,
		 int64_t to, uint64_t at)
{
	uint64_t now = hr_shim_ticks();
	struct hr_region_cell as = {0};

	if (hr_in_vfork_child()) { /* steps and epochs belong to the parent */
		if (to != HEADRACE_NONE)
			hr_counters_region();
		return;
	}
	at = at != 0 && at < now ? at : now;
	region_finish(__atomic_exchange_n(span, 0, __ATOMIC_ACQ_REL), at, NULL);
	__atomic_store_n(number, to ^ HR_REGION_NONE, __ATOMIC_RELAXED);
	if (to == HEADRACE_NONE)
		return;
	cell_fill(&as, kind, NULL);
	*(kind == KIND_STEP ? &as.step : &as.epoch) = to;
	/* If another thread or a handler has begun a step meanwhile, that step ends here. */
	region_finish(__atomic_exchange_n(span, region_start(name, &as, at), __ATOMIC_ACQ_REL), at,
		      NULL);
}

/* Returns the thread that began the current step; 0: there is no step. */
static uint32_t step_thread(void)
{
	uint64_t span = __atomic_load_n(&hr_wiped.step_span, __ATOMIC_ACQUIRE);
	uint32_t i = (uint32_t)(span & ((1u << SPAN_BITS) - 1)) - 1;

	return i < HR_REGION_SPANS ? hr_session_map(0)->spans[i].tid : 0;
}

void hr__region_waited(struct headrace_name *name, uint64_t us)
{
	uint64_t end = hr_shim_ticks(), rate, ticks;
	struct hr_ring_hdr *ring = ring_or_loss();
	uint32_t kind = region_kind_of(name), tid;
	struct hr_region_cell c = {0};

	if (ring == NULL || waits_already(ring))
		return;
	tid = step_thread();
	if (tid == 0)
		return;
	/* `short_ticks` has the rate of the clock: it is HR_SHORT_NS in ticks. */
	rate = __atomic_load_n(&hr_self.map->short_ticks, __ATOMIC_RELAXED);
	if (__builtin_mul_overflow(us, rate, &ticks) || ticks / (HR_SHORT_NS / 1000) >= end)
		return;
	cell_fill(&c, kind, NULL);
	c.key = region_key_of(name, kind);
	c.flags |= HR_REGION_IS_SPAN;
	c.start_ticks = end - ticks / (HR_SHORT_NS / 1000);
	region_record(ring, &c, (int32_t)tid, end, 0, NULL);
}

void hr__region_step(int64_t step, uint64_t moment)
{
	turn(&hr_wiped.step, &hr_wiped.step_span, &step_name, KIND_STEP, step, moment);
}

void hr__region_epoch(int64_t epoch, uint64_t moment)
{
	turn(&hr_wiped.epoch, &hr_wiped.epoch_span, &epoch_name, KIND_EPOCH, epoch, moment);
}

void hr__region_step_undo(void)
{
	struct hr_region_cell *c, was;

	if (hr_in_vfork_child())
		return;
	if (span_take(__atomic_exchange_n(&hr_wiped.step_span, 0, __ATOMIC_ACQ_REL), &c, &was))
		__atomic_store_n(&c->key, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&hr_wiped.step, HEADRACE_NONE ^ HR_REGION_NONE, __ATOMIC_RELAXED);
}

bool hr__regions_recorded(void)
{
	return ring_here() != NULL && !hr_level_off();
}
