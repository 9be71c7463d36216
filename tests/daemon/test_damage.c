/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A killed daemon's journal and store, damaged as disks, power cuts and other programs do: no operation is counted twice,
 * and what is missing is stated.
 */

#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "daemon/journal/journal.h"
#include "daemon/node/recover.h"
#include "nodes.h"
#include "numbered.h"
#include "tests/seeds.h"
#include "tests/unit.h"

#define HALF_BYTES   (4u << 20) /* a checkpoint every 45,000 records or so */
#define FEW	     40u	/* records */
#define MANY	     60000u	/* likewise: a checkpoint after some 45,000 */
#define SEGMENT_MOST (1u << 20)
#define DAMAGES	     20u				   /* seeds */
#define HALF_AT	     ((off_t)(HR_PAGE_BYTES + HALF_BYTES)) /* a new stream begins in the second half */

/* What a killed daemon left, kept so that it can be damaged and recovered again and again. */
struct wreck {
	struct nodes nodes;
	uint64_t n;	 /* reads that the daemon took */
	uint64_t stored; /* of them: frames with their events are in the store */
	char segment[256], journal[256],
	    kept[256]; /* recovery removes a journal: kept is another link to it */
	uint8_t bytes[SEGMENT_MOST];
	ssize_t segment_bytes;
	int fd;	       /* of the journal */
	uint8_t *file; /* its content */
	off_t file_bytes, used_bytes;
};

static void take(struct wreck *w, const struct client *c, uint64_t n)
{
	numbered_reads(c, w->n, w->n + n);
	w->n += n;
	while (client_ring(c, 0, 0)->tail + client_ring(c, 0, 1)->tail < w->n + 2)
		numbered_pause_us(1000);
}

static void store(struct wreck *w)
{
	nodes_flush(&w->nodes);
	w->stored = w->n;
}

static void keep_wreck(struct wreck *w)
{
	char pattern[128];
	glob_t found;
	int fd;

	snprintf(pattern, sizeof(pattern), "%s/jobs/*/*/journal", w->nodes.store);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	snprintf(w->journal, sizeof(w->journal), "%s", found.gl_pathv[0]);
	globfree(&found);
	snprintf(w->segment, sizeof(w->segment), "%.*s/000001.seg",
		 (int)(strlen(w->journal) - strlen("/journal")), w->journal);
	snprintf(w->kept, sizeof(w->kept), "%s/kept", w->nodes.folder);
	assert_int_equal(link(w->journal, w->kept), 0);
	w->fd = open(w->kept, O_RDWR | O_CLOEXEC);
	w->file_bytes = lseek(w->fd, 0, SEEK_END);
	w->file = malloc((size_t)w->file_bytes);
	assert_non_null(w->file);
	assert_int_equal(pread(w->fd, w->file, (size_t)w->file_bytes, 0), w->file_bytes);
	for (w->used_bytes = w->file_bytes; !w->file[w->used_bytes - 1]; w->used_bytes--)
		;
	fd = open(w->segment, O_RDONLY | O_CLOEXEC);
	w->segment_bytes = read(fd, w->bytes, sizeof(w->bytes));
	assert_in_range(w->segment_bytes, 1, sizeof(w->bytes) - 1);
	close(fd);
}

static void wreck_init(struct wreck *w, uint64_t more)
{
	struct client c;
	pid_t daemon;

	memset(w, 0, sizeof(*w));
	nodes_init(&w->nodes, HALF_BYTES);
	daemon = nodes_start(&w->nodes);
	assert_int_equal(client_attach(&c, w->nodes.socket, 0, 0, NULL), 0);
	numbered_announce(client_ring(&c, 0, 0), 0);
	take(w, &c, FEW);
	store(w);
	while (more) {
		uint64_t some = more < 1000 ? more : 1000;

		take(w, &c, some);
		more -= some;
	}
	store(w);
	take(w, &c, FEW);
	nodes_kill(daemon);
	client_detach(&c);
	client_fdstore_clear();
	keep_wreck(w);
}

static void wreck_restore(const struct wreck *w, off_t segment_bytes)
{
	int fd = open(w->segment, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, w->bytes, (size_t)segment_bytes), segment_bytes);
	close(fd);
	if (access(w->journal, F_OK) < 0)
		assert_int_equal(link(w->kept, w->journal), 0);
}

static void mend(const struct wreck *w, off_t from, off_t to)
{
	assert_int_equal(pwrite(w->fd, w->file + from, (size_t)(to - from), from), to - from);
}

