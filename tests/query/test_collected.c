/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_collected.c - streams of a collector: what is silent, whose clocks differ, and who sees what
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query/ask.h"
#include "query/notes.h"
#include "store/stream_state.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define SECOND UINT64_C(1000000000)

static const struct hr_query_options options = {.threads = 2, .now_ns = FIX_REAL_NS + 200 * SECOND};

/* Of the fixture's stream "7/n2", at FIX_REAL_NS + `heard_s`. */
static void collect(const char *store, const char *stream, uint64_t heard_s,
		    struct hr_stream_state state)
{
	char pattern[256];
	glob_t found;
	int fd;

	state.heard_ns = FIX_REAL_NS + heard_s * SECOND;
	snprintf(pattern, sizeof(pattern), "%s/jobs/%s.*", store, stream);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	fd = open(found.gl_pathv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_write(fd, &state, false), 0);
	close(fd);
	globfree(&found);
}

static struct hr_stream_state clock_state(int64_t offset_ns, uint64_t error_ns)
{
	return (struct hr_stream_state){.connected = true,
					.clock_known = true,
					.clock_offset_ns = offset_ns,
					.clock_error_ns = error_ns};
}

/* ---- notes ----------------------------------------------------------------------------------- */

static char said[16][256];
static unsigned n_said;

static void remember(void *self, const char *text)
{
	snprintf(said[n_said++ % 16], sizeof(said[0]), "%s", text);
}

static const struct hr_sink messages = {remember, NULL};

/* The note that begins so; NULL: there is none. */
static const char *note(struct fixture *f, const char *beginning)
{
	n_said = 0;
	assert_int_equal(hr_query_notes(f->q, 16, &messages), 0);
	for (unsigned i = 0; i < n_said && i < 16; i++)
		if (strncmp(said[i], beginning, strlen(beginning)) == 0)
			return said[i];
	return NULL;
}

#define STATES	  "SELECT node, state FROM nodes WHERE job = '7' ORDER BY node"
#define JOB_STATE "SELECT state, end_ns IS NULL FROM jobs WHERE job = '7'"
#define NODE_CLOCK                                                                                 \
	"SELECT node, clock_offset_ns, clock_error_ns FROM nodes WHERE job = '7' ORDER BY node"

static void a_daemon_that_is_not_heard_of_is_silent(void **state)
{
	struct hr_query_options later = options;
	struct fixture f;

	collect(*state, "7/n2", 190, (struct hr_stream_state){.connected = true});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, STATES, "n1,ended\nn2,running\n");
	fixture_expect(&f, JOB_STATE, "running,true\n");
	assert_null(note(&f, "job 7, node n2: no message"));
	fixture_close(&f);

	later.silent_ns = 9 * SECOND;
	fixture_open(&f, *state, &later);
	fixture_expect(&f, STATES, "n1,ended\nn2,silent\n");
	fixture_close(&f);

	collect(*state, "7/n2", 107, (struct hr_stream_state){.connected = true});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, STATES, "n1,ended\nn2,silent\n");
	fixture_expect(&f, JOB_STATE, "silent,true\n");
	assert_string_equal(note(&f, "job 7, node n2: no message"),
			    "job 7, node n2: no message since 22:15:07 UTC (93 s): later data is "
			    "missing here, but may be in the spool of that node; totals (ranks, "
			    "workers, files, summary) lack some time before it, too");
	assert_null(note(&f, "job 7, node n2: still"));
	fixture_close(&f);

	collect(*state, "7/n2", 199, (struct hr_stream_state){.connected = false});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, STATES, "n1,ended\nn2,silent\n");
	fixture_close(&f);
}

/* Its stream has all that there will be. */
static void what_has_ended_is_not_silent(void **state)
{
	struct fixture f;

	collect(*state, "7/n1", 0, (struct hr_stream_state){.connected = false});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, "SELECT state FROM nodes WHERE job = '7' AND node = 'n1'", "ended\n");
	fixture_close(&f);
}

static void clocks_that_differ_are_told(void **state)
{
	struct fixture f;

	collect(*state, "7/n1", 190, clock_state(-1200000000, 300000));
	collect(*state, "7/n2", 190, clock_state(2000000000, 400000));
	fixture_open(&f, *state, &options);
	fixture_expect(&f, NODE_CLOCK, "n1,-1200000000,300000\nn2,2000000000,400000\n");
	assert_string_equal(note(&f, "job 7: the clocks"),
			    "job 7: the clocks of node n1 and n2 differ by 3.2 s");
	fixture_close(&f);

	/* 1.7 ms, of which errors may be 0.7: not more than 1 ms for sure. */
	collect(*state, "7/n2", 190, clock_state(-1198300000, 400000));
	fixture_open(&f, *state, &options);
	assert_null(note(&f, "job 7: the clocks"));
	fixture_close(&f);

	collect(*state, "7/n1", 190, (struct hr_stream_state){.connected = true});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, NODE_CLOCK, "n1,,\nn2,-1198300000,400000\n");
	fixture_close(&f);
}

/* ---- who sees what --------------------------------------------------------------------------- */

