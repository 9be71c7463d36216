/* SPDX-License-Identifier: Apache-2.0 */
/* test_prune.c - pruning skips batches where it may, and never changes an answer */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "query/prune/json_tree.h"
#include "query/tables/internal.h"
#include "query/named.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

/* With one value more, an IN list that is too long for pruning. */
#define EIGHT	   "9, 9, 9, 9, 9, 9, 9, 9, "
#define SIXTY_FOUR EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT

static struct fixture pruned, whole;

/*
 * The small store has three batches: A of n1 (ten events, all ops), B of n2 (open, read, close by
 * rank 2), C of n2 (writes by its worker). `read` is how many of them a statement must read.
 */
static const struct {
	const char *sql;
	uint64_t read;
} cases[] = {
    {"SELECT op, bytes, node FROM events ORDER BY ALL", 3},
    {"SELECT count(*) FROM events WHERE node = 'n2'", 2},
    {"SELECT count(*) FROM events WHERE job = '8'", 0},
    {"SELECT count(*) FROM events WHERE cluster = 'c' AND job IN ('7', '8') AND node = 'n1'", 1},
    {"SELECT count(*) FROM events WHERE op = 'fread'", 1},
    {"SELECT count(*), sum(bytes) FROM events WHERE class = 'write'", 2},
    {"SELECT count(*), sum(bytes) FROM events WHERE class IN ('write', 'sync')", 2},
    {"SELECT count(*) FROM events WHERE op = 'write' AND class = 'read'", 0},
    {"SELECT count(*) FROM events WHERE op = 'nosuch'", 0},
    {"SELECT count(*) FROM events WHERE 'read' = op AND bytes > 5", 2},
    {"SELECT count(*) FROM events WHERE rank = 2", 2},
    {"SELECT count(*) FROM events WHERE rank = 2 AND worker = 3", 1},
    {"SELECT count(*) FROM events WHERE rank IN (0, 1)", 1},
    {"SELECT count(*) FROM events WHERE local_rank = 0 AND node = 'n2'", 2},
    {"SELECT count(*) FROM events WHERE pid = 102", 1},
    {"SELECT count(*) FROM events WHERE proc = 2", 2},
    {"SELECT count(*) FROM events WHERE start_ns >= 1700000000000004000", 1},
    {"SELECT count(*) FROM events WHERE start_ns < 1700000000000000500", 2},
    {"SELECT count(*) FROM events WHERE start_ns BETWEEN 1700000000000002200 AND "
     "1700000000000002600",
     2},
    {"SELECT count(*) FROM events WHERE end_ns > 1700000000000006099", 1},
    {"SELECT count(*) FROM events WHERE 1700000000000004000 <= start_ns", 1},
    {"SELECT count(*) FROM events WHERE 1700000000000000500 > start_ns", 2},
    {"SELECT count(*) FROM events WHERE start_ns <= 1700000000000000000", 2},
    {"SELECT count(*) FROM events e WHERE e.op = 'write' AND e.node = 'n2'", 1},
    {"SELECT count(*) FROM hr_events() WHERE op = 'fread'", 1},
    {"SELECT count(*) FROM EVENTS WHERE OP = 'fread'", 1},
    {"SELECT count(*) FROM (SELECT * FROM events WHERE op = 'fread')", 1},
    {"WITH w AS (SELECT * FROM events WHERE class = 'write') SELECT count(*), (SELECT max(bytes) "
     "FROM w) FROM w",
     2},
    {"WITH w AS MATERIALIZED (SELECT * FROM events WHERE class = 'write') SELECT count(*), "
     "(SELECT max(bytes) FROM w) FROM w",
     2},
    {"WITH a AS MATERIALIZED (SELECT 1 AS x), w AS MATERIALIZED (SELECT * FROM events WHERE op = "
     "'fread') SELECT count(*), (SELECT max(bytes) FROM w) FROM w, a",
     1},
    {"SELECT count(*) FROM events e JOIN processes p ON p.proc = e.proc AND p.node = e.node "
     "WHERE e.op = 'fread' AND p.pid = 101",
     1},
    /* by file: a batch is read, and decoded if its list of files has one of them */
    {"SELECT op, start_ns, node FROM events WHERE path = '/scratch/ckpt/model-10.pt' ORDER BY ALL",
     3},
    {"SELECT count(*) FROM events WHERE path IN ('/scratch/ckpt/model-10.pt', '/nosuch')", 3},
    {"SELECT op, errno FROM events WHERE path = '/data/odd\\x0A\\xFF\\\\1' ORDER BY ALL", 3},
    {"SELECT count(*) FROM events WHERE path = 'bad \\ escape'", 3},
    {"SELECT count(*) FROM events WHERE path = '/data/odd\\x0a\\xff\\\\1'", 3},
    {"SELECT count(*) FROM events WHERE path = '/usr/lib/python3/os.py' AND op = 'fread'", 1},
    /* each file, each op, counts once */
    {"SELECT count(DISTINCT path) FROM events", 3},
    {"SELECT rank, count(DISTINCT path) FROM events GROUP BY rank ORDER BY ALL", 3},
    {"SELECT DISTINCT op, mount FROM events ORDER BY ALL", 3},
    {"SELECT DISTINCT path2, errno FROM events ORDER BY ALL", 3},
    /* not certain: everything is read */
    {"SELECT count(*) FROM events WHERE op = 'fread' OR node = 'n2'", 3},
    {"SELECT count(*) FROM events WHERE NOT (op = 'fread')", 3},
    {"SELECT count(*) FROM events WHERE op <> 'fread'", 3},
    {"SELECT count(*) FROM events WHERE lower(op) = 'fread'", 3},
    {"SELECT count(*) FROM events WHERE rank IN (" SIXTY_FOUR "2)", 3},
    {"SELECT count(*) FROM events WHERE rank = '2'", 3},
    {"SELECT count(*) FROM events WHERE rank = 2.0", 3},
    {"SELECT count(*) FROM (SELECT * FROM events) WHERE op = 'fread'", 3},
    {"SELECT count(*) FROM events a, events b WHERE a.op = 'fread' AND a.proc = b.proc AND a.node "
     "= b.node",
     6},
    {"SELECT count(*) FROM events WHERE op = 'fread' UNION ALL SELECT count(*) FROM events", 6},
    {"SELECT count(*) FROM processes p LEFT JOIN events e ON p.proc = e.proc AND p.node = e.node "
     "WHERE e.op = 'fread'",
     3},
    {"SELECT count(*) FROM processes p ASOF JOIN events e ON p.start_ns <= e.start_ns WHERE e.op = "
     "'fread'",
     3},
    {"WITH w AS MATERIALIZED (SELECT * FROM events WHERE op = 'fread') SELECT count(*) FROM w, "
     "events",
     6},
    {"SELECT count(*) FILTER (op = 'fread') FROM events", 3},
    {"SELECT op, count(*) FROM events GROUP BY op HAVING op = 'fread'", 3},
    {"SELECT op, n FROM (SELECT op, row_number() OVER (ORDER BY start_ns, node, proc) AS n FROM "
     "events) WHERE op = 'fread'",
     3},
    {"SELECT 'fread' AS op, node FROM events WHERE op = 'fread'", 3},
    {"WITH events AS (SELECT 'fread' AS op) SELECT count(*) FROM events WHERE op = 'read'", 0},
    {"SELECT count(*) FROM query_table('events') WHERE op = 'fread'", 3},
    {"SELECT (SELECT count(*) FROM query('SELECT * FROM events')) FROM events WHERE op = 'fread'",
     6},
};

