/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_named.c - every named query runs, says what it should of the small store, and documents
 * itself
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query/named.h"
#include "query/notes.h"
#include "query/duckdb/output.h"
#include "tests/query/fixture.h"
#include "tests/query/fixture_frames.h"
#include "tests/unit.h"

static char *ask(const char *name, char *a, char *b, char *c)
{
	return fixture_named(&fix, name, a, b, c);
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
	expect("summary", NULL, NULL, NULL,
	       "what,time_s,ops,bytes,io_bytes_per_s,run_bytes_per_s,small_percent,errors,state,"
	       "job,attempt\n"
	       "all,0.00000105,7,800,761904762,267,,2,killed,7,2\n"
	       "read,0.00000105,7,800,761904762,267,100,2,killed,7,2\n"
	       "write,0,0,0,,0,,0,killed,7,2\nother,0,0,,,,,0,killed,7,2\n");
	expect("ops", NULL, NULL, NULL,
	       "op,ops,time_s,mean_s,max_s,bytes,errors,class,api\n"
	       "read,7,0.00000105,0.00000015,0.0000008,800,2,read,posix\n");
	expect("ops", "rank=0", NULL, NULL,
	       "op,ops,time_s,mean_s,max_s,bytes,errors,class,api\n"
	       "read,7,0.00000105,0.00000015,0.0000008,800,2,read,posix\n");
	expect("ops", "rank=2", NULL, NULL, "op,ops,time_s,mean_s,max_s,bytes,errors,class,api\n");
	expect("ops", "mount=/scratch", NULL, NULL,
	       "op,ops,time_s,mean_s,max_s,bytes,errors,class,api\n");
	expect("ranks", NULL, NULL, NULL,
	       "rank,workers,ops,opens,bytes_read,bytes_written,io_s,read_s,write_s,meta_s,errors,"
	       "procs,"
	       "node,"
	       "job,attempt\n0,0,7,0,800,0,0.00000105,0.00000105,0,0,2,1,n1,7,2\n");
	expect("workers", "0", NULL, NULL,
	       "rank,worker,loader,loader_worker,ops,opens,bytes_read,bytes_written,io_s,read_s,"
	       "write_s,meta_s,errors,procs,node,job,attempt\n0,,,,7,0,800,0,0.00000105,0.00000105,"
	       "0,0,2,1,n1,7,2\n");
	expect("mounts", NULL, NULL, NULL,
	       "mount,fs_type,ops,errors,bytes_read,bytes_written,time_s,slowest_proc_s\n"
	       "/data,lustre,7,2,800,0,0.00000105,0.00000105\n");
	expect("sizes", NULL, NULL, NULL,
	       "class,from_bytes,to_bytes,ops,percent\nread,64,128,7,100\n");
	expect("sizes", "rank=2", NULL, NULL, "class,from_bytes,to_bytes,ops,percent\n");
	expect("files", "5", NULL, NULL,
	       "path,ops,bytes_read,bytes_written,bytes_mapped,io_s,read_s,write_s,meta_s,procs,"
	       "ranks\n"
	       "/data/train/img-001.jpg,6,16384,0,,0.0000008,0.0000008,0,0,1,1\n");
	expect("files", "rank=2", NULL, NULL,
	       "path,ops,bytes_read,bytes_written,bytes_mapped,io_s,read_s,write_s,meta_s,procs,"
	       "ranks\n");
	expect("patterns", NULL, NULL, NULL,
	       "pattern,files,opens,reads,writes,bytes_read,bytes_written,time_s\n"
	       "img.jpg,1,2,4,0,16384,0,0.0000008\n");
	expect("patterns", "rank=2", NULL, NULL,
	       "pattern,files,opens,reads,writes,bytes_read,bytes_written,time_s\n");
	expect("losses", NULL, NULL, NULL,
	       "reason,op,ops,bytes,time_s,rank,pid,node,job,attempt\n"
	       "ring_full,read,11,110,0,0,101,n1,7,2\n");
	expect(
	    "file", "/scratch/ckpt/model-20.pt", "top=1", NULL,
	    "time_s,op,file_offset,asked,bytes,errno,dur_s,rank,worker,pid,tid,node,job,attempt\n"
	    "0.000002500,write,1000,1000,0,28,0.0000001,0,3,101,101,n1,7,2\n");
	expect("slow", "1", "rank=2", NULL,
	       "dur_s,time_s,op,bytes,path,rank,worker,errno,pid,node,job,attempt\n"
	       "0.0000001,0.000000000,open64,,/data/train/img-001.jpg,2,,,100,n2,7,2\n");
	/* Job 7 was at level counters for a while: windows of 10 s, whatever the step. */
	expect("timeline", NULL, NULL, NULL,
	       "time_s,ops,bytes_read,bytes_written,read_s,write_s,meta_s,errors,job,attempt\n"
	       "0.000000,7,800,0,0.00000105,0,0,2,7,2\n");
}