/* Recovers: no event is stored twice, and the store states what is missing, after another recovery, too. */
static void wreck_recover(const struct wreck *w, unsigned seed)
{
	uint8_t *seen = calloc(1, w->n);
	struct nodes_sums sums;
	char *note = NULL;
	int r = hr_store_recover(w->nodes.store, &note);
	bool missing, stated;

	nodes_read(&w->nodes, seen, w->n, &sums);
	for (uint64_t i = 0; i < w->n; i++)
		if (seen[i] > 1)
			fail_msg("%u: event %llu was stored %u times", seed, (unsigned long long)i,
				 seen[i]);
	assert_true(sums.events <= w->n && sums.rollup_count <= w->n && sums.file_reads <= w->n);
	assert_int_equal(sums.torn + sums.hostile, 0);
	missing = sums.events < w->n || sums.rollup_count < w->n || sums.file_reads < w->n;
	stated = sums.journal_damaged || sums.other_loss;
	if (r < 0)
		assert_non_null(strstr(note, "cannot replay"));
	else if (missing && !stated)
		fail_msg("%u: %llu of %llu events, and no loss is stated", seed,
			 (unsigned long long)sums.events, (unsigned long long)w->n);
	assert_true(sums.events + sums.damaged_operations <= w->n);
	if (r == 0 && note)
		assert_true(sums.stream_ended);
	free(note);
	note = NULL;
	assert_int_equal(hr_store_recover(w->nodes.store, &note), r);
	assert_true((note != NULL) == (r < 0));
	free(note);
	free(seen);
}

static void wreck_done(struct wreck *w)
{
	free(w->file);
	close(w->fd);
	nodes_done(&w->nodes);
}

/* Through the file's header, the half's, and its entries; all of those with more seeds than usual. */
static off_t next_place(off_t at)
{
	if (at < 40)
		return at + 1;
	if (at < HALF_AT)
		return HALF_AT;
	return at + (at < HALF_AT + 16 || test_seeds(DAMAGES) > DAMAGES ? 1 : 61);
}

static void a_flipped_bit_anywhere(void **state)
{
	static struct wreck w;

	wreck_init(&w, FEW);
	for (off_t at = 0; at < w.used_bytes; at = next_place(at)) {
		uint8_t flipped = w.file[at] ^ (uint8_t)(1u << at % 8);

		assert_int_equal(pwrite(w.fd, &flipped, 1, at), 1);
		wreck_recover(&w, (unsigned)at);
		mend(&w, at, at + 1);
		mend(&w, 0, HR_PAGE_BYTES);
		wreck_restore(&w, w.segment_bytes);
	}
	wreck_done(&w);
}

static void cut_anywhere(void **state)
{
	static struct wreck w;

	wreck_init(&w, FEW);
	for (off_t at = 8; at < w.used_bytes; at = next_place(at)) {
		assert_int_equal(ftruncate(w.fd, at), 0);
		wreck_recover(&w, (unsigned)at);
		assert_int_equal(ftruncate(w.fd, w.file_bytes), 0);
		mend(&w, 0, w.used_bytes);
		wreck_restore(&w, w.segment_bytes);
	}
	wreck_done(&w);
}

/* ---- random damage: in one place or a few ---- */

static const struct hr_half *half_of(const struct wreck *w, unsigned i)
{
	return (const struct hr_half *)(w->file + HR_PAGE_BYTES + i * (off_t)HALF_BYTES);
}

/* Somewhere in the file's header, a half's first page, or the entries of a half that has some. */
static off_t random_place(const struct wreck *w)
{
	unsigned i = (unsigned)rand() % 2, where = (unsigned)rand() % 8;
	uint64_t head;

	if (where == 0)
		return rand() % 48;
	if (!half_of(w, i)->head)
		i = !i;
	head = where == 1 ? 64 : half_of(w, i)->head;
	return (off_t)(HR_PAGE_BYTES + i * HALF_BYTES + (uint64_t)rand() % (head + 64));
}

enum damage { FLIP, ZERO_PAGES, SCRIBBLE, TORN_PAGE, WRONG_PAGE, STALE_PAGE, DAMAGES_KINDS };

