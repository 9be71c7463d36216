/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as a reader uses it: records, sums, losses and late names, read back from the store. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/internal.h"
#include "tests/unit.h"

#define T0 UINT64_C(1700000000000000000)

struct rig {
	char folder[32], store[48];
	struct hr_import_options options;
	struct hr_import_result result;
	struct hr_import import;
	struct hr_import_file file;
	struct hr_import_stream *s;
};

/* What a store has, summed over its frames. */
struct seen {
	uint64_t events, rollup_count, rollup_bytes, rollup_ns;
	uint64_t reads, bytes_read, opens, seq_reads, read_ns;
	uint64_t losses, regions, paths;
	uint32_t ranks_expected;
	char level[16], path[64];
	bool ended;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	strcpy(r->folder, "/tmp/headrace-stream-XXXXXX");
	if (!mkdtemp(r->folder))
		return -1;
	snprintf(r->store, sizeof(r->store), "%s/store", r->folder);
	r->options = (struct hr_import_options){.store = r->store, .ranks = 4};
	r->import = (struct hr_import){.options = &r->options, .result = &r->result, .job_id = "j"};
	pthread_mutex_init(&r->import.lock, NULL);
	r->file = (struct hr_import_file){.import = &r->import, .path = "t", .name = "t"};
	if (hr_store_create(r->store) || hr_import_stream(&r->file, "n1", 2, &r->s))
		return -1;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	char command[80];

	for (size_t i = 0; i < r->import.n_folders; i++)
		free(r->import.folders[i]);
	free(r->import.folders);
	hr__shared_done(&r->import.shared[HR_IMPORT_PATHS]);
	pthread_mutex_destroy(&r->import.lock);
	snprintf(command, sizeof(command), "rm -r %s", r->folder);
	free(r);
	return system(command);
}

static void records_see(const Headrace__FileRecords *m, struct seen *to)
{
	for (size_t i = 0; i < m->n_rows; i++) {
		to->reads += m->rows[i]->reads;
		to->bytes_read += m->rows[i]->bytes_read;
		to->opens += m->rows[i]->opens;
		to->seq_reads += m->rows[i]->seq_reads;
		to->read_ns += m->rows[i]->read_ns;
	}
}

static void frame_see(const Headrace__Frame *f, struct seen *to)
{
	if (f->body_case == HEADRACE__FRAME__BODY_EVENTS)
		to->events += f->events->count;
	else if (f->body_case == HEADRACE__FRAME__BODY_FILE_RECORDS)
		records_see(f->file_records, to);
	else if (f->body_case == HEADRACE__FRAME__BODY_REGIONS)
		to->regions += f->regions->n_key;
	else if (f->body_case == HEADRACE__FRAME__BODY_JOB)
		to->ranks_expected = f->job->ranks_expected;
	else if (f->body_case == HEADRACE__FRAME__BODY_LEVELS)
		snprintf(to->level, sizeof(to->level), "%s", f->levels->level);
	if (f->body_case == HEADRACE__FRAME__BODY_PATHS) {
		to->paths += f->paths->n_rows;
		snprintf(to->path, sizeof(to->path), "%.*s", (int)f->paths->rows[0]->path.len,
			 (const char *)f->paths->rows[0]->path.data);
	}
	for (size_t i = 0; f->body_case == HEADRACE__FRAME__BODY_ROLLUPS && i < f->rollups->n_rows;
	     i++) {
		to->rollup_count += f->rollups->rows[i]->count;
		to->rollup_bytes += f->rollups->rows[i]->bytes;
		to->rollup_ns += f->rollups->rows[i]->dur_ns;
	}
	for (size_t i = 0; f->body_case == HEADRACE__FRAME__BODY_LOSS && i < f->loss->n_rows; i++)
		to->losses += f->loss->rows[i]->count;
}

/* Ends the stream, and reads the store. */
static struct seen stream_end(struct rig *r)
{
	const char *stores[] = {r->store};
	const struct hr_stream *streams;
	struct seen seen = {0};
	struct hr_catalog *c;
	char *error;

	assert_int_equal(hr__istream_finish_reading(r->s), 0);
	assert_int_equal(hr__istream_end(r->s, true), 0);
	assert_int_equal(hr_catalog_open(stores, 1, NULL, &c, &error), 0);
	assert_int_equal(hr_catalog_streams(c, &streams), 1);
	assert_int_equal(hr_catalog_problems(c, &(const struct hr_problem *){NULL}), 0);
	seen.ended = streams[0].ended;
	for (uint32_t i = 0; i < streams[0].n_frames; i++) {
		Headrace__Frame *f;

		assert_int_equal(hr_stream_read(&streams[0], i, &f), 0);
		frame_see(f, &seen);
		headrace__frame__free_unpacked(f, NULL);
	}
	hr_catalog_free(c);
	return seen;
}