/* Rank 0: operations of 100 ns that never overlap; rank 2 has one at the same time as another. */
static void union_of_intervals(void **state)
{
	expect("io-time", "scope=all", NULL, NULL,
	       "rank,io_s,sum_s,span_s,ops,job,attempt\n0,0.0000008,0.0000008,0.0000041,8,7,2\n"
	       "2,0.0000005,0.0000005,0.0000026,5,7,2\n,0.0000002,0.0000002,0.0000011,2,7,2\n");
}

/*
 * Where the application named its checkpoints, those count: with what rank 0's worker wrote meanwhile. Where it did
 * not, bursts of writes do.
 */
static void checkpoints_are_found(void **state)
{
#define HEADER                                                                                     \
	"checkpoint,rank,step,name,path,time_s,dur_s,mount,files,bytes_written,writes,write_s,"    \
	"source,job,attempt\n"
	/* Its file is renamed later, and until then it lasts. */
	static const char named[] =
	    HEADER "1,0,7,save,/scratch/ckpt/model-20.pt,0.000001,0.0000037,/scratch,1,1000,1,"
		   "0.0000001,regions,7,2\n";
	static const char bursts[] =
	    HEADER "1,0,,,/scratch/ckpt/model-20.pt,0.000002,0.0000036,/scratch,1,2000,4,0.0000004,"
		   "writes,9,0\n"
		   "1,0,,,/scratch/ckpt/model-20.pt,0.000002,0.0000036,/scratch,1,1000,2,0.0000002,"
		   "writes,9,0\n"
		   "1,0,,,/scratch/ckpt/model-20.pt,0.000002,0.0000036,/scratch,1,1000,2,0.0000002,"
		   "writes,9,1\n";
	char *store = fixture_make_runs(), *text;
	struct fixture f;

	expect("checkpoints", NULL, NULL, NULL, named);
	expect("checkpoints", "name=save", NULL, NULL, named);
	expect("checkpoints", "name=nosuch", NULL, NULL, HEADER);
	fixture_open(&f, store, NULL);
	text = fixture_named(&f, "checkpoints", "least=1000", NULL, NULL);
	assert_string_equal(text, bursts);
	free(text);
	text = fixture_named(&f, "checkpoints", "least=2001", NULL, NULL);
	assert_string_equal(text, HEADER);
	free(text);
	fixture_close(&f);
	build_remove(store);
#undef HEADER
}

/*
 * Runs of one job on one node: two in sequence, one attempt more, one cluster more. What differs in
 * these stays apart, processes of the first two are four and not two, and a worker's slot is one.
 */
