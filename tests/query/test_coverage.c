/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_coverage.c - what the kernel saw against what was recorded: the table, the named query, its notes. The numbers are those
 * of kernel_rows and recorded in fixture_probed.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/notes.h"
#include "common/unseen.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define HEADER                                                                                     \
	"path,kernel_count,kernel_bytes,shim_count,shim_bytes,bpf_count,bpf_bytes,missing_count,"  \
	"missing_bytes,extra_count,recorded_percent,share_percent,causes,rank,pid,node,job,"       \
	"attempt\n"

static int setup(void **state)
{
	*state = fixture_make_probed();
	fixture_open_job(&fix, *state, "11", NULL);
	return 0;
}

static void expect(char *a, char *b, const char *expected)
{
	char *text = fixture_named(&fix, "coverage", a, b, NULL);

	if (strcmp(text, expected) != 0)
		fail_msg("--- is\n%s--- should be\n%s---", text, expected);
	free(text);
}

static void the_table_adds_up(void **state)
{
	fixture_expect(&fix,
		       "SELECT proc, rank, path, mount, fs_type, scope, op, api, class, cause, "
		       "count, bytes, errors, dur_ns FROM kernel_records WHERE proc = 1 AND "
		       "path LIKE '/data%' ORDER BY op",
		       "1,0,/data/train/img-001.jpg,/data,lustre,data,openat,posix,open,shim,9,0,0,"
		       "90\n"
		       "1,0,/data/train/img-001.jpg,/data,lustre,data,pread64,posix,read,shim,10,"
		       "1000,1,100\n"
		       "1,0,/data/train/img-001.jpg,/data,lustre,data,read,posix,read,fetch,2,8192,"
		       "0,20\n");
	fixture_expect(&fix,
		       "SELECT path, scope, cause, count FROM kernel_records WHERE path IS NULL "
		       "ORDER BY count",
		       ",,unattached,1\n,,shim,2\n,,shim,3\n,,fill,9\n,,excluded,100\n");
	fixture_expect(&fix,
		       "SELECT api, class FROM kernel_records WHERE cause IN ('uring', 'fill') "
		       "ORDER BY ALL",
		       "mmap,map\nmmap,map\nuring,read\n");
}

static void files_worst_first(void **state)
{
	expect(
	    NULL, NULL,
	    HEADER
	    /* of no file: what no file has too much of is not recorded */
	    ",4,70,0,0,0,0,4,70,0,0,0,\"excluded read 100, unrecorded write 3, unattached read 1, "
	    "unrecorded read 1\",,,,11,2\n"
	    /* stdio: a process that the shim has, and one that it has not */
	    "/data/odd\\x0A\\xFF\\\\1,6,12348,4,12298,0,0,2,50,0,66.66,66.66,unrecorded stdio "
	    "2,,,,11,2\n"
	    /* raw writes, and two that were lost on the way from the shim */
	    "/scratch/ckpt/model-10.pt,13,1300,6,600,5,500,2,200,0,84.61,46.15,"
	    "\"syscall pwrite64 5, unrecorded write 2\",,,,11,2\n"
	    /* io_uring, the buffer was full, a mapping; a copy that was recorded */
	    "/scratch/ckpt/model-20.pt,28,14758,1,70,23,14288,4,400,0,85.71,0.47,"
	    "\"uring read 20, lost read 4, fill 3\",,,,11,2\n"
	    /* more than the kernel saw, which is no lack */
	    "/data/train/img-001.jpg,10,1000,12,1200,0,0,0,0,2,100,100,,,,,11,2\n");
	expect("top=1", "scope=runtime",
	       HEADER
	       "/usr/lib/python3/os.py,7,700,0,0,7,700,0,0,0,100,0,syscall read 7,,,,11,2\n");
}

static void processes_and_jobs(void **state)
{
	expect("by=process", NULL,
	       HEADER
	       ",32,14778,0,0,23,14288,9,490,0,71.87,0,"
	       "\"uring read 20, lost read 4, fill 3, unrecorded write 3, unrecorded stdio "
	       "2\",0,101,n1,11,2\n"
	       ",5,12328,4,12298,0,0,1,30,0,80,80,\"unattached read 1, unrecorded read "
	       "1\",,102,n1,11,2\n"
	       ",24,2370,19,1870,5,500,2,200,2,91.56,70.46,"
	       "\"excluded read 100, syscall pwrite64 5, unrecorded write 2\",0,100,n1,11,2\n");
	expect("by=job", NULL,
	       HEADER
	       ",61,29476,23,14168,28,14788,12,720,2,80.32,34.42,"
	       "\"excluded read 100, uring read 20, syscall pwrite64 5, unrecorded write 5, lost "
	       "read 4, "
	       "fill 3, unrecorded stdio 2, unattached read 1, unrecorded read 1\",,,,11,2\n");
}