static void pruning_changes_no_answer(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *with = fixture_ask(&pruned, cases[i].sql);
		char *without = fixture_ask(&whole, cases[i].sql);

		if (strcmp(with, without) != 0)
			fail_msg("%s\n--- pruned\n%s--- whole\n%s---", cases[i].sql, with, without);
		free(with);
		free(without);
	}
}

static void pruning_skips_what_cannot_match(void **state)
{
	struct hr_query_scan scan;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		free(fixture_ask(&pruned, cases[i].sql));
		hr_query_scan(pruned.q, &scan);
		assert_int_equal(scan.batches, scan.batches_read + scan.batches_pruned);
		if (scan.batches_read != cases[i].read)
			fail_msg("%s: reads %d batches, not %d", cases[i].sql,
				 (int)scan.batches_read, (int)cases[i].read);
	}
}

static int no_chunk(void *self, duckdb_data_chunk chunk)
{
	return 0;
}

static uint64_t batches_read(const char *sql, const struct hr_query_arg *args, size_t n)
{
	const struct hr_query_sink sink = {.chunk = no_chunk};
	struct hr_query_scan scan;
	char *error = NULL;

	if (hr_query_run(pruned.q, sql, args, n, &sink, &error) < 0)
		fail_msg("%s: %s", sql, error);
	hr_query_scan(pruned.q, &scan);
	return scan.batches_read;
}