static void runs_stay_apart(void **state)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
	    {"ranks", "rank,workers,ops,opens,bytes_read,bytes_written,io_s,read_s,write_s,meta_s,"
		      "errors,procs,"
		      "node,"
		      "job,attempt\n"
		      "0,1,10,0,1000,0,0.0000015,0.0000015,0,0,4,4,n1,9,0\n"
		      "0,1,11,0,605,0,0.00000095,0.00000095,0,0,3,2,n1,9,0\n"
		      "0,1,5,0,500,0,0.00000075,0.00000075,0,0,2,2,n1,9,1\n"},
	    {"workers",
	     "rank,worker,loader,loader_worker,ops,opens,bytes_read,bytes_written,io_s,"
	     "read_s,write_s,meta_s,errors,procs,node,job,attempt\n"
	     "0,,,,4,0,400,0,0.0000006,0.0000006,0,0,2,2,n1,9,0\n0,3,0,5,6,0,600,0,0.0000009,"
	     "0.0000009,0,0,2,2,n1,9,0\n"
	     "0,,,,8,0,305,0,0.0000005,0.0000005,0,0,2,1,n1,9,0\n0,3,0,5,3,0,300,0,0.00000045,"
	     "0.00000045,0,0,1,1,n1,9,0\n"
	     "0,,,,2,0,200,0,0.0000003,0.0000003,0,0,1,1,n1,9,1\n0,3,0,5,3,0,300,0,0.00000045,"
	     "0.00000045,0,0,1,1,n1,9,1\n"},
	    {"io-time",
	     "rank,io_s,sum_s,span_s,ops,job,attempt\n"
	     "0,0.0000007,0.0000014,0.0000036,14,9,0\n,0.0000002,0.0000004,0.0000011,4,9,0\n"
	     "0,0.0000007,0.0000007,0.0000036,7,9,0\n,0.0000002,0.0000002,0.0000011,2,9,0\n"
	     "0,0.0000007,0.0000007,0.0000036,7,9,1\n,0.0000002,0.0000002,0.0000011,2,9,1\n"},
	    {"mounts", "mount,fs_type,ops,errors,bytes_read,bytes_written,time_s,slowest_proc_s\n"
		       "/data,lustre,21,9,2100,0,0.00000315,0.00000045\n"},
	    {"files", "path,ops,bytes_read,bytes_written,bytes_mapped,io_s,read_s,write_s,meta_s,"
		      "procs,ranks\n"
		      "/data/train/img-001.jpg,12,32768,0,,0.0000016,0.0000016,0,0,4,3\n"},
	    {"ops", "op,ops,time_s,mean_s,max_s,bytes,errors,class,api\n"
		    "read,21,0.00000315,0.00000015,0.0000001,2100,9,read,posix\n"
		    "getc,5,0.00000005,0.00000001,,5,0,read,stdio\n"},
	    {"sizes",
	     "class,from_bytes,to_bytes,ops,percent\nread,0,2,5,19.23\nread,64,128,21,80.77\n"},
	    {"nodes",
	     "node,state,ranks,procs,events,stored_bytes,clock_offset_s,clock_error_s,streams,"
	     "job,attempt,cluster\n"
	     "n1,ended,1,6,20,*,,,2,9,0,c\nn1,ended,1,3,10,*,,,1,9,0,d\n"
	     "n1,killed,1,3,10,*,,,1,9,1,c\n"},
	    {"jobs",
	     "job,state,start,seconds,nodes,ranks_seen,ranks_expected,name,user,labels,attempt,"
	     "cluster\n"
	     "9,ended,2023-11-14 22:13:20,3,1,1,4,train,ada,model=resnet,0,c\n"
	     "9,ended,2023-11-14 22:13:20,3,1,1,20000000,train,ada,model=resnet,0,d\n"
	     "9,killed,2023-11-14 22:13:20,2,1,1,4,train,ada,model=resnet,1,c\n"},
	};
	char *store = fixture_make_runs();
	struct fixture f;

	fixture_open(&f, store, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = fixture_named(&f, cases[i].name, NULL, NULL, NULL);

		if (fnmatch(cases[i].expected, text, 0) != 0)
			fail_msg("%s\n--- is\n%s--- should be\n%s---", cases[i].name, text,
				 cases[i].expected);
		free(text);
	}
	fixture_close(&f);
	build_remove(store);
}