static void bytes_of_mappings_are_those_of_files(void **state)
{
	char *text = fixture_named(&fix, "files", "by=bytes", "top=1", NULL);

	assert_non_null(strstr(text, "\n/scratch/ckpt/model-20.pt,"));
	assert_non_null(strstr(text, ",12288,")); /* bytes_mapped: three pages */
	free(text);
}

static char said[2][512];
static unsigned n_said;

static void remember(void *self, const char *text)
{
	snprintf(said[n_said++ % 2], sizeof(said[0]), "%s", text);
}

static void what_is_not_known_is_said(void **state)
{
	static const struct hr_sink messages = {remember, NULL};
	struct hr_named_args args;
	struct fixture f;
	char *error = NULL, *text;

	assert_int_equal(hr_named_args_init(hr_named_find("coverage"), NULL, 0, &args, &error), 0);
	assert_int_equal(hr_named_notes(fix.q, &args, &messages), 0);
	assert_int_equal(n_said, 0);
	/* Of one node of job 12 nothing is known, and so its file records count for nothing. */
	fixture_open_job(&f, *state, "12", NULL);
	assert_int_equal(hr_named_notes(f.q, &args, &messages), 0);
	assert_int_equal(n_said, 2);
	assert_string_equal(said[0],
			    "probes did not run for job 12 on n2, or saw no I/O on files: "
			    "coverage there is unknown\nhint: record with headrace run --probes");
	assert_string_equal(said[1],
			    "job 12 loaded libaws-c-s3.so.0: the numbers lack the data that "
			    "such a library moves, because it does not go through files");
	text = fixture_named(&f, "coverage", "by=job", NULL, NULL);
	assert_non_null(strstr(text, ",61,29476,23,14168,28,14788,12,720,2,80.32,34.42,"));
	free(text);
	fixture_close(&f);
	hr_named_args_done(&args);
}

/* Two lists, of which one is in SQL. */
static void libraries_are_those_of_the_daemon(void **state)
{
	static const char *const others[] = {"/usr/lib/libaws.so", "/a/libdaos.so.0/x",
					     "/a/libdaos.h", "/a/mylibdaos.so",
					     "/usr/lib/libcufile.so.0"};
	const char *sql = strstr(hr_named_find("coverage")->sql, "regexp_matches(name, ");
	int n = (int)(strchr(sql, ')') - sql);
	char *ask, path[128];

	n += (int)strcspn(sql + n, "'"); /* the pattern has a bracket of its own */
	for (const char *const *name = hr_unseen_names; *name; name++) {
		snprintf(path, sizeof(path), "/opt/x/%sso.1.so", *name);
		assert_true(hr_unseen_library(path, strlen(path)));
		assert_true(asprintf(&ask, "SELECT %.*s') FROM (SELECT '%s' AS name)", n, sql,
				     strrchr(path, '/') + 1) > 0);
		fixture_expect(&fix, ask, "true\n");
		free(ask);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(hr_unseen_library(others[i], strlen(others[i])));
	/* Loaded by each program with CUDA's PyTorch, used by few. */
	assert_true(asprintf(&ask, "SELECT %.*s') FROM (SELECT 'libcufile.so.0' AS name)", n, sql) >
		    0);
	fixture_expect(&fix, ask, "false\n");
	free(ask);
}

static void without_probes_there_is_no_answer(void **state)
{
	char *store = fixture_make_runs(), *text;
	struct fixture f;

	fixture_open(&f, store, NULL);
	text = fixture_named(&f, "coverage", NULL, NULL, NULL);
	assert_string_equal(text, HEADER);
	free(text);
	fixture_close(&f);
	build_remove(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_table_adds_up),
	    cmocka_unit_test(files_worst_first),
	    cmocka_unit_test(processes_and_jobs),
	    cmocka_unit_test(bytes_of_mappings_are_those_of_files),
	    cmocka_unit_test(what_is_not_known_is_said),
	    cmocka_unit_test(libraries_are_those_of_the_daemon),
	    cmocka_unit_test(without_probes_there_is_no_answer),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
