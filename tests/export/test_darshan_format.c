/* SPDX-License-Identifier: Apache-2.0 */
/* Layout, ids, common values and slowest calls of a Darshan log, and the record of all ranks. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/darshan/darshan_internal.h"
#include "tests/unit.h"

/* Ids that Darshan's runtime writes for these names. */
static void test_ids(void **state)
{
	static const struct {
		const char *name;
		uint64_t id;
	} known[] = {
	    {"heatmap:POSIX", UINT64_C(16592106915301738621)},
	    {"heatmap:STDIO", UINT64_C(3989511027826779520)},
	    {"heatmap:MPIIO", UINT64_C(3668870418325792824)},
	    {"/data/a.jpg", UINT64_C(6066320421661466325)},
	    {"<STDIN>", UINT64_C(14734109647742566553)},
	    {"/usr/lib/python3.11/encodings/__pycache__/__init__.cpython-311.pyc",
	     UINT64_C(1258910778830435160)},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(hr_darshan_id(known[i].name, strlen(known[i].name)), known[i].id);
}

static void test_layout(void **state)
{
	assert_int_equal(offsetof(struct hr_darshan_header, partial), 24);
	assert_int_equal(offsetof(struct hr_darshan_header, names), 32);
	assert_int_equal(offsetof(struct hr_darshan_header, modules), 48);
	assert_int_equal(offsetof(struct hr_darshan_header, versions), 1072);
	assert_int_equal(sizeof(struct hr_darshan_job), 56 + 1024);
	assert_int_equal(sizeof(struct hr_darshan_dxt), 104);
	assert_int_equal(sizeof(struct hr_darshan_heat), 48);
	assert_int_equal(HR_DP_COUNTERS, 69);
	assert_int_equal(HR_DP_TIMES, 17);
	assert_int_equal(HR_DP_SIZE_READ, 29);
	assert_int_equal(HR_DP_FASTEST_RANK, 65);
	assert_int_equal(HR_DS_COUNTERS, 14);
	assert_int_equal(HR_DS_TIMES, 15);
}

/* Returns the content of a region (malloc'ed), which has `bytes` bytes. */
static uint8_t *region_content(int fd, struct hr_darshan_region place, size_t bytes)
{
	uint8_t *packed = malloc(place.bytes), *content = malloc(bytes + 1);
	struct inflate_state *z = calloc(1, sizeof(*z));

	assert_int_equal(pread(fd, packed, place.bytes, (off_t)place.offset), place.bytes);
	isal_inflate_init(z);
	z->crc_flag = ISAL_ZLIB;
	z->next_in = packed;
	z->avail_in = (uint32_t)place.bytes;
	z->next_out = content;
	z->avail_out = (uint32_t)bytes + 1;
	assert_int_equal(isal_inflate(z), ISAL_DECOMP_OK);
	assert_int_equal(z->block_state, ISAL_BLOCK_FINISH);
	assert_int_equal(z->total_out, bytes);
	assert_int_equal(z->avail_in, 0);
	free(packed);
	free(z);
	return content;
}

/* Regions without data, and regions larger than the buffers of the writer. */
static void test_regions(void **state)
{
	static const size_t sizes[] = {0, 1, 65536, 3000000};
	struct hr_darshan_log *log = calloc(1, sizeof(*log));
	struct hr_darshan_header header;
	struct hr_darshan_region places[4];
	uint8_t *data = malloc(3000000);
	uint32_t random = 1;
	int fd = memfd_create("log", 0);

	for (size_t i = 0; i < 3000000; i++) {
		random = random * 1664525 + 1013904223;
		data[i] = (uint8_t)(random >> (i % 3 == 0 ? 24 : 30));
	}
	hr_darshan_begin(log, fd);
	for (size_t i = 0; i < 4; i++) {
		hr_darshan_region_start(log);
		for (size_t at = 0, n; at < sizes[i]; at += n) {
			n = sizes[i] - at < 70001 ? sizes[i] - at : 70001;
			assert_int_equal(hr_darshan_put(log, data + at, n), 0);
		}
		if (i == 3)
			assert_int_equal(hr_darshan_module_end(log, HR_DARSHAN_HEATMAP,
							       HR_DARSHAN_HEATMAP_VERSION),
					 0);
		else
			assert_int_equal(hr_darshan_region_end(log, &places[i]), 0);
	}
	places[3] = log->header.modules[HR_DARSHAN_HEATMAP];
	assert_int_equal(hr_darshan_finish(log), 0);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	assert_string_equal(header.version, "3.41");
	assert_int_equal(header.magic, 6567223);
	assert_int_equal(header.versions[15], 1);
	assert_int_equal(places[0].offset, 1328);
	for (size_t i = 0; i < 4; i++) {
		uint8_t *content = region_content(fd, places[i], sizes[i]);

		assert_memory_equal(content, data, sizes[i]);
		if (i > 0)
			assert_int_equal(places[i].offset,
					 places[i - 1].offset + places[i - 1].bytes);
		free(content);
	}
	close(fd);
	free(data);
	free(log);
}

static void test_buckets(void **state)
{
	static const uint64_t most[] = {100,	 1024,	   10240,     102400,	 1048576,
					4194304, 10485760, 104857600, 1073741824};

	assert_int_equal(hr__darshan_bucket(0), 0);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(hr__darshan_bucket(most[i]), i);
		assert_int_equal(hr__darshan_bucket(most[i] + 1), i + 1);
	}
}

