/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of a store whose content is known: totals, ranks, folders, losses, and what is
 * missing.
 */
#include "cli/summary/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/summary/summary_parts.h"
#include "common/ops.h"
#include "tests/store/build.h"
#include "tests/unit.h"

#define RANKED	3 /* rank 0, its worker 0, rank 2 */
#define PROCS	4 /* and a process without a rank or I/O */
#define CLASSES 40

static char *dir;

static void add_processes(struct build *b)
{
	Headrace__Process p[PROCS];
	const char *patterns[] = {"/opt", "/etc", ""};
	Headrace__Excluded e[3], *excluded[] = {&e[0], &e[1], &e[2]};

	for (int i = 0; i < PROCS; i++)
		p[i] = (Headrace__Process){.proc = (uint64_t)i + 1,
					   .pid = 100 + i,
					   .start_ns = UINT64_C(1000000000),
					   .end_ns = i == 2 ? 0 : UINT64_C(11000000000),
					   .rank_plus1 = i == RANKED ? 0
							 : i == 2    ? 3
								     : 1,
					   .worker_plus1 = i == 1,
					   .world_size = 4};
	for (int i = 0; i < 3; i++) {
		headrace__excluded__init(&e[i]);
		e[i].pattern = build_bytes(patterns[i]);
		e[i].opens = 120 + (uint64_t)i;
	}
	p[0].n_excluded = 3;
	p[0].excluded = excluded;
	p[2].n_excluded = 1;
	p[2].excluded = excluded;
	build_processes(b, p, PROCS);
}

/* File ids: 1..CLASSES in train/nNN, CLASSES + 1 a checkpoint, CLASSES + 2 a module of Python. */
static void add_paths(struct build *b)
{
	Headrace__Path p[CLASSES + 2];
	char text[CLASSES + 2][64];

	for (uint32_t i = 0; i < CLASSES + 2; i++) {
		if (i < CLASSES)
			snprintf(text[i], sizeof(text[i]), "/data/train/n%02u/a\n.jpg", i);
		else
			snprintf(text[i], sizeof(text[i]),
				 i == CLASSES ? "/data/ckpt/e0.pt" : "/py/os.py");
		p[i] = (Headrace__Path){.id = i + 1,
					.hash = (i + 1) * UINT64_C(8000000008),
					.path = build_bytes(text[i]),
					.scope = i == CLASSES + 1};
	}
	build_paths(b, p, CLASSES + 2, NULL, 0);
}

static void add_rollups(struct build *b)
{
	static uint64_t hists[][4] = {{0, 10}, {20, 4}, {12, 80, 16, 20}, {12, 50}, {6, 7}};
	Headrace__Rollup rows[] = {
	    {.proc = 1, .op = HR_OP_open64, .count = 10, .dur_ns = 1000, .errors = 1},
	    {.proc = 1, .op = HR_OP_write, .count = 4, .bytes = 4 << 20, .dur_ns = 500000},
	    {.proc = 2, .op = HR_OP_read, .count = 100, .bytes = 100 << 12, .dur_ns = 9000},
	    {.proc = 3, .op = HR_OP_read, .count = 50, .bytes = 50 << 12, .dur_ns = 7000},
	    {.proc = 3, .op = HR_OP_read, .scope = 1, .count = 7, .bytes = 700, .dur_ns = 300},
	};

	for (int i = 0; i < 5; i++) {
		rows[i].size_hist = hists[i];
		rows[i].n_size_hist = hists[i][3] != 0 ? 4 : 2;
	}
	build_rollups(b, 0, rows, 5, NULL, 0);
}

static void add_file_records(struct build *b)
{
	Headrace__FileRecord r[CLASSES + 2];

	for (uint32_t i = 0; i < CLASSES + 2; i++)
		r[i] = (Headrace__FileRecord){.proc = 1 + i % RANKED,
					      .file = i + 1,
					      .opens = 1,
					      .read_ns = i < CLASSES	? 1000 + i
							 : i == CLASSES ? 0
									: 999999,
					      .bytes_read = i < CLASSES ? 4096 : 0,
					      .write_ns = i == CLASSES ? 20000 : 0,
					      .bytes_written = i == CLASSES ? 4 << 20 : 0,
					      .first_ns = UINT64_C(2000000000),
					      .last_ns = UINT64_C(12000000000)};
	build_file_records(b, r, CLASSES + 2);
}

