/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client can write: its hello, the slots of a ring, the cells and counters of the ring's header, and the map's counts
 * of excluded opens, through the code that reads them (session.c) and the engine.
 *
 *      | hello items: u8 length, bytes | gone u8 | in-flight 64 | aggregate 64 | lost rows u8: op u8, count u64 | slots 64... |
 *
 * Each lost row's count is that of an excluded kind, too. The hello's fixed part is made right, and slots are committed unless their last byte is odd.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/engine/engine.h"
#include "daemon/session/session.h"

#define NOW   UINT64_C(100000000000)
#define SLOTS (1u << HR_RING_SLOTS_LOG2)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
	const uint8_t *at;
	size_t left;
};

static size_t take(struct input *in, void *to, size_t bytes)
{
	size_t n = bytes < in->left ? bytes : in->left;

	memset(to, 0, bytes);
	memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}

static void start(struct hr_engine *e)
{
	struct hr_entry_start in = {
	    .h = {sizeof(in), HR_ENTRY_START}, .next_seq = 2, .level = HR_LEVEL_TRACE};

	in.line = (struct hr_clock_line){0, 0, UINT64_C(1) << 32};
	in.now = (struct hr_clock_sample){NOW, NOW, 1};
	hr_engine_apply(e, &in.h);
}

static void attach(struct hr_engine *e, struct input *in)
{
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	struct {
		struct hr_entry_attach e;
		uint8_t hello[sizeof(hello) + 256];
	} a = {.e = {.proc = 1, .token = 1, .now_ns = NOW, .now_ticks = NOW, .pid = 1}};
	uint8_t length, items[256];

	take(in, &length, 1);
	hello.kind = HR_HELLO_ATTACH;
	hello.bytes = (uint32_t)(sizeof(hello) + take(in, items, length));
	memcpy(a.e.hello, &hello, sizeof(hello));
	memcpy(a.e.hello + sizeof(hello), items, hello.bytes - sizeof(hello));
	a.e.hello_bytes = hello.bytes;
	a.e.h = (struct hr_entry){.bytes = hr_entry_round(sizeof(a.e) + hello.bytes),
				  .kind = HR_ENTRY_ATTACH};
	hr_engine_apply(e, &a.e.h);
}

static void fill(struct hr_map_hdr *map, struct hr_ring_view *r, struct input *in)
{
	uint8_t rows;

	take(in, &r->hdr->inflight, sizeof(r->hdr->inflight));
	take(in, &r->hdr->aggregate, sizeof(r->hdr->aggregate));
	take(in, &rows, 1);
	for (unsigned i = 0; i < rows && in->left; i++) {
		uint8_t op;

		take(in, &op, 1);
		take(in, &r->hdr->lost[op].count, sizeof(r->hdr->lost[op].count));
		r->hdr->lost_total++;
		map->excluded[op % HR_EXCLUDED_KINDS] = r->hdr->lost[op].count;
	}
	for (uint64_t i = 0; i < SLOTS && in->left; i++) {
		take(in, &r->slots[i], HR_SLOT_BYTES);
		if (!(r->slots[i].bits >> 24 & 1))
			r->slots[i].seq = (uint32_t)(i + 1);
		r->hdr->head = i + 1;
	}
}

static void records(struct hr_engine *e, struct hr_ring_view *r, bool gone)
{
	uint64_t end;
	uint32_t n = hr_ring_ready(r, NOW + 1000, SLOTS, gone, NOW, &end);
	size_t bytes =
	    sizeof(struct hr_entry_records) + sizeof(struct hr_run) + n * sizeof(struct hr_record);
	struct hr_entry_records *in = calloc(1, bytes);

	if (!in)
		abort();
	in->h = (struct hr_entry){.bytes = (uint32_t)bytes, .kind = HR_ENTRY_RECORDS};
	in->proc = 1;
	in->sweep_ticks = NOW + 1000;
	in->n_runs = 1;
	in->runs[0] = (struct hr_run){0, 0, n, r->tail};
	hr_ring_copy(r, n, (struct hr_record *)(in->runs + 1));
	hr_ring_consumed(r, n);
	hr_engine_apply(e, &in->h);
	free(in);
}

static void header(struct hr_engine *e, struct hr_ring_view *r)
{
	struct hr_entry_left left = {
	    .h = {sizeof(left), HR_ENTRY_LEFT}, .proc = 1, .now_ticks = NOW + 1000};
	struct {
		struct hr_entry_lost e;
		struct hr_lost_row rows[HR_OP_MAX];
	} lost = {.e = {.proc = 1}};

	lost.e.n = hr_ring_lost(r, lost.rows);
	lost.e.h =
	    (struct hr_entry){.bytes = (uint32_t)(sizeof(lost.e) + lost.e.n * sizeof(lost.rows[0])),
			      .kind = HR_ENTRY_LOST};
	hr_engine_apply(e, &lost.e.h);
	hr_ring_cells(r, &left.inflight, &left.aggregate);
	hr_engine_apply(e, &left.h);
}

/* Twice: what was seen before is compared with. */
static void excluded(struct hr_engine *e, struct hr_session *s)
{
	struct hr_entry_excluded in = {.h = {sizeof(in), HR_ENTRY_EXCLUDED}, .proc = 1};

	for (unsigned i = 0; i < 2; i++) {
		if (hr_session_excluded(s, in.total))
			hr_engine_apply(e, &in.h);
		for (unsigned kind = 0; kind < HR_EXCLUDED_KINDS; kind++)
			s->maps[0].hdr->excluded[kind] *= 3;
	}
}

static void finish(struct hr_engine *e, struct hr_batch_pool *pool)
{
	struct hr_entry_end end = {
	    .h = {sizeof(end), HR_ENTRY_END}, .proc = 1, .now_ns = NOW + 2000};
	struct hr_out_list out;
	struct hr_out *o;

	hr_engine_apply(e, &end.h);
	hr_engine_checkpoint(e);
	hr_out_list_init(&out);
	hr_engine_take(e, &out);
	while ((o = hr_out_list_pop(&out)))
		hr_out_free(o, pool);
	hr_engine_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct hr_batch_pool *pool;
	size_t map_bytes = hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2);
	struct input in = {data, bytes};
	struct hr_engine *e;
	struct hr_session *s;
	void *map;
	uint8_t gone;

	if (!pool && hr_batch_pool_new(16, &pool))
		abort();
	map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || hr_session_new(1, 1, 1, &s) || hr_engine_new(pool, &e))
		abort();
	hr_session_add_map(s, &(struct hr_map){.hdr = map, .slots_log2 = HR_RING_SLOTS_LOG2});
	start(e);
	attach(e, &in);
	take(&in, &gone, 1);
	fill(map, &s->rings[0], &in);
	records(e, &s->rings[0], gone & 1);
	header(e, &s->rings[0]);
	excluded(e, s);
	finish(e, pool);
	hr_session_free(s);
	return 0;
}