/* Damages the journal in one place: *from to *to. */
static void damage_once(const struct wreck *w, off_t *from, off_t *to)
{
	off_t at = random_place(w), page = at & ~(off_t)(HR_PAGE_BYTES - 1), other;
	uint8_t bytes[4 * HR_PAGE_BYTES] = {0};

	*from = page;
	*to = page + HR_PAGE_BYTES;
	memcpy(bytes, w->file + page, HR_PAGE_BYTES);
	switch ((enum damage)(rand() % DAMAGES_KINDS)) {
	case FLIP:
		bytes[at - page] ^= (uint8_t)(1u << rand() % 8);
		break;
	case ZERO_PAGES:
		*to = page + (1 + rand() % 4) * (off_t)HR_PAGE_BYTES;
		memset(bytes, 0, sizeof(bytes));
		break;
	case SCRIBBLE:
		for (off_t i = at - page; i < HR_PAGE_BYTES && i < at - page + 1000; i++)
			bytes[i] = (uint8_t)rand();
		break;
	case TORN_PAGE:
		other = rand() % 8 * 512;
		memset(bytes + other, 0, (size_t)(HR_PAGE_BYTES - other));
		break;
	case WRONG_PAGE:
		other = random_place(w) & ~(off_t)(HR_PAGE_BYTES - 1);
		memcpy(bytes, w->file + other, HR_PAGE_BYTES);
		break;
	case STALE_PAGE: /* of the half's earlier life, which had entries at the same places */
		other = page < HALF_AT ? page + (off_t)HALF_BYTES : page - (off_t)HALF_BYTES;
		if (other >= (off_t)HR_PAGE_BYTES)
			memcpy(bytes, w->file + other, HR_PAGE_BYTES);
		break;
	case DAMAGES_KINDS:
		break;
	}
	if (*to > w->file_bytes)
		*to = w->file_bytes;
	assert_int_equal(pwrite(w->fd, bytes, (size_t)(*to - *from), *from), *to - *from);
}

/* One damage or a few; in every fourth course the store has lost its end, too. */
static void damaged_at_random(struct wreck *w, unsigned seed)
{
	off_t from[4], to[4], segment_bytes = w->segment_bytes;
	unsigned n;

	srand(seed);
	n = rand() % 3 ? 1 : (unsigned)rand() % 4;
	if (rand() % 4 == 0)
		segment_bytes = 600 + rand() % (segment_bytes - 600);
	wreck_restore(w, segment_bytes);
	for (unsigned i = 0; i < n; i++)
		damage_once(w, &from[i], &to[i]);
	wreck_recover(w, seed);
	for (unsigned i = 0; i < n; i++)
		mend(w, from[i], to[i]);
	mend(w, 0, HR_PAGE_BYTES);
}

static void random_damage(uint64_t more)
{
	static struct wreck w;

	wreck_init(&w, more);
	assert_true((half_of(&w, 0)->gen == 2) == (more == MANY));
	for (unsigned seed = 1; seed <= test_seeds(DAMAGES); seed++)
		damaged_at_random(&w, seed);
	wreck_done(&w);
}

static void damage_counts_nothing_twice(void **state)
{
	random_damage(FEW);
}

static void damage_after_a_checkpoint_counts_nothing_twice(void **state)
{
	random_damage(MANY);
}

/* Damage past all that the store has: all before it is recovered, and the count of the rest is exact. */
static void damage_at_the_end_is_counted(void **state)
{
	static struct wreck w;
	struct nodes_sums sums;
	const struct hr_half *half;
	const struct hr_entry *e, *last = NULL;
	uint64_t at = 0;
	uint8_t seen[3 * FEW] = {0}, zeros[HR_SLOT_BYTES] = {0};
	char *note;

	wreck_init(&w, FEW);
	half = half_of(&w, 1);
	for (; at < half->head; at += e->bytes) {
		e = (const struct hr_entry *)(half->entries + at);
		if (e->kind == HR_ENTRY_RECORDS && !last &&
		    at > (uint64_t)(w.used_bytes - HALF_AT) / 2)
			last = e;
	}
	assert_non_null(last);
	if (!last)
		return; /* not reached: the analyzer does not know that the assertion jumps */
	at = (uint64_t)((const uint8_t *)last - w.file);
	assert_int_equal(pwrite(w.fd, zeros, 8, (off_t)(at + last->bytes - 8)), 8);
	assert_int_equal(hr_store_recover(w.nodes.store, &note), 0);
	assert_non_null(strstr(note, "which is damaged"));
	free(note);
	nodes_read(&w.nodes, seen, sizeof(seen), &sums);
	assert_int_equal(sums.journal_damaged, 1);
	assert_in_range(sums.events, w.stored, w.n - 1);
	wreck_done(&w);
}

/* A recovery that was killed after any of its frames: the next one stores the others, and finds no damage. */
static void a_killed_recovery(void **state)
{
	static struct wreck w;
	struct nodes_sums sums;
	char *note = NULL;
	uint8_t whole[SEGMENT_MOST / 64];
	ssize_t bytes;
	int fd;

	wreck_init(&w, FEW);
	assert_int_equal(hr_store_recover(w.nodes.store, &note), 0);
	free(note);
	fd = open(w.segment, O_RDONLY | O_CLOEXEC);
	bytes = read(fd, whole, sizeof(whole));
	close(fd);
	assert_in_range(bytes, w.segment_bytes + 1, sizeof(whole) - 1);
	memcpy(w.bytes, whole, (size_t)bytes);
	for (ssize_t cut = w.segment_bytes; cut < bytes; cut += 7) {
		uint8_t seen[3 * FEW] = {0};

		wreck_restore(&w, cut);
		assert_int_equal(hr_store_recover(w.nodes.store, &note), 0);
		assert_non_null(note);
		free(note);
		nodes_read(&w.nodes, seen, w.n, &sums);
		numbered_each_once(seen, w.n, (unsigned)cut);
		assert_int_equal(sums.rollup_count, w.n);
		assert_int_equal(sums.file_reads, w.n);
		assert_int_equal(sums.journal_damaged, 0);
		assert_true(sums.stream_ended);
	}
	wreck_done(&w);
}