static void add_losses(struct build *b)
{
	Headrace__LossRow rows[] = {{.reason = "ring_full", .count = 5, .bytes = 100},
				    {.reason = "torn", .count = 5, .bytes = 100},
				    {.reason = "ring_full", .count = 5, .bytes = 100}};

	build_losses(b, rows, 3);
}

/* File CLASSES + 2 is Python's. The rollups have the shim's records and five calls of probes. */
static void add_kernel_records(struct build *b)
{
	static const struct {
		uint64_t proc, count, bytes;
		uint32_t file, op, cause;
	} table[] = {
	    {1, 4, 4 << 20, CLASSES + 1, HR_OP_write, HR_CAUSE_SHIM},
	    {2, 100, 100 << 12, 1, HR_OP_read, HR_CAUSE_SHIM},
	    {3, 47, 47 << 12, 2, HR_OP_read, HR_CAUSE_SHIM},
	    {3, 5, 5 << 12, 3, HR_OP_pread64, HR_CAUSE_SYSCALL},
	    {3, 1, 1 << 12, 0, HR_OP_io_uring_read, HR_CAUSE_LOST},
	    {1, 2, 2 << 12, 3, HR_OP_page_cache_fill, HR_CAUSE_FILL},
	    {1, 9, 9 << 12, 3, HR_OP_read, HR_CAUSE_FETCH},
	    {1, 9, 9 << 12, 0, HR_OP_read, HR_CAUSE_EXCLUDED},
	    {3, 7, 700, CLASSES + 2, HR_OP_read, HR_CAUSE_SYSCALL},
	    {1, 9, 0, 1, HR_OP_openat, HR_CAUSE_SYSCALL},
	    {1, 2, 99, 0, HR_OP_read, HR_CAUSE_SHIM},
	    {1, 2, 8192, 0, HR_OP_page_cache_fill, HR_CAUSE_FILL},
	};
	enum { ROWS = sizeof(table) / sizeof(table[0]) };
	Headrace__KernelRecord r[ROWS];

	for (int i = 0; i < ROWS; i++)
		r[i] = (Headrace__KernelRecord){.proc = table[i].proc,
						.file = table[i].file,
						.op = table[i].op,
						.cause = table[i].cause,
						.count = table[i].count,
						.bytes = table[i].bytes};
	build_kernel_records(b, r, ROWS);
}

static int make_store(void **state)
{
	struct hr_stream_id id = {
	    .cluster = "", .job = "j", .node = "n1", .boot_id = "b", .instance = 7};
	struct build b = {.now_ns = 1000, .real_minus_boot_ns = UINT64_C(1700000000000000000)};

	dir = build_folder();
	build_open(&b, dir, &id);
	add_processes(&b);
	add_paths(&b);
	add_rollups(&b);
	add_file_records(&b);
	add_losses(&b);
	add_kernel_records(&b);
	build_end(&b, "killed");
	build_close(&b);
	return 0;
}

static int remove_store(void **state)
{
	build_remove(dir);
	return 0;
}

static struct hr_summary *load(void)
{
	struct hr_summary *s = NULL;
	char *error = NULL;

	assert_int_equal(hr_summary_load(dir, "j", &s, &error), 0);
	return s;
}

static void test_totals(void **state)
{
	struct hr_summary *s = load();

	assert_string_equal(s->state, "killed");
	assert_int_equal(s->data.ops, 164);
	assert_int_equal(s->data.opens, 9); /* one of ten failed */
	assert_int_equal(s->data.errors, 1);
	assert_int_equal(s->data.reads, 150);
	assert_int_equal(s->data.small_reads, 130);
	assert_int_equal(s->data.read_bytes, 150 << 12);
	assert_int_equal(s->data.written_bytes, 4 << 20);
	assert_int_equal(s->data.io_ns, 1000 + 500000 + 9000 + 7000);
	assert_int_equal(s->runtime.ops, 7);
	assert_int_equal(s->span_ns, UINT64_C(11000000000));
	assert_int_equal(s->processes, PROCS);
	assert_int_equal(s->processes_open, 1);
	hr_summary_free(s);
}

