/* SPDX-License-Identifier: Apache-2.0 */
/* Which file records leave memory, and when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ops.h"
#include "common/filerec.h"
#include "tests/unit.h"

#define PROC 7u
#define DUE  128u

/* One read of each of the files from `first` on, a nanosecond apart; `refs`: descriptors left open on it. */
static void touch(struct hr_filerecs *f, uint32_t first, uint32_t n, int refs)
{
	for (uint32_t file = first; file < first + n; file++) {
		struct hr_file_op op = {.class = HR_CLASS_READ, .count = 1, .start_ns = file};
		uint32_t cached = UINT32_MAX;
		uint32_t i = hr_filerec_get(f, PROC, file, HR_API_POSIX, &cached);

		assert_int_not_equal(i, UINT32_MAX);
		assert_int_equal(cached, i);
		assert_int_equal(hr_filerec_add(f, i, &op), 0);
		if (refs)
			hr_filerec_refs(f, i, refs);
	}
}

/* What is due at `now_ns`: files from `first` on, in order. */
static void assert_due(const struct hr_filerecs *f, uint64_t now_ns, uint32_t first, uint32_t n)
{
	uint32_t due[DUE];

	assert_int_equal(hr_filerecs_due(f, now_ns, due, DUE), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f->v[due[i]].t.file, first + i);
}

static void idle_ones_leave(void **state)
{
	struct hr_filerecs f;

	hr_filerecs_init(&f);
	touch(&f, 1, 10, 1); /* open: older than all others, and kept */
	touch(&f, 11, HR_FILERECS_IDLE, 0);
	assert_false(hr_filerecs_full(&f));
	assert_due(&f, HR_FILERECS_IDLE, 0, 0);
	touch(&f, 2000, 3, 0);
	assert_true(hr_filerecs_full(&f));
	assert_due(&f, HR_FILERECS_IDLE, 11, HR_FILERECS_LESS + 3);
	/* One that is used again is not the longest idle any more; neither is one that is opened. */
	touch(&f, 11, 1, 0);
	touch(&f, 12, 1, 1);
	assert_due(&f, HR_FILERECS_IDLE, 13, HR_FILERECS_LESS + 2);
	/* Time alone. */
	touch(&f, 13, 2, 1);
	assert_false(hr_filerecs_full(&f));
	assert_due(&f, HR_FILE_IDLE_NS + 17, 15, 3);
	hr_filerecs_done(&f);
}

static void open_ones_leave_last(void **state)
{
	struct hr_filerecs f;
	uint32_t due[DUE];

	hr_filerecs_init(&f);
	touch(&f, 1, HR_FILERECS_MOST, 1);
	assert_false(hr_filerecs_full(&f));
	touch(&f, 10000, 2, 0);
	assert_true(hr_filerecs_full(&f));
	assert_due(&f, 0, 10000, 2);
	touch(&f, 20000, 3, 1);
	assert_int_equal(hr_filerecs_due(&f, 0, due, DUE), 5);
	assert_int_equal(f.v[due[1]].t.file, 10001);
	assert_int_equal(f.v[due[2]].t.file, 1);
	while (hr_filerecs_due(&f, 0, due, 1))
		hr_filerec_remove(&f, due[0]);
	assert_false(hr_filerecs_full(&f));
	assert_int_equal(f.live, HR_FILERECS_MOST);
	hr_filerecs_done(&f);
}

/* All counters of a record, as a text. */
static char *record_text(const struct hr_filerec *r)
{
	const struct hr_filerec_moved *read = &r->moved[HR_WAY_READ];
	const struct hr_filerec_moved *written = &r->moved[HR_WAY_WRITE];
	uint64_t pairs[2 * HR_FILE_BINS];
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	fprintf(to, "%lu-%lu; ", r->first_ns, r->last_ns);
	for (unsigned i = 0; i < HR_FILE_COUNTS; i++)
		fprintf(to, "%lu ", r->ops[i]);
	fprintf(to,
		"; seq %u %u %u %u, switches %u, unaligned %u; bytes %lu %lu; ns %lu %lu %lu; max "
		"%lu %lu;",
		read->seq, read->consec, written->seq, written->consec, r->rw_switches,
		r->unaligned, read->bytes, written->bytes, read->ns, written->ns, r->meta_ns,
		read->max_ns, written->max_ns);
	for (unsigned way = 0; way < HR_WAYS; way++) {
		size_t n = hr_few_hist_pairs(&r->moved[way].hist, pairs);

		fprintf(to, " of");
		for (size_t i = 0; i < n; i += 2)
			fprintf(to, " %lux2^%lu", pairs[i + 1], pairs[i]);
	}
	fclose(to);
	return text;
}

