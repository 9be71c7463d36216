/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named_test.c - every named query runs, says what it should of the small store, and documents
 * itself
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "collector/query/named.h"
#include "collector/query/notes.h"
#include "collector/query/output.h"
#include "tests/query/fixture.h"

/* The answer of `name` with up to three words, as CSV without carriage returns. */
static char *ask(const char *name, char *a, char *b, char *c)
{
	char *words[] = {a, b, c}, *text, *error = NULL, *to, *from;
	size_t bytes, n = a == NULL ? 0 : b == NULL ? 1 : c == NULL ? 2 : 3;
	const struct hr_named *q = hr_named_find(name);
	FILE *file = open_memstream(&text, &bytes);
	struct hr_named_args args;
	struct hr_query_sink sink;
	struct hr_output *out;

	assert_non_null(q);
	if (hr_named_args_init(q, words, n, &args, &error) < 0)
		fail_msg("%s: %s", name, error);
	assert_int_equal(hr_output_new(HR_OUTPUT_CSV, file, 0, &out), 0);
	sink = hr_output_sink(out);
	if (hr_query_run(fix.q, q->sql, args.list, args.n, &sink, &error) < 0)
		fail_msg("%s: %s", name, error);
	hr_named_args_done(&args);
	hr_output_free(out);
	fclose(file);
	for (to = from = text; *from != '\0'; from++) {
		if (*from != '\r')
			*to++ = *from;
	}
	*to = '\0';
	return text;
}

static void expect(const char *name, char *a, char *b, char *c, const char *expected)
{
	char *text = ask(name, a, b, c);

	if (strcmp(text, expected) != 0)
		fail_msg("%s\n--- is\n%s--- should be\n%s---", name, text, expected);
	free(text);
}

static void answers_are_right(void **state)
{
	(void)state;
	expect("summary", NULL, NULL, NULL,
	       "what,time_s,ops,bytes,io_bytes_per_s,run_bytes_per_s,small_percent,errors,state,"
	       "job\n"
	       "all,0.00000105,7,800,761904762,267,,2,killed,7\n"
	       "read,0.00000105,7,800,761904762,267,100,2,killed,7\n"
	       "write,0,0,0,,0,,0,killed,7\nother,0,0,,,,,0,killed,7\n");
	expect("ops", NULL, NULL, NULL,
	       "op,ops,time_s,mean_us,max_s,bytes,errors,class,api\n"
	       "read,7,0.00000105,0.15,0.0000008,800,2,read,posix\n");
	expect("ops", "mount=/scratch", NULL, NULL,
	       "op,ops,time_s,mean_us,max_s,bytes,errors,class,api\n");
	expect("ranks", NULL, NULL, NULL,
	       "rank,workers,ops,bytes_read,bytes_written,read_s,write_s,meta_s,errors,procs,node,"
	       "job\n0,0,7,800,0,0.00000105,0,0,2,1,n1,7\n");
	expect("workers", "0", NULL, NULL,
	       "rank,worker,ops,bytes_read,bytes_written,read_s,write_s,meta_s,errors,procs,node,"
	       "job\n0,,7,800,0,0.00000105,0,0,2,1,n1,7\n");
	expect("mounts", NULL, NULL, NULL,
	       "mount,fs_type,ops,errors,bytes_read,bytes_written,time_s,slowest_proc_s\n"
	       "/data,lustre,7,2,800,0,0.00000105,0.00000105\n");
	expect("sizes", NULL, NULL, NULL,
	       "class,from_bytes,to_bytes,ops,percent\nread,64,128,7,100\n");
	expect("files", "5", NULL, NULL,
	       "path,ops,bytes_read,bytes_written,read_s,write_s,meta_s,procs\n"
	       "/data/train/img-001.jpg,6,16384,0,0.0000008,0,0,1\n");
	expect("patterns", NULL, NULL, NULL,
	       "pattern,files,opens,reads,writes,bytes_read,bytes_written,time_s\n"
	       "img.jpg,1,2,4,0,16384,0,0.0000008\n");
	expect(
	    "losses", NULL, NULL, NULL,
	    "reason,op,ops,bytes,time_s,rank,pid,node,job\nring_full,read,11,110,0,0,101,n1,7\n");
	expect("file", "/scratch/ckpt/model-20.pt", "top=1", NULL,
	       "time_s,op,file_offset,asked,bytes,errno,dur_us,rank,worker,pid,tid,node,job\n"
	       "0.0000025,write,1000,1000,0,28,0.1,0,3,101,101,n1,7\n");
	expect("slow", "1", "rank=2", NULL,
	       "dur_s,time_s,op,bytes,path,rank,worker,errno,pid,node,job\n"
	       "0.0000001,0,open64,,/data/train/img-001.jpg,2,,,100,n2,7\n");
	/* Job 7 was at level counters for a while: windows of 10 s, whatever the step. */
	expect("timeline", NULL, NULL, NULL,
	       "time_s,ops,bytes_read,bytes_written,read_s,write_s,meta_s,errors,job\n"
	       "0,7,800,0,0.00000105,0,0,2,7\n");
}

/* Rank 0: operations of 100 ns that never overlap; rank 2 has one at the same time as another. */
static void union_of_intervals(void **state)
{
	(void)state;
	expect("io-time", "scope=all", NULL, NULL,
	       "rank,io_s,sum_s,span_s,ops,job\n0,0.0000008,0.0000008,0.0000041,8,7\n"
	       "2,0.0000005,0.0000005,0.0000026,5,7\n,0.0000002,0.0000002,0.0000011,2,7\n");
}