static void test_ranks(void **state)
{
	struct hr_summary *s = load();

	assert_int_equal(s->ranks, 2);
	assert_int_equal(s->workers, 1);
	assert_int_equal(s->ranks_expected, 4);
	assert_string_equal(s->ranks_missing, "1 3");
	assert_int_equal(s->n_who, 4);
	assert_int_equal(s->who[0].rank, -1);
	assert_int_equal(s->who[1].rank, 0);
	assert_int_equal(s->who[1].worker, -1);
	assert_int_equal(s->who[1].data.written_bytes, 4 << 20);
	assert_int_equal(s->who[2].worker, 0);
	assert_int_equal(s->who[2].data.reads, 100);
	assert_int_equal(s->who[3].rank, 2);
	hr_summary_free(s);
}

/* `run --ranks 0` of four ranks: the list has the last one, too. */
static void test_left_out(void **state)
{
	struct hr_summary_who who[] = {{.rank = 3, .worker = -1, .deselected = true},
				       {.rank = 1, .worker = -1, .deselected = true},
				       {.rank = 0, .worker = -1},
				       {.rank = 2, .worker = -1, .deselected = true},
				       {.rank = -1, .worker = -1}};
	struct hr_summary s = {.who = who, .n_who = 5};

	hr_ranks_count(&s, 4);
	assert_int_equal(s.ranks, 4);
	assert_null(s.ranks_missing);
	assert_string_equal(s.ranks_deselected, "1-3");
	free(s.ranks_deselected);
}

static void test_paths(void **state)
{
	struct hr_summary *s = load();

	/* one row for all class folders; none for the folders of checkpoint and Python */
	assert_int_equal(s->n_folders, 1);
	assert_string_equal(s->folders[0].path, "/data/train");
	assert_int_equal(s->folders[0].sums.files, CLASSES);
	assert_int_equal(s->folders[0].sums.read_bytes, CLASSES * 4096);
	assert_int_equal(s->n_files, 5);
	assert_string_equal(s->files[0].path, "/data/ckpt/e0.pt");
	assert_string_equal(s->files[1].path, "/data/train/n39/a\\x0A.jpg");
	assert_string_equal(s->files[2].path, "/data/train/n38/a\\x0A.jpg");
	hr_summary_free(s);
}

/* The text of a summary, as in a file (columns 0) or on a terminal without styles. */
static char *text_of(const struct hr_summary *s, unsigned columns)
{
	char *text = NULL;
	size_t bytes = 0;
	struct hr_sheet sheet = {.out = open_memstream(&text, &bytes), .columns = columns};

	hr_summary_print(s, &sheet);
	fclose(sheet.out);
	return text;
}

static void test_text(void **state)
{
	struct hr_summary *s = load();
	char *text;

	assert_int_equal(s->lost, 15);
	assert_int_equal(s->n_losses, 2);
	assert_int_equal(s->losses[0].count, 10);
	s->stored_bytes = 2048;
	free(s->store);
	s->store = strdup("/scratch/j");
	text = text_of(s, 80);
	assert_string_equal(
	    text,
	    "headrace: j killed after 11.0 s; 4 processes (1 still open), 2 ranks, 1 worker;\n"
	    "          15 lost\n"
	    "\n"
	    "  The program read 600 KiB and wrote 4.00 MiB. Its threads spent 517 us in I/O,\n"
	    "  during a run of 11.0 s.\n"
	    "\n"
	    "     read  written     opens   I/O time  where the I/O went\n"
	    "  600 KiB 4.00 MiB         9     517 us  all, summed over threads\n"
	    "  160 KiB      0 B        40    40.8 us  /data/train/ (40 files)\n"
	    "      0 B 4.00 MiB         1    20.0 us  /data/ckpt/e0.pt\n"
	    "  200 KiB 4.00 MiB         9     508 us  2 ranks, without workers\n"
	    "      0 B 4.00 MiB         9     501 us  rank 0, 72x the others' mean\n"
	    "  400 KiB      0 B         0    9.00 us  rank 0 worker 0\n"
	    "  counts    164 operations (1 failed); 150 reads, 86.7 % under 64 KiB\n"
	    "\n"
	    "  missing   ranks 1 3 of 4 were not seen\n"
	    "  left out  240 opens below /opt, 122 by other patterns: excluded by default\n"
	    "            (--include lists the paths to record instead)\n"
	    "  missing   10 operations (200 B): a ring buffer had no room;\n"
	    "            HEADRACE_ON_FULL=wait:MS makes threads wait longer (ring_full);\n"
	    "            totals are too low\n"
	    "  missing   5 operations (100 B): the thread was killed while it wrote the\n"
	    "            record (torn); totals are too low\n"
	    "  coverage  99.7 % of 4.61 MiB, 98.1 % of 159 operations that the kernel saw;\n"
	    "            the shim recorded 4.57 MiB, probes 28.0 KiB (syscall 5, fill 2); not\n"
	    "            recorded: 3 operations, 12.0 KiB (1 of them because the probes'\n"
	    "            buffer was full): headrace query /scratch/j coverage\n"
	    "  stored    2.00 KiB\n"
	    "  more      headrace query /scratch/j files\n"
	    "            headrace report /scratch/j\n");
	free(text);
	hr_summary_free(s);
}

