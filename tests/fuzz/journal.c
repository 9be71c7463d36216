/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal that a killed daemon left behind, as `headrace query` and the next daemon replay it: from a file that others may have
 * written.
 *
 *      | kind u8 | bytes u16 | body | ...      entries (daemon/journal/entry.h) without their headers
 *
 * Each entry is applied from memory of its own size first, so that the sanitizer sees a byte read behind it; then all of them
 * are replayed from a journal, their KNOWN entries first, a snapshot is taken, and that is replayed, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/engine.h"
#include "daemon/journal/journal.h"
#include "daemon/engine/losses.h"

#define HALF_BYTES (UINT64_C(4) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct hr_batch_pool *pool;
static struct hr_journal *journal;

struct input {
	const uint8_t *at, *end;
};

struct item {
	const uint8_t *body;
	uint16_t bytes;
	uint8_t kind;
};

static bool next(struct input *in, struct item *ret)
{
	size_t left = (size_t)(in->end - in->at);

	if (left < 3)
		return false;
	ret->kind = in->at[0];
	memcpy(&ret->bytes, in->at + 1, 2);
	if (ret->bytes > left - 3)
		ret->bytes = (uint16_t)(left - 3);
	ret->body = in->at + 3;
	in->at += 3 + ret->bytes;
	return true;
}

static void drop(void *unused, struct hr_out_list *out)
{
	struct hr_out *o;

	(void)unused;
	while ((o = hr_out_list_pop(out)))
		hr_out_free(o, pool);
}

static void drop_frames(struct hr_engine *e)
{
	struct hr_out_list out;

	hr_out_list_init(&out);
	hr_engine_take(e, &out);
	drop(NULL, &out);
}

static struct hr_engine *engine(void)
{
	struct hr_engine *e;

	if (hr_engine_new(pool, &e))
		abort();
	return e;
}

static void apply(struct input in)
{
	struct hr_engine *e = engine();
	struct item item;

	while (next(&in, &item)) {
		struct hr_entry *entry = calloc(1, hr_entry_round(sizeof(*entry) + item.bytes));

		if (!entry)
			abort();
		entry->bytes = hr_entry_round(sizeof(*entry) + item.bytes);
		entry->kind = item.kind;
		memcpy(entry + 1, item.body, item.bytes);
		(void)hr_engine_apply(e, entry);
		free(entry);
		drop_frames(e);
	}
	hr_engine_free(e);
}

static void half(struct input in)
{
	struct item item;

	if (hr_journal_begin(journal))
		abort();
	while (next(&in, &item)) {
		uint64_t bytes = sizeof(struct hr_entry) + item.bytes;
		uint8_t *to = hr_journal_reserve(journal, bytes, 0);

		if (!to)
			break;
		memset(to, 0, hr_entry_round(bytes));
		memcpy(to + sizeof(struct hr_entry), item.body, item.bytes);
		hr_journal_commit(journal, item.kind, bytes);
	}
	hr_journal_begun(journal);
}

/* Replays the active half; returns the engine that has come of it, or NULL. */
static struct hr_engine *replay(void)
{
	const struct hr_replay to = {.store_mark = 7, .taken = drop};
	struct hr_engine *e = engine();
	struct hr_loss lost;
	int r = hr_engine_replay(e, journal, &to);

	if (r == 0)
		return e;
	if (r == -EBADMSG && hr_engine_count_lost(e, journal, &lost) == 0)
		hr_engine_give_up(e, to.store_mark, 0, &lost);
	hr_engine_free(e);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input in = {data, data + bytes};
	struct hr_engine *e;
	uint64_t gen;
	bool found;

	if (!pool &&
	    (hr_batch_pool_new(16, &pool) || hr_journal_open(-1, HALF_BYTES, &journal, &found)))
		abort();
	apply(in);
	half(in);
	gen = hr_journal_gen(journal);
	e = replay();
	if (e && hr_engine_checkpoint(e) == 0) {
		drop_frames(e);
		if (hr_journal_begin(journal))
			abort();
		(void)hr_engine_snapshot(e, journal);
		hr_journal_begun(journal);
		hr_engine_free(e);
		hr_journal_retire(journal, gen);
		gen = hr_journal_gen(journal);
		e = replay();
	}
	hr_engine_free(e);
	hr_journal_retire(journal, gen);
	return 0;
}