static size_t streams_of(const char *store, const char *job, uint32_t uid, size_t *ret_problems)
{
	struct hr_catalog_filter filter = {.job = job, .one_user = true, .uid = uid};
	const struct hr_problem *problems;
	const struct hr_stream *streams;
	struct hr_catalog *c;
	size_t n;

	assert_int_equal(hr_catalog_open(&store, 1, &filter, &c, NULL), 0);
	n = hr_catalog_streams(c, &streams);
	*ret_problems = hr_catalog_problems(c, &problems);
	hr_catalog_free(c);
	return n;
}

/* Cuts the last bytes of a stream's segment, which makes a problem of it. */
static void damage(const char *store, const char *stream)
{
	char pattern[256];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/jobs/%s.*/000001.seg", store, stream);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(truncate(found.gl_pathv[0], 70), 0);
	globfree(&found);
}

/* Job 7 is of user 1000 by its JobEvents; job 8 has none. */
static void a_user_sees_own_jobs_only(void **state)
{
	struct hr_stream_state mine = {.uid_known = true, .uid = 1001};
	size_t problems;

	assert_int_equal(streams_of(*state, NULL, 1000, &problems), 2);
	assert_int_equal(streams_of(*state, "7", 1000, &problems), 2);
	assert_int_equal(streams_of(*state, "8", 1000, &problems), 0);
	assert_int_equal(streams_of(*state, NULL, 0, &problems), 0);
	assert_int_equal(streams_of(*state, NULL, UINT32_MAX, &problems), 0);
	/* What the collector knows counts, not what a daemon says. */
	collect(*state, "7/n2", 0, mine);
	assert_int_equal(streams_of(*state, NULL, 1000, &problems), 1);
	assert_int_equal(streams_of(*state, NULL, 1001, &problems), 1);
	/* A state without an owner: the JobEvent's. */
	collect(*state, "7/n2", 0, (struct hr_stream_state){.connected = true});
	assert_int_equal(streams_of(*state, NULL, 1000, &problems), 2);
	damage(*state, "8/n1");
	damage(*state, "7/n2");
	assert_int_equal(streams_of(*state, NULL, 1000, &problems), 1);
	assert_int_equal(problems, 0);
	collect(*state, "7/n2", 0, mine);
	assert_int_equal(streams_of(*state, NULL, 1001, &problems), 1);
	assert_true(problems > 0);
}

/* A damaged state file hides the stream, whatever its JobEvent says. */
static void a_damaged_state_shows_nothing(void **state)
{
	char pattern[256];
	size_t problems;
	glob_t found;

	collect(*state, "7/n2", 0, (struct hr_stream_state){.uid_known = true, .uid = 1001});
	snprintf(pattern, sizeof(pattern), "%s/jobs/7/n2.*/state", (char *)*state);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(truncate(found.gl_pathv[0], 20), 0);
	globfree(&found);
	assert_int_equal(streams_of(*state, NULL, 1000, &problems), 1);
	assert_int_equal(streams_of(*state, NULL, 1001, &problems), 0);
}

/* Asks as user `uid`; the answer's text is malloc'ed. */
static char *ask_as(const char *store, uint32_t uid, const char *job, char *words,
		    enum hr_ask_status expected)
{
	struct hr_question question;
	struct hr_ask a = {.stores = &store,
			   .n_stores = 1,
			   .where = "here",
			   .filter = {.job = job, .one_user = true, .uid = uid},
			   .question = &question,
			   .format = HR_FORMAT_CSV,
			   .threads = 1,
			   .now_ns = options.now_ns,
			   .messages = messages};
	enum hr_ask_status status;
	struct hr_asking *asking;
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	n_said = 0;
	assert_true(hr_question_init(&question, &words, 1, &messages));
	status = hr_ask_open(&a, &asking);
	if (status == HR_ASK_NO_DUCKDB)
		exit(77);
	if (status == HR_ASK_ANSWERED) {
		status = hr_asking_answer(asking, to);
		hr_asking_close(asking);
	}
	assert_int_equal(status, expected);
	hr_question_done(&question);
	fclose(to);
	return text;
}

/* No table, no list of jobs, no note and no error names what belongs to others. */
static void nothing_of_others_shows(void **state)
{
	static const char *const tables[] = {"events", "rollups", "file_records", "processes",
					     "files",  "regions", "labels",	  "levels",
					     "jobs",   "nodes",	  "losses",	  "kernel_records"};
	char sql[128];

	collect(*state, "7/n1", 0, (struct hr_stream_state){.uid_known = true, .uid = 1001});
	collect(*state, "8/n1", 0, (struct hr_stream_state){.uid_known = true, .uid = 1000});
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (int function = 0; function < 2; function++) {
			char *text;

			snprintf(sql, sizeof(sql),
				 "SELECT count(*) AS n FROM %s%s%s WHERE node = 'n1' AND job = '7'",
				 function ? "hr_" : "", tables[i], function ? "()" : "");
			text = ask_as(*state, 1000, NULL, sql, HR_ASK_ANSWERED);
			assert_string_equal(text, "n\r\n0\r\n");
			free(text);
		}
	}
	for (unsigned i = 0; i < n_said && i < 16; i++) /* n2's are there, n1's are not */
		if (strstr(said[i], "n1") != NULL || strstr(said[i], "ring_full") != NULL)
			fail_msg("said: %s", said[i]);
	assert_true(n_said > 0);
	free(ask_as(*state, 1001, "8", "SELECT 1", HR_ASK_NO_STORE));
	assert_string_equal(said[0], "no job '8' in here; it contains: 7");
	free(ask_as(*state, 7, "7", "SELECT 1", HR_ASK_ANSWERED));
	assert_string_equal(said[0], "note: no job of yours yet in here");
}