static void all_run_and_are_documented(void **state)
{
	(void)state;
	for (const struct hr_named *q = hr_named_list; q->name != NULL; q++) {
		const char *about;
		char *word = strcmp(q->name, "file") == 0 ? (char[]){"/x"} : NULL;
		char *text = ask(q->name, word, NULL, NULL), *end = strchr(text, '\n');
		size_t n;

		hr_named_about(q, &about, &n);
		assert_true(n > 20 && strncmp(q->sql, "-- ", 3) == 0);
		*end = '\0';
		/* Each column of the answer is in the header. */
		for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
			const char *at = q->sql;
			bool found = false;

			while (!found && (at = strstr(at, "-- column ")) != NULL) {
				const char *stop = strchr(at, ':');

				for (const char *c = strstr(at, name); c != NULL && c < stop;
				     c = strstr(c + 1, name))
					found |= strchr(" ,", c[-1]) != NULL &&
						 strchr(",:", c[strlen(name)]) != NULL;
				at = stop;
			}
			if (!found)
				fail_msg("%s: the column %s is not documented", q->name, name);
		}
		free(text);
	}
}

static void wrong_arguments_are_refused(void **state)
{
	static const char *const wrong[] = {"top=x",	 "nosuch=1", "1.5",
					    "scope=dat", "class=",   "class=read|write"};
	struct hr_named_args args;
	char *missing = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *words[] = {(char *)wrong[i]}, *error = NULL;

		assert_int_equal(hr_named_args_init(hr_named_find("slow"), words, 1, &args, &error),
				 -EINVAL);
		assert_non_null(error);
		free(error);
	}
	assert_int_equal(hr_named_args_init(hr_named_find("file"), NULL, 0, &args, &missing),
			 -EINVAL);
	assert_string_equal(missing, "file needs path: see headrace query --explain file");
	free(missing);
	assert_null(hr_named_find("nosuch"));
}

/* Arguments are values, whatever they look like. */
static void arguments_are_not_pasted(void **state)
{
	(void)state;
	expect("ops", "mount=x' OR 1=1 --", NULL, NULL,
	       "op,ops,time_s,mean_us,max_s,bytes,errors,class,api\n");
}

static void relative_paths_are_of_this_folder(void **state)
{
	static const char *const cases[][2] = {
	    {"img-001.jpg", "/tmp/img-001.jpg"},
	    {"./a//b/./c", "/tmp/a/b/c"},
	    {"../data/x", "/data/x"},
	    {"../../..", ""},
	    {"/a/../b", "/a/../b"},
	    {"path=.hidden", "/tmp/.hidden"},
	};
	struct hr_named_args args;
	char *error = NULL;

	(void)state;
	assert_int_equal(chdir("/tmp"), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[] = {(char *)cases[i][0]};

		assert_int_equal(hr_named_args_init(hr_named_find("file"), words, 1, &args, &error),
				 0);
		assert_string_equal(args.list[0].text, cases[i][1]);
		hr_named_args_done(&args);
	}
}

static char said[16][256];
static unsigned n_said;

static void remember(const char *text)
{
	snprintf(said[n_said++ % 16], sizeof(said[0]), "%s", text);
}

static void notes_say_what_is_missing(void **state)
{
	static const char *const expected[] = {
	    "job 7: 11 operations (110 bytes) were not recorded: ring_full",
	    "job 7, node n1: only counters were kept for 1.5 s: these operations are in rollups "
	    "and file_records, not in events (io-time, slow and file read those): --level trace "
	    "records them",
	    "job 7, node n2: ended without a word (its daemon was killed): the answer covers what "
	    "was stored until then",
	    "job 7: 2 of 4 expected ranks were not seen: 1, 3",
	};

	(void)state;
	assert_int_equal(hr_query_notes(fix.q, 16, remember), 0);
	assert_int_equal(n_said, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(said[i], expected[i]);
	n_said = 0;
	assert_int_equal(hr_query_notes(fix.q, 1, remember), 0);
	assert_int_equal(n_said, 2);
	assert_string_equal(said[1], "and 3 more notes of this kind");
}

/* What is not there is said, with what is. */
static void absent_values_are_named(void **state)
{
	static const struct {
		const char *name, *word, *note;
	} cases[] = {
	    {"slow", "rank=9", "there is no rank 9 here; there is: 0, 2"},
	    {"slow", "rank=2", NULL},
	    {"ops", "mount=/dat", "there is no mount /dat here; there is: /data"},
	    {"files", "pattern=x", "there is no pattern x here; there is: img.jpg"},
	    {"file", "/elsewhere/model-20.pt",
	     "there is no path /elsewhere/model-20.pt here; there is: /scratch/ckpt/model-20.pt, "
	     "/data/odd\\x0A\\xFF\\\\1, /data/train/img-001.jpg, /scratch/ckpt/model-10.pt, "
	     "/usr/lib/python3/os.py"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[] = {(char *)cases[i].word}, *error = NULL;
		struct hr_named_args args;

		n_said = 0;
		assert_int_equal(
		    hr_named_args_init(hr_named_find(cases[i].name), words, 1, &args, &error), 0);
		assert_int_equal(hr_named_absent(fix.q, &args, remember), 0);
		assert_int_equal(n_said, cases[i].note != NULL);
		if (cases[i].note != NULL)
			assert_string_equal(said[0], cases[i].note);
		hr_named_args_done(&args);
	}
	n_said = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answers_are_right),
	    cmocka_unit_test(union_of_intervals),
	    cmocka_unit_test(all_run_and_are_documented),
	    cmocka_unit_test(wrong_arguments_are_refused),
	    cmocka_unit_test(arguments_are_not_pasted),
	    cmocka_unit_test(notes_say_what_is_missing),
	    cmocka_unit_test(relative_paths_are_of_this_folder),
	    cmocka_unit_test(absent_values_are_named),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