static void assert_record(const struct hr_filerec *r, const char *expected)
{
	char *text = record_text(r);

	assert_string_equal(text, expected);
	free(text);
}

#define OP(CLASS, OFFSET, BYTES, START, DUR)                                                       \
	{                                                                                          \
		.class = HR_CLASS_##CLASS, .offset = (OFFSET), .bytes = (BYTES), .count = 1,       \
		.start_ns = (START), .dur_ns = (DUR)                                               \
	}

/* Each counter, of operations in the order in which a program could make them. */
static void every_counter(void **state)
{
	static const struct hr_file_op ops[] = {OP(OPEN, HR_OFFSET_NONE, 0, 50, 2),
						OP(STAT, HR_OFFSET_NONE, 0, 40, 3),
						OP(READ, 0, 4096, 60, 5),
						OP(READ, 4096, 100, 70, 4), /* the next bytes */
						OP(READ, 8192, 1, 80, 1),
						OP(READ, 10, 1, 90, 1), /* and back */
						OP(READ, HR_OFFSET_NONE, 0, 100, 1),
						OP(WRITE, 0, 16, 110, 9),
						OP(WRITE, 16, 16, 120, 10),
						OP(WRITE, 64, 1, 130, 3),
						OP(READ, 10, 1, 135, 1),
						OP(SEEK, HR_OFFSET_NONE, 0, 140, 1),
						OP(SYNC, HR_OFFSET_NONE, 0, 150, 1),
						OP(DIR, HR_OFFSET_NONE, 0, 160, 1),
						OP(META, HR_OFFSET_NONE, 0, 170, 1),
						OP(MAP, HR_OFFSET_NONE, 0, 180, 1),
						OP(CLOSE, HR_OFFSET_NONE, 0, 190, 7)};
	struct hr_file_op failed = OP(OPEN, HR_OFFSET_NONE, 0, 60, 1);
	struct hr_filerecs f;
	uint32_t cached = UINT32_MAX, i;

	hr_filerecs_init(&f);
	i = hr_filerec_get(&f, PROC, 1, HR_API_POSIX, &cached);
	for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++)
		assert_int_equal(hr_filerec_add(&f, i, &ops[k]), 0);
	failed.failed = true;
	assert_int_equal(hr_filerec_add(&f, i, &failed), 0);
	assert_record(&f.v[i], "40-197; 1 6 3 1 1 1 5 ; seq 2 1 2 1, "
			       "switches 2, unaligned 4; bytes 4199 33; ns 13 22 18; max 5 10; of "
			       "4x2^0 1x2^6 1x2^12 of 1x2^0 2x2^4");
	hr_filerecs_done(&f);
}

/* More than four sizes need all bins. The last bin has all larger sizes. */
static void sizes_of_many_kinds(void **state)
{
	static const uint64_t sizes[] = {
	    1024, 1, 3, UINT64_C(1) << 47, 70, 2, 1025, UINT64_C(1) << 60, 7, 1};
	struct hr_filerecs f;
	uint32_t cached = UINT32_MAX, i;

	hr_filerecs_init(&f);
	i = hr_filerec_get(&f, PROC, 1, HR_API_POSIX, &cached);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		struct hr_file_op op = OP(WRITE, HR_OFFSET_NONE, sizes[k], 1, 1);

		assert_int_equal(hr_filerec_add(&f, i, &op), 0);
		if (k == 3)
			assert_record(&f.v[i],
				      "1-2; 0 0 4 0 0 0 0 ; seq 0 0 0 0, "
				      "switches 0, unaligned 0; bytes 0 140737488356356; ns 0 4 0; "
				      "max 0 1; of of 1x2^0 1x2^1 1x2^10 1x2^47");
	}
	assert_record(&f.v[i], "1-2; 0 0 10 0 0 0 0 ; seq 0 0 0 0, "
			       "switches 0, unaligned 0; bytes 0 1153062242095204437; ns 0 10 0; "
			       "max 0 1; of of 2x2^0 2x2^1 1x2^2 1x2^6 2x2^10 2x2^47");
	hr_filerecs_done(&f);
}