static void all_run_and_are_documented(void **state)
{
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

static void refused(const char *name, const char *word, const char *expected)
{
	char *words[] = {(char *)word}, *error = NULL;
	struct hr_named_args args;

	assert_int_equal(hr_named_args_init(hr_named_find(name), words, 1, &args, &error), -EINVAL);
	assert_string_equal(error, expected);
	free(error);
}

static void wrong_arguments_are_refused(void **state)
{
	static const char *const wrong[] = {"top=x",	 "nosuch=1", "1.5",
					    "scope=dat", "class=",   "class=read|write"};
	static const char *const steps[] = {"0", "-1", "nan", "inf", "1e-7", "1e300", "x"};
	struct hr_named_args args;
	char *missing = NULL;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *words[] = {(char *)wrong[i]}, *error = NULL;

		assert_int_equal(hr_named_args_init(hr_named_find("slow"), words, 1, &args, &error),
				 -EINVAL);
		assert_non_null(error);
		free(error);
	}
	refused("slow", "top=-3", "top must be a whole number, 1 or more, not '-3'");
	refused("slow", "top=0", "top must be a whole number, 1 or more, not '0'");
	refused("what-if", "workers=1e30",
		"workers must be a whole number from 0 to 1024, not '1e30'");
	refused("what-if", "cores=nan", "cores must be a number from 1 to 65536, not 'nan'");
	refused("what-if", "mount=/a",
		"mount must be two paths, for example /data=/scratch, not '/a'");
	refused("what-if", "reads=0", "reads must be a size, for example 64GiB or 1MiB, not '0'");
	refused("slow", "rnk=1", "slow has no argument 'rnk'; did you mean 'rank'?");
	refused("slow", "class=raed",
		"class must be one of open|read|write|seek|stat|sync|close|dir|meta|map, not "
		"'raed'; did "
		"you mean 'read'?");
	refused("slow", "rank=1.5", "rank must be a whole number, not '1.5'");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		char *said, word[32];

		snprintf(word, sizeof(word), "step=%s", steps[i]);
		assert_true(asprintf(&said,
				     "step must be a number of seconds from 0.000001 to "
				     "1000000000, not '%s'",
				     steps[i]) > 0);
		refused("timeline", word, said);
		free(said);
	}
	assert_int_equal(hr_named_args_init(hr_named_find("file"), NULL, 0, &args, &missing),
			 -EINVAL);
	assert_string_equal(missing, "file requires path (headrace query --explain file)");
	free(missing);
	assert_null(hr_named_find("nosuch"));
}

/* Arguments are values, whatever they look like. */
static void arguments_are_not_pasted(void **state)
{
	expect("ops", "mount=x' OR 1=1 --", NULL, NULL,
	       "op,ops,time_s,mean_s,max_s,bytes,errors,class,api\n");
}

static void relative_paths_are_of_this_folder(void **state)
{
	static const char *const cases[][3] = {
	    {"/tmp", "img-001.jpg", "/tmp/img-001.jpg"},
	    {"/tmp", "./a//b/./c", "/tmp/a/b/c"},
	    {"/tmp", "../data/x", "/data/x"},
	    {"/tmp", "../../..", ""},
	    {"/tmp", "/a/../b", "/a/../b"},
	    {"/tmp", "path=.hidden", "/tmp/.hidden"},
	    {"/tmp", "/run/step=7/model.pt", "/run/step=7/model.pt"},
	    {"/", "data/x", "/data/x"},
	    {"/", "../x", "/x"},
	};
	struct hr_named_args args;
	char *error = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[] = {(char *)cases[i][1]};

		assert_int_equal(chdir(cases[i][0]), 0);
		assert_int_equal(hr_named_args_init(hr_named_find("file"), words, 1, &args, &error),
				 0);
		assert_string_equal(args.list[0].text, cases[i][2]);
		hr_named_args_done(&args);
	}
}

/* A job is labelled twice, and then an event has no labels: those of the second event count. */
static void the_last_labels_count(void **state)
{
	static char *const values[] = {"a", "b", NULL};
	char *store = fixture__make_folder();
	struct fixture__stream s;
	struct fixture f;

	fixture__open_stream(&s, store, "7", "n1");
	for (unsigned i = 0; i < 3; i++) {
		Headrace__JobEvent__LabelsEntry label = HEADRACE__JOB_EVENT__LABELS_ENTRY__INIT;
		Headrace__JobEvent__LabelsEntry *labels[] = {&label};

		label.key = "run";
		label.value = values[i] != NULL ? values[i] : "";
		build_job(&s.b, (Headrace__JobEvent){.state = "running",
						     .n_labels = values[i] != NULL,
						     .labels = labels});
	}
	build_end(&s.b, "ended");
	build_close(&s.b);
	fixture_open(&f, store, NULL);
	fixture_expect(&f, "SELECT key, value FROM labels", "run,b\n");
	fixture_close(&f);
	build_remove(store);
}