static void cover_says(const struct hr_summary_cover *cover, const char *expected)
{
	char *text = NULL;
	size_t bytes = 0;
	struct hr_sheet sheet = {.out = open_memstream(&text, &bytes)};

	hr_cover_print(cover, "s", &sheet);
	fclose(sheet.out);
	assert_string_equal(text, expected);
	free(text);
}

static void test_coverage(void **state)
{
	struct hr_summary *s = load();

	assert_int_equal(s->cover.count, 159);
	assert_int_equal(s->cover.bytes, (4 << 20) + (155 << 12));
	assert_int_equal(s->cover.bpf_count, 7);
	assert_int_equal(s->cover.missing_count, 3);
	assert_int_equal(s->cover.missing_bytes, 3 << 12);
	cover_says(&s->cover,
		   "  coverage  99.7 % of 4.61 MiB, 98.1 % of 159 operations that the kernel "
		   "saw; the shim recorded 4.57 MiB, probes 28.0 KiB (syscall 5, fill 2); not "
		   "recorded: 3 operations, 12.0 KiB (1 of them because the probes' buffer "
		   "was full): headrace query s coverage\n");
	cover_says(&(struct hr_summary_cover){.count = 3, .bytes = 3 << 10},
		   "  coverage  100 % of 3.00 KiB that the kernel saw\n");
	/* a mapped file that probes recorded completely */
	cover_says(&(struct hr_summary_cover){.count = 301,
					      .bytes = (300 << 20) + 100,
					      .bpf_count = 300,
					      .bpf_bytes = 300 << 20,
					      .by_cause[HR_CAUSE_FILL] = 300},
		   "  coverage  100 % of 300 MiB that the kernel saw; the shim recorded 100 B, "
		   "probes 300 MiB (fill 300): headrace query s coverage\n");
	/* If an operation is missing, its share is never rounded up to 100 %. */
	cover_says(
	    &(struct hr_summary_cover){.count = 1000000, .bytes = 1000000, .missing_count = 1},
	    "  coverage  100 % of 977 KiB, 99.9 % of 1,000,000 operations that the kernel saw; "
	    "not recorded: 1 operation, 0 B: headrace query s coverage\n");
	cover_says(&(struct hr_summary_cover){0}, ""); /* no probes ran */
	hr_summary_free(s);
}

/* The summary calls the totals complete only if no other loss may affect them. */
static void test_full_disk(void **state)
{
	static const char complete[] = "(store_full); totals are not affected";
	struct hr_summary *s = load();

	for (int i = 0; i < 3; i++) {
		char *text;

		s->unreported = i == 1;
		assert_int_equal(
		    hr_summary_add_loss(s, i < 2 ? "store_full" : "rollups_full", 1, 0), 0);
		text = text_of(s, 0);
		assert_non_null(strstr(text, i == 0 ? "1 event: the disk was full"
						    : "2 events: the disk was full"));
		assert_int_equal(strstr(text, complete) != NULL, i == 0);
		free(text);
	}
	hr_summary_free(s);
}

