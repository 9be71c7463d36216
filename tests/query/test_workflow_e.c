/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_workflow_e.c - what docs/workflow-e.md asks, asked of a smaller job, is what its generator
 * summed
 *
 * The SQL is taken from the page, in its order.
 */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/named.h"
#include "query/notes.h"
#include "tests/bench/workflow_e.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define EVENTS	  UINT64_C(1000003)
#define QUESTIONS 6

enum { REGIONS, MOUNTS, PATTERNS, MODEL, TIMELINE, SIZES };

static const struct hr_we_config noscr = {.job = "noscr", .events = EVENTS};
static const struct hr_we_config scr = {
    .job = "scr", .events = EVENTS / 10, .scr = true, .lost = 250000};
static struct hr_we_totals totals[2];
static struct fixture jobs[2]; /* by scr */
static char *sql[QUESTIONS];

/* ---- the page -------------------------------------------------------------------------- */

static char *read_page(void)
{
	FILE *f = fopen(HR_PAGE, "r");
	char *text;
	long bytes;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	bytes = ftell(f);
	rewind(f);
	text = calloc(1, (size_t)bytes + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)bytes, f), bytes);
	fclose(f);
	return text;
}

static void take_questions(void)
{
	static const char command[] = "\nheadrace query STORE --job noscr \"\n";
	char *page = read_page(), *at = page;

	for (unsigned i = 0; i < QUESTIONS; i++) {
		at = strstr(at, command);
		assert_non_null(at);
		at += sizeof(command) - 1;
		assert_non_null(strchr(at, '"'));
		sql[i] = strndup(at, strcspn(at, "\""));
		assert_non_null(sql[i]);
	}
	assert_null(strstr(at, command));
	free(page);
}

/* ---- answers --------------------------------------------------------------------------- */

/* The next field of a line of CSV without quotes; *at moves behind it. */
static const char *field(char **at)
{
	char *start = *at, *end = start + strcspn(start, ",\n");

	assert_true(*end != '\0');
	*end = '\0';
	*at = end + 1;
	return start;
}

static void assert_number(const char *is, double should)
{
	char *end;
	double value = strtod(is, &end);

	if (end == is || *end != '\0' || fabs(value - should) > 1e-12 * fabs(should))
		fail_msg("%s instead of %.17g", is, should);
}

static void assert_count(const char *is, uint64_t should)
{
	char *end;

	if (strtoull(is, &end, 10) != should || end == is || *end != '\0')
		fail_msg("%s instead of %llu", is, (unsigned long long)should);
}

static uint64_t largest(const uint64_t *ns)
{
	uint64_t max = 0;

	for (unsigned i = 0; i < HR_WE_RANKS; i++)
		max = ns[i] > max ? ns[i] : max;
	return max;
}

static void every_event_is_there(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		char *text =
			 fixture_ask(&jobs[i], "SELECT (SELECT count(*) FROM events), (SELECT "
					       "sum(count) FROM rollups), (SELECT count(*) FROM "
					       "regions)"),
		     *at = text;

		assert_int_equal(totals[i].events, i == 0 ? noscr.events : scr.events);
		assert_count(field(&at), totals[i].events);
		assert_count(field(&at), totals[i].events);
		assert_count(field(&at), totals[i].regions);
		free(text);
	}
}

static void time_in_checkpoints(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		char *text = fixture_ask(&jobs[i], sql[REGIONS]), *at = text;

		assert_true(largest(totals[i].checkpoint_ns) > 0);
		assert_number(field(&at), (double)largest(totals[i].checkpoint_ns) / 1e9);
		assert_int_equal(*at, '\0');
		free(text);
	}
}

/* Mounts come in the order of their names, the other way round. */
static void time_by_mount(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		char *text = fixture_ask(&jobs[i], sql[MOUNTS]), *at = text;

		for (unsigned m = HR_WE_MOUNTS; m-- > 0;) {
			assert_string_equal(field(&at), hr_we_mounts[m].path);
			assert_string_equal(field(&at), hr_we_mounts[m].fs_type);
			assert_number(field(&at), (double)largest(totals[i].mount_ns[m]) / 1e9);
		}
		assert_int_equal(*at, '\0');
		free(text);
	}
}

static void bytes_by_pattern(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		char *text = fixture_ask(&jobs[i], sql[PATTERNS]), *at = text;
		unsigned rows = 0;

		for (; *at != '\0'; rows++) {
			const char *pattern = field(&at);
			unsigned p = 0;

			while (p < HR_WE_PATTERNS && strcmp(hr_we_patterns[p], pattern) != 0)
				p++;
			assert_in_range(p, 0, HR_WE_PATTERNS - 1);
			assert_count(field(&at), totals[i].bytes_written[p]);
			assert_count(field(&at), totals[i].bytes_read[p]);
		}
		assert_int_equal(rows, i == 0 ? HR_WE_PATTERNS - 1 : HR_WE_PATTERNS);
		free(text);
	}
}