static void test_common_values(void **state)
{
	struct hr__darshan_value list[] = {{0, 90}, {7, 3}, {100, 5}, {8, 3}, {1, 1}, {50, 5}};
	int64_t got[8];
	const int64_t expected[8] = {100, 50, 8, 7, 5, 5, 3, 3};

	hr__darshan_common(list, 6, got);
	assert_memory_equal(got, expected, sizeof(got));
	hr__darshan_common(list + 1, 1, got); /* the list is sorted now */
	assert_int_equal(got[0], 100);
	assert_int_equal(got[1], 0);
}

/* A call inside or after another one adds only the time that it does not share. */
static void test_times(void **state)
{
	struct hr__darshan_op o = {.start_ns = 1000000000, .end_ns = 3000000000};
	int64_t last_ns = 0;
	double seconds = 0;

	hr__darshan_time_add(&seconds, &o, &last_ns);
	o = (struct hr__darshan_op){.start_ns = 2000000000, .end_ns = 4000000000};
	hr__darshan_time_add(&seconds, &o, &last_ns);
	o = (struct hr__darshan_op){.start_ns = 2500000000, .end_ns = 3500000000};
	hr__darshan_time_add(&seconds, &o, &last_ns);
	assert_true(seconds == 3.0);
	assert_int_equal(last_ns, 4000000000);
}

/* The log has the time of the slowest read with the size of this read, and likewise for writes. */
static void test_slowest_calls(void **state)
{
	static const struct {
		uint16_t op;
		int64_t ms, bytes;
	} calls[] = {{.op = HR_OP_pread64, .ms = 2, .bytes = 100},
		     {.op = HR_OP_pwrite64, .ms = 6, .bytes = 4000},
		     {.op = HR_OP_pread64, .ms = 9, .bytes = 200},
		     {.op = HR_OP_pwrite64, .ms = 4, .bytes = 5000},
		     {.op = HR_OP_pread64, .ms = 7, .bytes = 300}};
	struct hr__darshan *d = calloc(1, sizeof(*d));
	struct hr__darshan_posix rec = {0};
	struct hr__darshan_use use = {.posix = &rec};
	struct hr__darshan_state followed = {.position = -1};
	struct hr__darshan_process files = {.states = &followed, .n = 1};
	struct hr_process known = {.rank = 0};
	struct hr_walk_process process = {.p = &known};
	struct hr_walk_stream stream = {.processes = &process};
	int64_t at_ns = 0;

	assert_non_null(d);
	assert_int_equal(hr_map64_set(&files.by_file, UINT64_C(1) << 1 | HR__DARSHAN_POSIX, 0), 0);
	d->uses = &use;
	d->n_uses = 1;
	d->stream = &stream;
	d->processes = &files;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct hr_event e = {.op = calls[i].op, .file = 1, .ret = calls[i].bytes};
		struct hr__darshan_op o = {.e = &e,
					   .info = hr_op_info(e.op),
					   .process = &process,
					   .start_ns = at_ns,
					   .end_ns = at_ns + calls[i].ms * 1000000,
					   .bytes = (uint64_t)calls[i].bytes};

		assert_int_equal(hr__darshan_posix_add(d, &o), 0);
		at_ns = o.end_ns;
	}
	assert_int_equal(rec.log.c[HR_DP_READS], 3);
	assert_int_equal(rec.log.c[HR_DP_WRITES], 2);
	assert_true(rec.log.f[HR_DP_MAX_READ_TIME] == 0.009);
	assert_true(rec.log.f[HR_DP_MAX_WRITE_TIME] == 0.006);
	assert_int_equal(rec.log.c[HR_DP_MAX_READ_TIME_SIZE], 200);
	assert_int_equal(rec.log.c[HR_DP_MAX_WRITE_TIME_SIZE], 4000);
	hr__darshan_heat_done(d);
	hr__darshan_dxt_done(d);
	hr_map64_done(&files.by_file);
	hr_arena_free(&d->memory);
	free(d);
}