static void test_many_operations(void **state)
{
	struct rig *r = *state;
	uint32_t proc = hr_import_process(r->s, 7), n = 3 * HR_BATCH_EVENTS / 2;
	uint64_t dur_ns = 0;
	struct seen seen;
	char path[32];

	for (uint32_t i = 0; i < n; i++) {
		struct hr_event e = {.op = i % 4 ? HR_OP_pread64 : HR_OP_open64,
				     .start_ns = T0 + i * UINT64_C(1000000),
				     .dur_ns = i % 100,
				     .offset = i,
				     .ret = 10,
				     .asked = HR_ASKED_NONE,
				     .fd = 10};

		snprintf(path, sizeof(path), "/data/%u", i / 400);
		e.file = hr_import_path(r->s, path, strlen(path), false);
		dur_ns += e.dur_ns;
		/* more threads than a batch has tasks */
		assert_int_equal(
		    hr_import_operation(r->s, hr_import_thread(r->s, proc, i % 5000), &e), 0);
	}
	seen = stream_end(r);
	assert_int_equal(seen.events, n);
	assert_int_equal(seen.rollup_count, n);
	assert_int_equal(seen.rollup_ns, dur_ns);
	assert_int_equal(seen.opens, n / 4);
	assert_int_equal(seen.reads, n - n / 4);
	assert_int_equal(seen.bytes_read, 10 * seen.reads);
	assert_int_equal(seen.rollup_bytes, seen.bytes_read);
	assert_int_equal(seen.seq_reads, seen.reads - (n + 399) / 400);
	assert_int_equal(seen.paths, (n + 399) / 400);
	assert_string_equal(seen.level, "trace");
	assert_int_equal(seen.ranks_expected, 4);
	assert_true(seen.ended);
}

static void test_records_without_operations(void **state)
{
	struct rig *r = *state;
	uint32_t proc = hr_import_process(r->s, 7), thread = hr_import_thread(r->s, proc, 7);
	Headrace__FileRecord record = HEADRACE__FILE_RECORD__INIT;
	struct hr_import_tally tally = {.op = HR_OP_read,
					.count = 20,
					.bytes = 2000,
					.start_ns = T0,
					.end_ns = T0 + 500,
					.dur_ns = 400};
	struct seen seen;

	record.proc = proc;
	record.file = hr_import_path(r->s, "/a", 2, false);
	record.api = HR_API_POSIX;
	record.reads = 10;
	record.bytes_read = 1000;
	record.read_ns = 200;
	record.first_ns = T0;
	record.last_ns = T0 + 500;
	assert_int_equal(hr_import_record(r->s, &record), 0);
	assert_int_equal(hr_import_record(r->s, &record), 0);
	assert_int_equal(hr_import_tally(r->s, thread, &tally), 0);
	record.proc = 99;
	assert_int_equal(hr_import_record(r->s, &record), -EBADMSG);
	tally.count = 0;
	assert_int_equal(hr_import_tally(r->s, thread, &tally), -EBADMSG);
	seen = stream_end(r);
	assert_int_equal(seen.reads, 20);
	assert_int_equal(seen.bytes_read, 2000);
	assert_int_equal(seen.read_ns, 400);
	assert_int_equal(seen.rollup_count, 20);
	assert_int_equal(seen.rollup_bytes, 2000);
	assert_int_equal(seen.rollup_ns, 400);
	assert_string_equal(seen.level, "trace");
	assert_int_equal(seen.losses, 20); /* import_sums */
}

static void test_late_names_and_losses(void **state)
{
	struct rig *r = *state;
	uint32_t proc = hr_import_process(r->s, 7), thread = hr_import_thread(r->s, proc, 7);
	uint32_t never = hr_import_path_later(r->s, 1, "fallback");
	uint32_t other = hr_import_path_later(r->s, 2, "fallback");
	uint32_t later = hr_import_path_later(r->s, 3, "fallback");
	struct hr_event e = {.op = HR_OP_close, .start_ns = T0, .file = later};
	struct hr_import_region g = {
	    .region = {.kind = HR_REGION_RANGE, .count = 1, .start_ns = T0}, .name = {"x", 1}};
	struct seen seen;

	assert_true(never && other && later);
	assert_int_equal(hr_import_operation(r->s, thread, &e), 0);
	e.op = HR_OP_fork; /* of no class */
	assert_int_equal(hr_import_operation(r->s, thread, &e), -EBADMSG);
	assert_int_equal(hr_import_region(r->s, thread, &g), 0);
	assert_int_equal(hr_import_path_resolve(r->s, later, "/c", 2), 0);
	assert_int_equal(hr_import_path_resolve(r->s, later, "/again", 6), 0);
	assert_true(hr__istream_is_waiting(r->s));
	r->file.index = 2;
	hr_import_shared_add(&r->file, HR_IMPORT_PATHS, 2, "/second", 7);
	r->file.index = 1;
	hr_import_shared_add(&r->file, HR_IMPORT_PATHS, 2, "/first", 6);
	hr_import_lose(&r->file, HR_LOSS_IMPORT_EMPTY, 5);
	hr__istream_lose(r->s, HR_LOSS_TORN, HR_OP_read, 2, 0, 0);
	hr__istream_lose(r->s, HR_LOSS_TORN, HR_OP_read, 3, 0, 0);
	seen = stream_end(r);
	assert_int_equal(seen.paths, 3);
	assert_string_equal(seen.path, "fallback"); /* the first row of the last frame */
	assert_int_equal(seen.regions, 1);
	assert_int_equal(seen.losses, 1 + 5 + 5); /* the name that is never known, too */
	assert_int_equal(r->result.operations, 1);
	assert_int_equal(r->result.regions, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_many_operations, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_records_without_operations, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_late_names_and_losses, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