/* Also what the study published, which the generator is made to match. */
static void calls_on_the_model(void **state)
{
	static const char *const published[] = {
	    "write,288\n__fxstat64,96\nclose,96\nlseek64,96\nopen64,96\n",
	    "__xstat,192\nwrite,144\naccess,96\n__fxstat64,48\nclose,48\nlseek64,48\nopen64,48\n",
	};

	for (unsigned i = 0; i < 2; i++) {
		char *text = fixture_ask(&jobs[i], sql[MODEL]), *at = text;
		unsigned rows = 0, ops = 0;

		assert_string_equal(text, published[i]);
		for (; *at != '\0'; rows++) {
			uint16_t op = hr_op_by_name(field(&at));

			assert_count(field(&at), totals[i].model_ops[op]);
		}
		for (unsigned op = 0; op < HR_OP_MAX; op++)
			ops += totals[i].model_ops[op] > 0;
		assert_int_equal(rows, ops);
		free(text);
	}
}

static void one_files_timeline(void **state)
{
	char *text = fixture_ask(&jobs[0], sql[TIMELINE]), *at = text;

	assert_int_equal(totals[0].n_file_events, 7);
	for (size_t i = 0; i < totals[0].n_file_events; i++) {
		const struct hr_event *e = &totals[0].file_events[i];
		const char *is;

		assert_number(field(&at), (double)(e->start_ns - HR_GEN_BOOT_NS) / 1e9);
		assert_number(field(&at), (double)e->dur_ns / 1e9);
		assert_string_equal(field(&at), hr_op_info(e->op)->name);
		is = field(&at);
		if (e->offset == HR_OFFSET_NONE)
			assert_string_equal(is, "");
		else
			assert_count(is, (uint64_t)e->offset);
		is = field(&at);
		if (e->op != HR_OP_write)
			assert_string_equal(is, "");
		else
			assert_count(is, (uint64_t)e->ret);
	}
	assert_int_equal(*at, '\0');
	free(text);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Between the two values next to it, as pandas' describe() does. */
static double quantile(const struct hr_we_totals *t, double q)
{
	double at = q * (double)(t->n_writes - 1), low = floor(at);
	double a = (double)t->writes[(size_t)low], b = (double)t->writes[(size_t)ceil(at)];

	return a + (b - a) * (at - low);
}

static void sizes_of_writes(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct hr_we_totals *t = &totals[i];
		char *text = fixture_ask(&jobs[i], sql[SIZES]), *at = text;
		double sum = 0, squares = 0, mean;

		qsort(t->writes, t->n_writes, sizeof(*t->writes), compare_u64);
		for (size_t k = 0; k < t->n_writes; k++)
			sum += (double)t->writes[k];
		mean = sum / (double)t->n_writes;
		for (size_t k = 0; k < t->n_writes; k++)
			squares += ((double)t->writes[k] - mean) * ((double)t->writes[k] - mean);
		assert_count(field(&at), t->n_writes);
		assert_number(field(&at), mean);
		assert_number(field(&at), sqrt(squares / (double)(t->n_writes - 1)));
		assert_count(field(&at), t->writes[0]);
		assert_number(field(&at), quantile(t, 0.25));
		assert_number(field(&at), quantile(t, 0.5));
		assert_number(field(&at), quantile(t, 0.75));
		assert_count(field(&at), t->writes[t->n_writes - 1]);
		free(text);
	}
}

/* ---- checkpoints ----------------------------------------------------------------------- */

/* The named query with its default arguments in their places, and `regions` for the table. */
static char *checkpoints_sql(const char *regions)
{
	static const char *const defaults[][2] = {
	    {"$name", "NULL"}, {"$gap", "1"}, {"$least", "1048576"}, {"FROM regions", NULL}};
	const char *from = strstr(hr_named_find("checkpoints")->sql, "\nWITH");
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(from);
	while (*from != '\0') {
		size_t i = 0, n = sizeof(defaults) / sizeof(defaults[0]);

		while (i < n && strncmp(from, defaults[i][0], strlen(defaults[i][0])) != 0)
			i++;
		if (i == n) {
			fputc(*from++, to);
			continue;
		}
		fputs(defaults[i][1] != NULL ? defaults[i][1] : regions, to);
		from += strlen(defaults[i][0]);
	}
	assert_int_equal(fclose(to), 0);
	return text;
}