static void test_json(void **state)
{
	struct hr_summary *s = load();
	char file[96], text[32768];
	FILE *in;
	size_t n;

	snprintf(file, sizeof(file), "%s/jobs/summary.json", dir);
	assert_int_equal(hr_summary_write(s, file), 0);
	in = fopen(file, "re");
	assert_non_null(in);
	n = fread(text, 1, sizeof(text) - 1, in);
	text[n] = '\0';
	fclose(in);
	unlink(file);
	assert_non_null(strstr(text, "\"schema\": \"headrace-summary/1\","));
	assert_non_null(strstr(text, "\"ranks\": \"1 3\","));
	assert_non_null(strstr(text, "\"operations_lost\": 15,"));
	assert_non_null(strstr(text, "\"kernel_operations\": 159,"));
	assert_non_null(strstr(text, "\"missing_bytes\": 12288\n"));
	assert_non_null(strstr(text, "\"pattern\": \"/opt\",\n        \"opens\": 240\n"));
	assert_non_null(strstr(text, "\"pattern\": \"/etc\",\n        \"opens\": 121\n"));
	assert_non_null(strstr(text, "\"pattern\": null,\n        \"opens\": 122\n"));
	assert_non_null(strstr(text, "\"path\": \"/data/train/n39/a\\\\x0A.jpg\","));
	assert_int_equal(hr_summary_write(s, "/nonexistent/summary.json"), -ENOENT);
	hr_summary_free(s);
}

/* A stream belongs to a run if it begins before that run has ended, otherwise to a new run. */
static void test_runs(void **state)
{
	static const struct hr_run_part streams[] = {
	    {.start_ns = 500, .end_ns = 600, .failed = true},
	    {.start_ns = 100, .end_ns = 200},
	    {.start_ns = 150, .end_ns = 300, .killed = true},
	    {.start_ns = 700, .last_ns = 710, .running = true},
	    {.start_ns = 720, .end_ns = 750},
	};
	static const struct {
		size_t n;
		uint32_t runs;
		const char *job, *last;
		uint64_t span_ns, last_span_ns;
	} want[] = {{0, 0, "ended", "ended", 0, 0},	   {1, 1, "failed", "failed", 100, 100},
		    {2, 2, "failed", "failed", 500, 100},  {3, 2, "killed", "failed", 500, 100},
		    {4, 3, "running", "running", 610, 10}, {5, 3, "running", "running", 650, 50}};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct hr_runs runs = {0};
		struct hr_run_part job;
		struct hr_summary s = {0};

		for (size_t k = 0; k < want[i].n; k++)
			assert_int_equal(hr_runs_add(&runs, &streams[k]), 0);
		assert_int_equal(hr_runs_take(&runs, &s, &job), 0);
		assert_int_equal(s.runs, want[i].runs);
		assert_string_equal(s.state, want[i].job);
		assert_string_equal(s.run_state, want[i].last);
		assert_int_equal(s.span_ns, want[i].span_ns);
		assert_int_equal(s.run_span_ns, want[i].last_span_ns);
		free(s.state);
		free(s.run_state);
		hr_runs_done(&runs);
	}
}

/* Processes that overlap count once, gaps do not count, and a living process counts until now. */
static void test_lives(void **state)
{
	static const struct hr_life lives[] = {{0, -1, 300, 400}, {0, -1, 100, 200},
					       {0, -1, 120, 150}, {0, -1, 150, 250},
					       {0, 0, 10, 0},	  {1, -1, 500, 600}};
	struct hr_summary_who who[] = {{.rank = 0, .worker = -1},
				       {.rank = 0, .worker = 0},
				       {.rank = 1, .worker = -1},
				       {.rank = 2, .worker = -1}};
	static const uint64_t want[] = {250, 990, 100, 0};
	struct hr_lives all = {0};

	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		assert_int_equal(hr_lives_add(&all, &lives[i]), 0);
	hr_lives_sum(&all, 1000, who, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(who[i].life_ns, want[i]);
	hr_lives_done(&all);
}

static void test_no_store(void **state)
{
	struct hr_summary *s = NULL;
	char *error = NULL;

	assert_true(hr_summary_load("/nonexistent", "j", &s, &error) < 0);
	assert_null(s);
	free(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_totals),   cmocka_unit_test(test_ranks),
	    cmocka_unit_test(test_paths),    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_coverage), cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_runs),     cmocka_unit_test(test_json),
	    cmocka_unit_test(test_no_store), cmocka_unit_test(test_lives),
	    cmocka_unit_test(test_left_out),
	};

	return cmocka_run_group_tests(tests, make_store, remove_store);
}
