/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_damage.c - a byte that flipped is never an answer: it is right, or a note says what is lost
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/tables/internal.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

/* Ways to a file's name, each by itself. */
static const char *const by_name[] = {
    "SELECT count(path), count(DISTINCT path), count(base), count(pattern) FROM events",
    "SELECT base, count(*) FROM events GROUP BY base ORDER BY base",
    "SELECT pattern, count(*) FROM events GROUP BY pattern ORDER BY pattern",
    "SELECT count(*) FROM events WHERE path = '/data/train/img-001.jpg'",
    "SELECT count(DISTINCT file_id) FROM hr_events()",
    "SELECT path, mount FROM files ORDER BY ALL",
    "SELECT count(*) FROM files",
    "SELECT path, reads FROM file_records ORDER BY ALL",
    "SELECT pattern, scope, mount, file_id FROM hr_file_records() ORDER BY ALL",
};
#define N_BY_NAME (sizeof(by_name) / sizeof(by_name[0]))

/* Everything else. */
static const char *const tables[] = {
    "SELECT * FROM events ORDER BY ALL",
    "SELECT * FROM rollups ORDER BY ALL",
    "SELECT * FROM file_records ORDER BY ALL",
    "SELECT * FROM processes ORDER BY ALL",
    "SELECT * FROM levels ORDER BY ALL",
    "SELECT * FROM labels ORDER BY ALL",
    "SELECT * FROM jobs ORDER BY ALL",
    "SELECT * FROM losses ORDER BY ALL",
    "SELECT * FROM regions ORDER BY ALL",
    "SELECT * EXCLUDE (stored_bytes) FROM nodes ORDER BY ALL",
    "SELECT * FROM hr_busy(by := 'rank, class') ORDER BY ALL",
};
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

/* The answer of one statement to a store opened for it alone, and how many notes of damage it has. */
static char *ask(char *store, const char *sql, uint64_t *ret_notes)
{
	const struct hr_problem *problems;
	struct fixture f;
	const char *first;
	char *text;

	fixture_open(&f, store, NULL);
	text = fixture_ask(&f, sql);
	*ret_notes = hr_query_damaged(f.q, &first) + hr_catalog_problems(f.catalog, &problems);
	fixture_close(&f);
	return text;
}

/* The segment of node n1, which is sealed; in `ret_frames` its frames. The caller frees all. */
static char *find_segment(char *store, struct hr_frame_ref **ret_frames, uint32_t *ret_n)
{
	const struct hr_stream *streams;
	struct hr_catalog *c;
	char pattern[256], *path, *error;
	glob_t found;

	assert_int_equal(hr_catalog_open((const char *[]){store}, 1,
					 &(const struct hr_catalog_filter){.job = "7"}, &c, &error),
			 0);
	assert_int_equal(hr_catalog_streams(c, &streams), 2);
	*ret_n = streams[0].n_frames;
	*ret_frames = malloc(*ret_n * sizeof(**ret_frames));
	assert_non_null(*ret_frames);
	memcpy(*ret_frames, streams[0].frames, *ret_n * sizeof(**ret_frames));
	hr_catalog_free(c);
	snprintf(pattern, sizeof(pattern), "%s/jobs/7/n1.*/000001.seg", store);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	path = strdup(found.gl_pathv[0]);
	globfree(&found);
	return path;
}

static void flip(const char *path, long offset, int from)
{
	FILE *f = fopen(path, "r+");
	int byte;

	assert_non_null(f);
	assert_int_equal(fseek(f, offset, from), 0);
	byte = fgetc(f);
	assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
	fputc(byte ^ 4, f);
	assert_int_equal(fclose(f), 0);
}

/* Where the footer's frame of paths begins: right behind the last frame. */
static long paths_footer(const struct hr_frame_ref *frames, uint32_t n)
{
	return (long)(frames[n - 1].offset + frames[n - 1].bytes + HR_FRAME_HDR_BYTES);
}