/* A store that has lost its end, as a power cut leaves it: two daemons, one killed after the other, number frames alike. */
static void restarts_on_a_store_without_its_end(void **state)
{
	static struct wreck w;
	struct nodes_sums sums;
	uint8_t *seen;
	bool some_lost = false;
	char *note = NULL;
	pid_t daemon;

	wreck_init(&w, MANY);
	for (unsigned i = 1; i < 8; i++) {
		seen = calloc(w.n + 1, 1);
		assert_int_equal(ftruncate(w.fd, w.used_bytes), 0);
		assert_int_equal(ftruncate(w.fd, w.file_bytes), 0);
		mend(&w, 0, w.used_bytes);
		wreck_restore(&w, w.segment_bytes * i / 8);
		for (unsigned kills = 0; kills < 3; kills++) {
			daemon = nodes_start(&w.nodes);
			numbered_pause_us(kills * 20000);
			nodes_kill(daemon);
			client_fdstore_clear();
		}
		assert_int_equal(hr_store_recover(w.nodes.store, &note), 0);
		free(note);
		nodes_read(&w.nodes, seen, w.n, &sums);
		for (uint64_t k = 0; k < w.n; k++)
			assert_in_range(seen[k], 0, 1);
		assert_true(sums.events == w.n || sums.other_loss > 0);
		some_lost |= sums.events < w.n;
		assert_true(sums.rollup_count <= w.n && sums.file_reads <= w.n);
		assert_int_equal(sums.problems, 0);
		free(seen);
	}
	assert_true(some_lost);
	wreck_done(&w);
}

/* The next daemon ends the stream as far as it can be recovered, and records processes that come in another one. */
static void a_restart_on_a_damaged_journal(void **state)
{
	static struct wreck w;
	struct client c, d;
	struct nodes_sums sums;
	uint8_t seen[3 * FEW] = {0}, zeros[HR_SLOT_BYTES] = {0};
	pid_t daemon;

	nodes_init(&w.nodes, HALF_BYTES);
	daemon = nodes_start(&w.nodes);
	assert_int_equal(client_attach(&c, w.nodes.socket, 0, 0, NULL), 0);
	numbered_announce(client_ring(&c, 0, 0), 0);
	take(&w, &c, FEW);
	store(&w);
	take(&w, &c, FEW);
	nodes_kill(daemon);
	client_fdstore_gather();
	keep_wreck(&w);
	assert_int_equal(pwrite(w.fd, zeros, sizeof(zeros), (w.used_bytes - 100) & ~63), 64);
	daemon = nodes_start(&w.nodes);
	assert_int_equal(((struct hr_map_hdr *)c.maps[0])->level, HR_LEVEL_OFF);
	assert_int_equal(client_attach(&d, w.nodes.socket, 0, 0, NULL), 0);
	numbered_reads(&d, 2 * FEW, 3 * FEW);
	assert_int_equal(nodes_stop(&w.nodes, daemon), 0);
	client_detach(&c);
	client_detach(&d);
	client_fdstore_clear();
	nodes_read(&w.nodes, seen, sizeof(seen), &sums);
	for (unsigned i = 0; i < 3 * FEW; i++)
		assert_in_range(seen[i], i < FEW || i >= 2 * FEW ? 1 : 0, 1);
	assert_int_equal(sums.rollup_count, sums.events);
	assert_int_equal(sums.file_reads, sums.events);
	assert_int_equal(sums.journal_damaged, 1);
	assert_in_range(sums.other_loss, 1,
			FEW + 1); /* a process, and operations where they could be counted */
	wreck_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_flipped_bit_anywhere),
	    cmocka_unit_test(cut_anywhere),
	    cmocka_unit_test(damage_counts_nothing_twice),
	    cmocka_unit_test(damage_after_a_checkpoint_counts_nothing_twice),
	    cmocka_unit_test(damage_at_the_end_is_counted),
	    cmocka_unit_test(a_restart_on_a_damaged_journal),
	    cmocka_unit_test(a_killed_recovery),
	    cmocka_unit_test(restarts_on_a_store_without_its_end),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