/* When bins are doubled, because the job lasts longer than 20 s, each byte remains, once. */
static void test_heat_of_a_long_job(void **state)
{
	static const struct {
		int64_t s, bytes;
	} calls[] = {{.s = 1, .bytes = 100}, {.s = 15, .bytes = 7}, {.s = 30, .bytes = 50}};
	struct hr__darshan *d = calloc(1, sizeof(*d));
	struct hr_process known = {.rank = 0};
	struct hr_walk_process process = {.p = &known};
	const int64_t *bins;
	int64_t sum = 0;

	assert_non_null(d);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct hr__darshan_op o = {.process = &process,
					   .start_ns = calls[i].s * 1000000000,
					   .end_ns = calls[i].s * 1000000000 + 1000,
					   .bytes = (uint64_t)calls[i].bytes};

		assert_int_equal(hr__darshan_heat_add(d, &o, HR__DARSHAN_POSIX, HR__DARSHAN_READS),
				 0);
	}
	assert_int_equal(d->heat.n, 1);
	assert_int_equal(d->heat.bin_ns, 2 * HR__DARSHAN_BIN_NS);
	bins = d->heat.rows[0]->bytes[HR__DARSHAN_READS];
	for (size_t k = 0; k < HR__DARSHAN_BINS; k++)
		sum += bins[k];
	assert_int_equal(bins[5], 100);
	assert_int_equal(bins[75], 7);
	assert_int_equal(bins[150], 50);
	assert_int_equal(sum, 157);
	hr__darshan_heat_done(d);
	free(d);
}

static struct hr_darshan_posix rank_record(int64_t rank, int64_t bytes, double seconds)
{
	struct hr_darshan_posix rec = {.id = 77, .rank = rank};

	rec.c[HR_DP_READS] = 10 + rank;
	rec.c[HR_DP_BYTES_READ] = bytes;
	rec.c[HR_DP_MAX_BYTE_READ] = 1000 - rank;
	rec.c[HR_DP_FILENOS] = HR_DARSHAN_UNKNOWN;
	rec.c[HR_DP_FILE_ALIGNMENT] = 4096;
	rec.c[HR_DP_ACCESS] = 100 + rank % 2;
	rec.c[HR_DP_ACCESS + 4] = 10;
	rec.c[HR_DP_MAX_READ_TIME_SIZE] = rank;
	rec.f[HR_DP_MAX_READ_TIME] = seconds / 2;
	rec.f[HR_DP_READ_TIME] = seconds;
	rec.f[HR_DP_READ_START] = rank % 3 == 0 ? 0 : 5.0 - (double)rank; /* 0: it read nothing */
	rec.f[HR_DP_READ_END] = 6.0 + (double)rank;
	return rec;
}

static void test_shared_record(void **state)
{
	struct hr_darshan_posix ranks[4] = {rank_record(0, 4000, 2), rank_record(1, 2000, 4),
					    rank_record(2, 4000, 1), rank_record(3, 6000, 1)};
	void *list[4] = {&ranks[0], &ranks[1], &ranks[2], &ranks[3]};
	struct hr_darshan_posix all;

	hr__darshan_posix_reduce(list, 4, &all);
	assert_int_equal(all.id, 77);
	assert_int_equal(all.rank, -1);
	assert_int_equal(all.c[HR_DP_READS], 46);
	assert_int_equal(all.c[HR_DP_BYTES_READ], 16000);
	assert_int_equal(all.c[HR_DP_MAX_BYTE_READ], 1000);
	assert_int_equal(all.c[HR_DP_FILENOS], -1);
	assert_int_equal(all.c[HR_DP_FILE_ALIGNMENT], 4096);
	assert_int_equal(all.c[HR_DP_ACCESS], 101);
	assert_int_equal(all.c[HR_DP_ACCESS + 1], 100);
	assert_int_equal(all.c[HR_DP_ACCESS + 4], 20);
	assert_int_equal(all.c[HR_DP_ACCESS + 5], 20);
	assert_int_equal(all.c[HR_DP_MAX_READ_TIME_SIZE], 1);
	assert_int_equal(all.c[HR_DP_FASTEST_RANK], 2);
	assert_int_equal(all.c[HR_DP_FASTEST_RANK_BYTES], 4000);
	assert_int_equal(all.c[HR_DP_SLOWEST_RANK], 1);
	assert_int_equal(all.c[HR_DP_SLOWEST_RANK_BYTES], 2000);
	assert_true(all.f[HR_DP_READ_TIME] == 8.0);
	assert_true(all.f[HR_DP_READ_START] == 3.0);
	assert_true(all.f[HR_DP_READ_END] == 9.0);
	assert_true(all.f[HR_DP_FASTEST_RANK_TIME] == 1.0);
	assert_true(all.f[HR_DP_SLOWEST_RANK_TIME] == 4.0);
	assert_true(all.f[HR_DP_VARIANCE_RANK_TIME] == 1.5);
	assert_true(all.f[HR_DP_VARIANCE_RANK_BYTES] == 2000000.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ids),
	    cmocka_unit_test(test_layout),
	    cmocka_unit_test(test_regions),
	    cmocka_unit_test(test_buckets),
	    cmocka_unit_test(test_common_values),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_shared_record),
	    cmocka_unit_test(test_slowest_calls),
	    cmocka_unit_test(test_heat_of_a_long_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