/* Its first frame alone has come: whose it is the collector has noted. */
static void a_job_has_its_owner_from_the_start(void **state)
{
	static const char sql[] = "SELECT job, uid FROM jobs WHERE job IN ('5', '6') ORDER BY job";
	const char *const jobs[] = {"5", "6"};
	struct fixture f;

	for (unsigned i = 0; i < 2; i++) {
		const struct hr_stream_id id = {
		    .cluster = "", .job = jobs[i], .node = "n1", .boot_id = "b", .instance = 1};
		struct hr_writer *w;

		assert_int_equal(hr_writer_open(*state, &id, &w, NULL), 0);
		assert_int_equal(hr_writer_close(w), 0);
	}
	collect(*state, "5/n1", 0, (struct hr_stream_state){.uid_known = false});
	collect(*state, "6/n1", 0, (struct hr_stream_state){.uid_known = true, .uid = 1007});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, sql, "5,\n6,1007\n");
	fixture_close(&f);
}

/* Nobody waits for it any more, and the answer says since when. */
static void what_was_closed_is_not_silent(void **state)
{
	struct fixture f;

	collect(*state, "7/n2", 107,
		(struct hr_stream_state){.closed_ns = FIX_REAL_NS + 180 * SECOND});
	fixture_open(&f, *state, &options);
	fixture_expect(&f, STATES, "n1,ended\nn2,killed\n");
	fixture_expect(&f, JOB_STATE, "killed,false\n");
	assert_string_equal(note(&f, "job 7, node n2: an operator"),
			    "job 7, node n2: an operator closed it on 2023-11-14 22:16 UTC, its "
			    "last message came on 2023-11-14 22:15 UTC: later data is missing");
	assert_null(note(&f, "job 7, node n2: the recording"));
	assert_null(note(&f, "job 7, node n2: no message"));
	fixture_close(&f);
}

/* What retention leaves of a stream of job 7 or 8: its `state`. */
static void retire(const char *store, const char *stream, uint32_t uid)
{
	char pattern[256];
	glob_t found;

	collect(store, stream, 0,
		(struct hr_stream_state){.uid_known = true,
					 .uid = uid,
					 .retired = true,
					 .retired_ns = FIX_REAL_NS + 60 * SECOND});
	snprintf(pattern, sizeof(pattern), "%s/jobs/%s.*/*.seg", store, stream);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		assert_int_equal(unlink(found.gl_pathv[i]), 0);
	globfree(&found);
}

/* An answer never passes over what was removed, nor says that it was never there; and only to those whose it was. */
static void what_was_removed_is_said(void **state)
{
	static const char removed[] =
	    "job 8: 1 stream was removed on 2023-11-14 22:14 UTC (by age, size or an operator), "
	    "last message on 2023-11-14 22:13 UTC";
	char text[512];
	struct fixture f;

	retire(*state, "8/n1", 1000);
	fixture_open(&f, *state, &options);
	assert_string_equal(note(&f, "job 8"), removed);
	fixture_close(&f);
	free(ask_as(*state, 1000, "8", "SELECT 1", HR_ASK_NO_STORE));
	snprintf(text, sizeof(text), "no data is left in here: %s", removed);
	assert_string_equal(said[0], text);
	free(ask_as(*state, 1001, "8", "SELECT 1", HR_ASK_ANSWERED));
	assert_string_equal(said[0], "note: no job of yours yet in here");
	retire(*state, "7/n1", 1000);
	retire(*state, "7/n2", 1000);
	free(ask_as(*state, 1000, NULL, "SELECT count(*) FROM events", HR_ASK_ANSWERED));
	assert_string_equal(said[0], "note: streams of 2 jobs were removed (by age, size or an "
				     "operator), the last on 2023-11-14 22:14 UTC: 7, 8");
	assert_int_equal(n_said, 1);
	free(ask_as(*state, 1000, "9", "SELECT 1", HR_ASK_ANSWERED));
	assert_non_null(strstr(said[0], "note: streams of 2 jobs were removed"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup_store, fixture_teardown_store)
	const struct CMUnitTest tests[] = {
	    TEST(a_daemon_that_is_not_heard_of_is_silent),
	    TEST(what_has_ended_is_not_silent),
	    TEST(clocks_that_differ_are_told),
	    TEST(a_user_sees_own_jobs_only),
	    TEST(a_damaged_state_shows_nothing),
	    TEST(nothing_of_others_shows),
	    TEST(a_job_has_its_owner_from_the_start),
	    TEST(what_was_closed_is_not_silent),
	    TEST(what_was_removed_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