static void check(char *store, const char *const *statements, size_t n, char *const *right,
		  const char *what)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t notes;
		char *text = ask(store, statements[i], &notes);

		if (strcmp(text, right[i]) != 0 && notes == 0)
			fail_msg("%s: %s\n--- is, without a note\n%s--- should be\n%s---", what,
				 statements[i], text, right[i]);
		free(text);
	}
}

static void ask_all(char *store, const char *const *statements, size_t n, char **ret)
{
	uint64_t notes;

	for (size_t i = 0; i < n; i++) {
		ret[i] = ask(store, statements[i], &notes);
		assert_int_equal(notes, 0);
	}
}

static void free_all(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
}

/* A Paths frame that is damaged, with and without the footer that could make up for a part of it. */
static void names_that_are_lost_are_noted(void **state)
{
	struct hr_frame_ref *frames;
	char *right[N_BY_NAME], *path;
	uint32_t n, paths = 0;
	struct fixture f;
	const char *first;

	path = find_segment(*state, &frames, &n);
	while (frames[paths].kind != HEADRACE__FRAME__BODY_PATHS)
		paths++;
	ask_all(*state, by_name, N_BY_NAME, right);
	flip(path, (long)(frames[paths].offset + HR_FRAME_HDR_BYTES), SEEK_SET);
	check(*state, by_name, N_BY_NAME, right, "Paths");
	flip(path, paths_footer(frames, n), SEEK_SET);
	check(*state, by_name, N_BY_NAME, right, "Paths and footer");

	/* Counted once, whoever meets it. */
	fixture_open(&f, *state, NULL);
	free(fixture_ask(&f, by_name[0]));
	free(fixture_ask(&f, by_name[3]));
	free(fixture_ask(&f, by_name[5]));
	assert_int_equal(hr_query_damaged(f.q, &first), 1);
	assert_non_null(strstr(first, "job 7, node n1: frame with seq"));
	fixture_close(&f);

	flip(path, (long)(frames[paths].offset + HR_FRAME_HDR_BYTES), SEEK_SET);
	free_all(right, N_BY_NAME);
	ask_all(*state, by_name, N_BY_NAME, right); /* the footer alone costs only time */
	flip(path, paths_footer(frames, n), SEEK_SET);
	free_all(right, N_BY_NAME);
	free(frames);
	free(path);
}

/* What the folder's name says is known without the StreamStart: streams stay apart by attempt. */
static void start_is_guessed(char *store, const char *path, char *const *right)
{
	static const char streams[] = "SELECT DISTINCT job, attempt, node FROM events ORDER BY ALL";
	uint64_t notes;
	char *text = ask(store, streams, &notes);

	assert_string_equal(text, "7,2,n1\n7,2,n2\n");
	assert_int_equal(notes, 1);
	free(text);
	flip(path, -1, SEEK_END);
	check(store, tables, N_TABLES, right, "StreamStart, no footer");
	flip(path, -1, SEEK_END);
}

/*
 * A frame of each kind, in a sealed segment, and in one whose footer is damaged. All frames with
 * HEADRACE_LONG=1.
 */
static void no_frame_is_missed_in_silence(void **state)
{
	struct hr_frame_ref *frames;
	char *right[N_TABLES], *path, what[64];
	const char *all = getenv("HEADRACE_LONG");
	uint64_t seen = 0;
	uint32_t n;

	path = find_segment(*state, &frames, &n);
	ask_all(*state, tables, N_TABLES, right);
	for (uint32_t i = 0; i < n; i++) {
		long at = (long)(frames[i].offset + HR_FRAME_HDR_BYTES);
		uint64_t kind = UINT64_C(1) << frames[i].kind % 64;

		if ((seen & kind) && (!all || strcmp(all, "1") != 0))
			continue;
		seen |= kind;
		snprintf(what, sizeof(what), "frame %u of kind %u", i, frames[i].kind);
		flip(path, at, SEEK_SET);
		check(*state, tables, N_TABLES, right, what);
		if (frames[i].kind == HEADRACE__FRAME__BODY_STREAM_START)
			start_is_guessed(*state, path, right);
		flip(path, at, SEEK_SET);
	}
	free_all(right, N_TABLES);
	free(frames);
	free(path);
}