/* A sum of calls that overlapped: its time is not from the first to the last. */
static void sums_of_calls(void **state)
{
	struct hr_file_op reads = OP(READ, HR_OFFSET_NONE, 400, 1000, 50),
			  writes = OP(WRITE, HR_OFFSET_NONE, 30, 900, 60),
			  stats = OP(STAT, HR_OFFSET_NONE, 0, 950, 10);
	struct hr_filerecs f;
	uint32_t cached = UINT32_MAX, i;

	hr_filerecs_init(&f);
	i = hr_filerec_get(&f, PROC, 1, HR_API_POSIX, &cached);
	reads.count = 4;
	writes.count = 3;
	stats.count = 2;
	assert_int_equal(hr_filerec_tally(&f, i, &reads, 5000, 45), 0);
	assert_int_equal(hr_filerec_tally(&f, i, &writes, 6000, 55), 0);
	assert_int_equal(hr_filerec_tally(&f, i, &stats, 7000, 65), 0);
	assert_int_equal(hr_filerec_tally(&f, i, &reads, 1, 44), 0);
	assert_record(&f.v[i], "900-1050; 0 8 3 0 2 0 0 ; seq 0 0 0 0, "
			       "switches 2, unaligned 0; bytes 800 30; ns 5001 6000 7000; max 45 "
			       "55; of 8x2^6 of 3x2^3");
	hr_filerecs_done(&f);
}

/* The time of a copy counts once, and each file has its side. */
static void copies_are_divided(void **state)
{
	static const struct {
		int class;
		bool first, second, moves;
		uint64_t first_ns, second_ns;
		int first_class, second_class;
	} cases[] = {
	    {HR_CLASS_WRITE, true, true, true, 0, 9, HR_CLASS_READ, HR_CLASS_WRITE},
	    {HR_CLASS_READ, true, true, true, 9, 0, HR_CLASS_READ, HR_CLASS_WRITE},
	    {HR_CLASS_READ, false, true, true, 0, 9, HR_CLASS_READ, HR_CLASS_WRITE},
	    {HR_CLASS_WRITE, true, false, true, 9, 0, HR_CLASS_READ, HR_CLASS_WRITE},
	    {HR_CLASS_META, true, true, false, 9, 0, HR_CLASS_META, HR_CLASS_META},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hr_file_op op = OP(READ, 5, 70, 8, 9), first, second;

		op.class = (uint8_t)cases[i].class;
		assert_int_equal(
		    hr_file_op_divide(&op, 6, cases[i].first, cases[i].second, &first, &second),
		    cases[i].moves);
		assert_int_equal(first.dur_ns, cases[i].first_ns);
		assert_int_equal(second.dur_ns, cases[i].second_ns);
		assert_int_equal(first.class, cases[i].first_class);
		assert_int_equal(second.class, cases[i].second_class);
		assert_int_equal(first.offset, 5);
		assert_int_equal(second.offset, 6);
		assert_int_equal(first.bytes + second.bytes, 140);
		assert_int_equal(first.start_ns + second.start_ns, 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(idle_ones_leave), cmocka_unit_test(open_ones_leave_last),
	    cmocka_unit_test(every_counter),   cmocka_unit_test(sizes_of_many_kinds),
	    cmocka_unit_test(sums_of_calls),   cmocka_unit_test(copies_are_divided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