static char said[16][256];
static unsigned n_said;

static void remember(void *self, const char *text)
{
	snprintf(said[n_said++ % 16], sizeof(said[0]), "%s", text);
}

static const struct hr_sink messages = {remember, NULL};

static void notes_say_what_is_missing(void **state)
{
	static const char *const expected[] = {
	    "job 7: missing 11 operations (110 B): a ring buffer had no room; "
	    "HEADRACE_ON_FULL=wait:MS makes threads wait longer (ring_full); totals are too low",
	    "job 7, node n1: only counters were recorded for 1.5 s: rollups and file_records have "
	    "these operations, but events and the queries io-time, slow and file lack them; "
	    "--level trace records them",
	    "job 7, node n2: the recording was cut short (headraced was killed or stopped): later "
	    "operations are missing",
	    "job 7: 2 of 4 expected ranks were not seen: 1, 3",
	    "job 7: not recorded: 2,400 opens below /opt: excluded by default (--include lists the "
	    "paths to record instead)",
	};

	assert_int_equal(hr_query_notes(fix.q, 16, &messages), 0);
	assert_int_equal(n_said, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_string_equal(said[i], expected[i]);
	n_said = 0;
	assert_int_equal(hr_query_notes(fix.q, 1, &messages), 0);
	assert_int_equal(n_said, 2);
	assert_string_equal(said[1], "and 4 more notes of this kind");
}

/* A stream of job 7 without an end, with a level `counters` of some seconds; 0: without an end. */
static void cut_short(const char *store, unsigned node, uint64_t seconds)
{
	struct fixture__stream s;
	char name[16];

	snprintf(name, sizeof(name), "n%u", node);
	fixture__open_stream(&s, store, "7", name);
	fixture__send_job(&s, "running", 0);
	build_level(&s.b, "counters", FIX_BOOT_NS,
		    seconds > 0 ? FIX_BOOT_NS + seconds * UINT64_C(1000000000) : 0);
	build_close(&s.b);
}

/* Nodes with the same note share a line. Levels differ in their times. */
static void notes_of_many_nodes(void **state)
{
	static const char *const expected[] = {
	    "job 7, 3 nodes", /* no: three nodes have a line each */
	    "job 7, node n3: only counters were recorded for 4.0 s: rollups and file_records have "
	    "these operations, but events and the queries io-time, slow and file lack them; "
	    "--level trace records them. The same, with other times, on 3 more nodes",
	    "job 7, 4 nodes (n0, n1, n2, ...): the recording was cut short (headraced was killed "
	    "or stopped): later operations are missing",
	};

	for (unsigned nodes = 3; nodes <= 4; nodes++) {
		char *store = fixture__make_folder();
		struct fixture f;

		for (unsigned i = 0; i < nodes; i++)
			cut_short(store, i, i + 1);
		fixture_open(&f, store, NULL);
		n_said = 0;
		assert_int_equal(hr_query_notes(f.q, 16, &messages), 0);
		assert_int_equal(n_said, nodes == 3 ? 6 : 2);
		for (unsigned i = 0; i < n_said; i++)
			if (nodes == 3)
				assert_null(strstr(said[i], expected[0]));
			else
				assert_string_equal(said[i], expected[i + 1]);
		fixture_close(&f);
		build_remove(store);
	}
	n_said = 0;
}

static void a_level_without_an_end_is_noted(void **state)
{
	static const char expected[] =
	    "job 7, node n0: only counters were recorded from some point on: rollups";
	char *store = fixture__make_folder();
	struct fixture f;

	cut_short(store, 0, 0);
	fixture_open(&f, store, NULL);
	n_said = 0;
	assert_int_equal(hr_query_notes(f.q, 16, &messages), 0);
	assert_int_equal(n_said, 2);
	assert_int_equal(strncmp(said[0], expected, sizeof(expected) - 1), 0);
	n_said = 0;
	fixture_close(&f);
	build_remove(store);
}

/* What is not there is said, with what is. */
static void absent_values_are_named(void **state)
{
	static const struct {
		const char *name, *word, *note;
	} cases[] = {
	    {"slow", "rank=9", "no rank 9; the store has: 0, 2"},
	    {"slow", "rank=2", NULL},
	    {"ops", "mount=/dat", "no mount /dat; the store has: /data"},
	    {"files", "pattern=x", "no pattern x; the store has: img.jpg"},
	    {"file", "/elsewhere/model-20.pt",
	     "no path /elsewhere/model-20.pt; the store has: /scratch/ckpt/model-20.pt, "
	     "/data/odd\\x0A\\xFF\\\\1, /data/train/img-001.jpg, /scratch/ckpt/model-10.pt, "
	     "/usr/lib/python3/os.py"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[] = {(char *)cases[i].word}, *error = NULL;
		struct hr_named_args args;

		n_said = 0;
		assert_int_equal(
		    hr_named_args_init(hr_named_find(cases[i].name), words, 1, &args, &error), 0);
		assert_int_equal(hr_named_absent(fix.q, &args, &messages), 0);
		assert_int_equal(n_said, cases[i].note != NULL);
		if (cases[i].note != NULL)
			assert_string_equal(said[0], cases[i].note);
		hr_named_args_done(&args);
	}
	n_said = 0;
}

/* Of twelve ranks, eight are listed; a rank behind them is there, too. */
static void many_values_are_counted(void **state)
{
	static const struct {
		char *name, *word, *note;
	} cases[] = {
	    {"slow", "rank=11", NULL},
	    {"slow", "rank=12", "no rank 12; the store has: 0, 1, 2, 3, 4, 5, 6, 7, and 4 more"},
	    {"ops", "mount=/x", "no mount /x; the store has none at all"},
	};
	char *store = fixture__make_folder();
	Headrace__Process rows[12];
	struct fixture__stream s;
	struct fixture f;

	for (unsigned i = 0; i < 12; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .rank_plus1 = i + 1,
					      .pid = (int32_t)i + 1,
					      .start_ns = FIX_BOOT_NS};
	fixture__open_stream(&s, store, "7", "n1");
	build_processes(&s.b, rows, 12);
	build_end(&s.b, "ended");
	build_close(&s.b);
	fixture_open(&f, store, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *word = cases[i].word, *error = NULL;
		struct hr_named_args args;

		n_said = 0;
		assert_int_equal(
		    hr_named_args_init(hr_named_find(cases[i].name), &word, 1, &args, &error), 0);
		assert_int_equal(hr_named_absent(f.q, &args, &messages), 0);
		assert_int_equal(n_said, cases[i].note != NULL);
		if (cases[i].note != NULL)
			assert_string_equal(said[0], cases[i].note);
		hr_named_args_done(&args);
	}
	n_said = 0;
	fixture_close(&f);
	build_remove(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answers_are_right),
	    cmocka_unit_test(the_last_labels_count),
	    cmocka_unit_test(union_of_intervals),
	    cmocka_unit_test(checkpoints_are_found),
	    cmocka_unit_test(runs_stay_apart),
	    cmocka_unit_test(all_run_and_are_documented),
	    cmocka_unit_test(many_values_are_counted),
	    cmocka_unit_test(wrong_arguments_are_refused),
	    cmocka_unit_test(arguments_are_not_pasted),
	    cmocka_unit_test(notes_say_what_is_missing),
	    cmocka_unit_test(notes_of_many_nodes),
	    cmocka_unit_test(a_level_without_an_end_is_noted),
	    cmocka_unit_test(relative_paths_are_of_this_folder),
	    cmocka_unit_test(absent_values_are_named),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