/* Optional arguments of named queries are written `$x IS NULL OR column = $x`. */
static void parameters_prune(void **state)
{
	static const char sql[] = "SELECT count(*) FROM events WHERE ($op IS NULL OR op = $op) AND "
				  "($rank IS NULL OR rank = $rank)";
	struct hr_query_arg args[] = {{"op", "write", HR_ARG_VARCHAR},
				      {"rank", NULL, HR_ARG_BIGINT}};

	assert_int_equal(batches_read(sql, args, 2), 2);
	args[1].text = "2";
	assert_int_equal(batches_read(sql, args, 2), 1);
	args[0].text = args[1].text = NULL;
	assert_int_equal(batches_read(sql, args, 2), 3);
}

/* A file's batches are told by the path: all that is asked of one file decodes these alone. */
static void the_query_of_one_file_prunes(void **state)
{
	struct hr_query_arg args[] = {{"path", "/usr/lib/python3/os.py", HR_ARG_VARCHAR},
				      {"top", "10", HR_ARG_BIGINT}};

	batches_read(hr_named_find("file")->sql, args, 2);
	assert_true(pruned.q->prune.path.known);
	batches_read("SELECT count(*) FROM events", NULL, 0);
	assert_false(pruned.q->prune.path.known);
}

static int setup(void **state)
{
	struct hr_query_options o = {.threads = 2, .no_prune = true};
	char *store = fixture_make();

	*state = store;
	fixture_open(&pruned, store, NULL);
	fixture_open(&whole, store, &o);
	return 0;
}

static int teardown(void **state)
{
	fixture_close(&pruned);
	fixture_close(&whole);
	build_remove(*state);
	return 0;
}

/* Each text in memory of its own length, so that a read behind its end is found. */
static int parse_string(const char *json, struct hr_arena *arena, const char **ret)
{
	char *text = strdup(json);
	const struct hr_json_tree *root = NULL;
	int r = hr_json_tree_parse(arena, text, &root);

	if (r == 0)
		*ret = root->text;
	free(text);
	return r;
}

static void escapes_of_a_tree_are_complete(void **state)
{
	static const char *const damaged[] = {"\"\\u001\"",  "\"\\u00\"",   "\"\\u00-1\"",
					      "\"\\u00+1\"", "\"\\u0000\"", "\"\\x\"",
					      "\"\\u0"};
	struct hr_arena arena = {0};
	const char *text = NULL;

	assert_int_equal(parse_string("\"a\\u001Fb\\n\\\\\"", &arena, &text), 0);
	assert_string_equal(text, "a\x1f"
				  "b\n\\");
	assert_int_equal(parse_string("\"\\u00e9\"", &arena, &text), 0);
	assert_string_equal(text, "\xc3\xa9");
	for (unsigned i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
		assert_int_equal(parse_string(damaged[i], &arena, &text), -EBADMSG);
	hr_arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pruning_changes_no_answer),
	    cmocka_unit_test(pruning_skips_what_cannot_match),
	    cmocka_unit_test(parameters_prune),
	    cmocka_unit_test(the_query_of_one_file_prunes),
	    cmocka_unit_test(escapes_of_a_tree_are_complete),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