/* A copy whose StreamStart is damaged is still a copy, and the other one says what it did not. */
static void a_copy_without_its_start_is_the_same_stream(void **state)
{
	char *other = fixture_make(), *damaged[] = {*state, other};

	for (unsigned i = 0; i < 2; i++) {
		const char *stores[] = {*state, other};
		struct hr_query_options o = {.threads = 1};
		struct hr_frame_ref *frames;
		char *path, *error = NULL;
		struct fixture f;
		uint32_t n;

		path = find_segment(damaged[i], &frames, &n);
		flip(path, (long)(frames[0].offset + HR_FRAME_HDR_BYTES), SEEK_SET);
		assert_int_equal(hr_catalog_open(stores, 2, NULL, &f.catalog, &error), 0);
		assert_int_equal(hr_query_new(f.catalog, &o, &f.q, &error), 0);
		fixture_expect(&f,
			       "SELECT cluster, node, count(*) FROM events GROUP BY ALL ORDER BY 2",
			       "c,n1,10\nc,n2,5\n");
		fixture_expect(&f, "SELECT boot FROM nodes WHERE job = '7'", "b\nb\n");
		fixture_close(&f);
		flip(path, (long)(frames[0].offset + HR_FRAME_HDR_BYTES), SEEK_SET);
		free(frames);
		free(path);
	}
	build_remove(other);
}

/* A frame whose bytes are fine and whose arrays are not. */
static void regions_that_contradict_themselves_are_noted(void **state)
{
	struct hr_stream_id id = {
	    .cluster = "c", .job = "9", .node = "n1", .boot_id = "b", .instance = 1};
	Headrace__Regions regions = HEADRACE__REGIONS__INIT;
	struct build b = {0};
	uint32_t key = 0; /* of none */
	uint64_t notes;
	char *text;

	regions.n_key = 1;
	regions.key = &key;
	build_open(&b, *state, &id);
	build_send(&b, BUILD_FRAME(REGIONS, regions, &regions));
	build_close(&b);
	text = ask(*state, "SELECT count(*) FROM regions", &notes);
	assert_string_equal(text, "4\n");
	assert_int_equal(notes, 1);
	free(text);
}

/* Times that no clock has, in a batch and in the clock sample beside it: sums of them wrap (what UBSan is for). */
static void times_of_no_clock_are_borne(void **state)
{
	struct hr_stream_id id = {
	    .cluster = "c", .job = "10", .node = "n1", .boot_id = "b", .instance = 1};
	Headrace__EventBatch batch = HEADRACE__EVENT_BATCH__INIT;
	struct build b = {.now_ns = 65536, .real_minus_boot_ns = 1 - UINT64_C(65536)};
	uint64_t notes;

	batch.count = 1;
	batch.base_ns = UINT64_C(1) << 63;
	batch.last_ns = UINT64_MAX;
	build_open(&b, *state, &id);
	build_send(&b, BUILD_FRAME(EVENTS, events, &batch));
	build_close(&b);
	free(ask(*state, "SELECT count(start_ns) FROM events WHERE start_ns > 5", &notes));
	free(ask(*state, "SELECT max(end_ns) FROM events", &notes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_that_are_lost_are_noted),
	    cmocka_unit_test(no_frame_is_missed_in_silence),
	    cmocka_unit_test(a_copy_without_its_start_is_the_same_stream),
	    cmocka_unit_test(regions_that_contradict_themselves_are_noted),
	    cmocka_unit_test(times_of_no_clock_are_borne),
	};

	return cmocka_run_group_tests(tests, fixture_setup_store, fixture_teardown_store);
}