/* Rows of one source hold all of the job's bytes and writes but those `outside`. */
static void assert_checkpoints(unsigned job, const char *regions, const char *source,
			       uint64_t outside_bytes, uint64_t outside)
{
	char *inner = checkpoints_sql(regions), *statement, *text, *at;
	const struct hr_we_totals *t = &totals[job];
	uint64_t written = 0, checkpoints = job == 0 ? 6 : 3;

	for (unsigned p = 0; p < HR_WE_PATTERNS; p++)
		written += t->bytes_written[p];
	assert_true(asprintf(&statement,
			     "WITH c AS (%s) SELECT count(DISTINCT rank), count(DISTINCT "
			     "(rank, checkpoint)), count(DISTINCT checkpoint), sum(bytes_written), "
			     "sum(writes) FROM c WHERE source = '%s'",
			     inner, source) > 0);
	at = text = fixture_ask(&jobs[job], statement);
	assert_count(field(&at), HR_WE_RANKS);
	assert_count(field(&at), checkpoints * HR_WE_RANKS);
	assert_count(field(&at), checkpoints);
	assert_count(field(&at), written - outside_bytes);
	assert_count(field(&at), t->n_writes - outside);
	free(text);
	free(statement);
	free(inner);
}

static void assert_no_checkpoints(unsigned job, const char *regions, const char *source)
{
	char *inner = checkpoints_sql(regions), *statement, *text;

	assert_true(asprintf(&statement,
			     "WITH c AS (%s) SELECT count(*) FROM c WHERE source = '%s'", inner,
			     source) > 0);
	text = fixture_ask(&jobs[job], statement);
	assert_string_equal(text, "0\n");
	free(text);
	free(statement);
	free(inner);
}

/*
 * Regions and, without regions, bursts of writes give the same checkpoints. SCR flushes after the regions as much as it wrote to
 * protect them: these are bursts of their own.
 */
static void checkpoints_hold_their_writes(void **state)
{
	uint64_t flushed = totals[1].bytes_written[4] / 2, flushes = flushed / (64 << 20);
	uint64_t written = 0;

	for (unsigned p = 0; p < HR_WE_PATTERNS; p++)
		written += totals[1].bytes_written[p];
	assert_true(flushed > 0);
	assert_checkpoints(0, "FROM regions", "regions", 0, 0);
	assert_no_checkpoints(0, "FROM regions", "writes");
	assert_checkpoints(0, "FROM (SELECT * FROM regions LIMIT 0)", "writes", 0, 0);
	assert_checkpoints(1, "FROM regions", "regions", flushed, flushes);
	assert_checkpoints(1, "FROM regions", "writes", written - flushed,
			   totals[1].n_writes - flushes);
}

/* ---- what is missing ------------------------------------------------------------------- */

static char said[8][256];
static unsigned n_said;

static void remember(void *self, const char *text)
{
	snprintf(said[n_said++ % 8], sizeof(said[0]), "%s", text);
}

static const struct hr_sink messages = {remember, NULL};

static void assert_said(struct fixture *f, const char *expected)
{
	n_said = 0;
	assert_int_equal(hr_query_notes(f->q, 8, &messages), 0);
	if (expected == NULL) {
		assert_int_equal(n_said, 0);
		return;
	}
	assert_int_equal(n_said, 1);
	assert_string_equal(said[0], expected);
}

static void lost_events_are_said(void **state)
{
	assert_said(&jobs[0], NULL);
	assert_said(
	    &jobs[1],
	    "job scr: missing 250,000 operations (977 MiB): a ring buffer had no room; "
	    "HEADRACE_ON_FULL=wait:MS makes threads wait longer (ring_full); totals are too "
	    "low");
}

/* Half of the streams: half of the writes, and an answer that says so. The last of the tests. */
static void a_missing_node_is_said(void **state)
{
	char pattern[256], *text;
	struct fixture f;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/jobs/noscr/node1.*", (const char *)*state);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	build_remove(strdup(found.gl_pathv[0]));
	globfree(&found);
	fixture_open_job(&f, *state, "noscr", NULL);
	text = fixture_ask(&f, sql[MODEL]);
	assert_string_equal(text, "write,144\n__fxstat64,48\nclose,48\nlseek64,48\nopen64,48\n");
	free(text);
	assert_said(&f,
		    "job noscr: 8 of 16 expected ranks were not seen: 8, 9, 10, 11, 12, 13, 14, "
		    "15");
	fixture_close(&f);
}

static int setup(void **state)
{
	char *store = build_folder();

	assert_int_equal(hr_store_create(store), 0);
	hr_we_store(&noscr, store, &totals[0]);
	hr_we_store(&scr, store, &totals[1]);
	fixture_open_job(&jobs[0], store, "noscr", NULL);
	fixture_open_job(&jobs[1], store, "scr", NULL);
	take_questions();
	*state = store;
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		fixture_close(&jobs[i]);
		hr_we_totals_done(&totals[i]);
	}
	for (unsigned i = 0; i < QUESTIONS; i++)
		free(sql[i]);
	build_remove(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_event_is_there), cmocka_unit_test(time_in_checkpoints),
	    cmocka_unit_test(time_by_mount),	    cmocka_unit_test(bytes_by_pattern),
	    cmocka_unit_test(calls_on_the_model),   cmocka_unit_test(one_files_timeline),
	    cmocka_unit_test(sizes_of_writes),	    cmocka_unit_test(checkpoints_hold_their_writes),
	    cmocka_unit_test(lost_events_are_said), cmocka_unit_test(a_missing_node_is_said),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
