/* SPDX-License-Identifier: Apache-2.0 */
/* model/extrap_file.h: both formats, what is wrong in hostile files, and written files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/extrap_file.h"
#include "tests/unit.h"

#define TEXT                                                                                       \
	"PARAMETER ranks workers\n"                                                                \
	"# a comment\n"                                                                            \
	"\n"                                                                                       \
	"POINTS (2 1) ( 4 1 )(8 2)\r\n"                                                            \
	"METRIC read_s\n"                                                                          \
	"REGION train->a  b\n"                                                                     \
	"DATA 1 2\n"                                                                               \
	"DATA 0.1\n"                                                                               \
	"DATA 1e-3\t3\n"                                                                           \
	"REGION other\n"                                                                           \
	"DATA 5\nDATA 6\nDATA 7"

static struct hr_measurements read_text(const char *text)
{
	struct hr_measurements m = {0};
	char *error;

	assert_int_equal(hr_extrap_read(text, strlen(text), &m, &error), 0);
	return m;
}

static void assert_fails(const char *first, const char *text, const char *want)
{
	struct hr_measurements m = {0};
	char *error = NULL;

	if (first != NULL)
		assert_int_equal(hr_extrap_read(first, strlen(first), &m, &error), 0);
	assert_int_equal(hr_extrap_read(text, strlen(text), &m, &error), -EBADMSG);
	assert_string_equal(error, want);
	free(error);
	hr_measurements_done(&m);
}

static void test_text(void **state)
{
	struct hr_measurements m = read_text(TEXT);

	assert_int_equal(m.n_parameters, 2);
	assert_string_equal(m.parameters[1], "workers");
	assert_int_equal(m.n, 2);
	assert_string_equal(m.series[0].region, "train->a b");
	assert_string_equal(m.series[0].metric, "read_s");
	assert_int_equal(m.series[0].n, 3);
	assert_true(m.series[0].points[2].at[0] == 8 && m.series[0].points[2].at[1] == 2);
	assert_true(m.series[0].points[2].n == 2 && m.series[0].points[2].values[0] == 1e-3);
	assert_true(m.series[1].points[2].values[0] == 7);
	hr_measurements_done(&m);
}

static void test_lines(void **state)
{
	struct hr_measurements m =
	    read_text("{\"params\": {\"ranks\": 2, \"w\": 1}, \"callpath\": \"a->\\u00e9\", "
		      "\"metric\": \"t\", \"value\": 1.5, \"more\": [1]}\n\n"
		      "{\"value\": 2, \"params\": {\"w\": 1, \"ranks\": 2}, \"metric\": \"t\", "
		      "\"callpath\": \"a->\xc3\xa9\"}\n"
		      "{\"value\": 3, \"params\": {\"w\": 1, \"ranks\": 4}}");

	assert_int_equal(m.n, 2);
	assert_int_equal(m.series[0].n, 1);
	assert_int_equal(m.series[0].points[0].n, 2);
	assert_true(m.series[0].points[0].values[1] == 2);
	assert_string_equal(m.series[1].region, "<root>");
	assert_string_equal(m.series[1].metric, "<default>");
	assert_true(m.series[1].points[0].at[0] == 4 && m.series[1].points[0].at[1] == 1);
	hr_measurements_done(&m);
}

static void test_nul_byte(void **state)
{
	static const char text[] = "PARAMETER p\0q\nPOINTS 1\nDATA 1\n";
	struct hr_measurements m = {0};
	char *error;

	assert_int_equal(hr_extrap_read(text, sizeof(text) - 1, &m, &error), -EBADMSG);
	assert_string_equal(error, "line 1: a NUL byte in the text");
	free(error);
	hr_measurements_done(&m);
}

static void test_bad_text(void **state)
{
	assert_fails(NULL, "", "no measurements in the file");
	assert_fails(NULL, "PARAMETER p\n\n# x\n", "no measurements in the file");
	assert_fails(NULL, "PARAMETER p\nPOINT 1\n", "line 2: no field of Extra-P: 'POINT'");
	assert_fails(NULL, "\x1b[1m\n", "line 1: no field of Extra-P: '\\x1B[1m'");
	assert_fails(NULL, "POINTS (2)\n", "line 1: POINTS before PARAMETER");
	assert_fails(NULL, "PARAMETER a b c\nPARAMETER d\n",
		     "line 2: headrace model reads up to 3 parameters");
	assert_fails(NULL, "PARAMETER a a\n", "line 1: a parameter is there twice");
	assert_fails(NULL, "PARAMETER p\nPOINTS (2 3)\n",
		     "line 2: POINTS needs (1 number) for each point");
	assert_fails(NULL, "PARAMETER p q\nPOINTS 2 3\n",
		     "line 2: POINTS needs (2 numbers) for each point");
	assert_fails(NULL, "PARAMETER p q\nPOINTS (2 3\n", "line 2: no ) at the end of POINTS");
	assert_fails(NULL, "PARAMETER p\nPOINTS 2 x\n", "line 2: no finite number: 'x'");
	assert_fails(NULL, "PARAMETER p\nPOINTS 2\nDATA 1\nDATA 1\n",
		     "line 4: DATA number 2 of a region, but POINTS has 1");
	assert_fails(NULL, "PARAMETER p\nPOINTS 2\nDATA nan\n", "line 3: no finite number: 'nan'");
	assert_fails(NULL, "PARAMETER p\nPOINTS 2\nDATA 0x1\n", "line 3: no finite number: '0x1'");
	assert_fails(NULL, "PARAMETER p\nPOINTS 2\nDATA\n", "line 3: DATA without a value");
	assert_fails(NULL, "PARAMETER p\nPOINTS -2\nDATA 1\n",
		     "line 3: values of parameters must not be negative");
	assert_fails(NULL, "PARAMETER p\nPOINTS 2\nPARAMETER q\n",
		     "line 3: PARAMETER after POINTS");
	assert_fails(TEXT, "PARAMETER q\n", "line 1: parameter 'q' is not in the first file");
	assert_fails(TEXT, "PARAMETER ranks\nPOINTS 2\n",
		     "line 2: 1 parameters, but the first file or line has 2");
}

#define LINE "{\"params\": {\"p\": 1}, \"value\": 1}\n"

static void test_bad_lines(void **state)
{
	assert_fails(NULL, "{\n", "line 1: no JSON object");
	assert_fails(NULL, LINE "{} x\n", "line 2: no JSON object");
	assert_fails(NULL, LINE "[1]\n", "line 2: no JSON object");
	assert_fails(NULL, "{\"value\": 1}\n", "line 1: no object \"params\"");
	assert_fails(NULL, "{\"params\": {\"p\": \"1\"}, \"value\": 1}\n",
		     "line 1: the value of a parameter is no finite number");
	assert_fails(NULL, LINE "{\"params\": {\"p\": 1}, \"value\": NaN}\n",
		     "line 2: \"value\" is no finite number");
	assert_fails(NULL, LINE "{\"params\": {\"p\": 1}, \"value\": 1e999}\n",
		     "line 2: \"value\" is no finite number");
	assert_fails(NULL, LINE "{\"params\": {\"p\": 1}}\n",
		     "line 2: \"value\" is no finite number");
	assert_fails(NULL, LINE "{\"params\": {\"q\": 1}, \"value\": 1}\n",
		     "line 2: parameter 'q' is not in the first file");
	assert_fails(NULL, LINE "{\"params\": {}, \"value\": 1}\n",
		     "line 2: 0 parameters, but the first file or line has 1");
	assert_fails(NULL, LINE "{\"params\": {\"p\": 1, \"p\": 1}, \"value\": 1}\n",
		     "line 2: a parameter is there twice");
	assert_fails(NULL, LINE "{\"params\": {\"p\": 1}, \"metric\": 1, \"value\": 1}\n",
		     "line 2: \"callpath\" and \"metric\" must be names");
	assert_fails(NULL, "{\"params\": {\"p\": 1}, \"metric\": \"a\\u0000\", \"value\": 1}\n",
		     "line 1: a name has a NUL");
}

static char *written(const struct hr_measurements *m, enum hr_extrap_format format, int want)
{
	char *text = NULL, *error;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_non_null(out);
	assert_int_equal(hr_extrap_write(out, format, m, &error), want);
	assert_true((error != NULL) == (want == -EINVAL));
	fclose(out);
	free(error);
	return text;
}

/* Both formats have the same content: from each, the other one is written. */
static void test_round_trip(void **state)
{
	struct hr_measurements m = read_text(TEXT), lines, again;
	char *text = written(&m, HR_EXTRAP_TEXT, 0), *jsonl = written(&m, HR_EXTRAP_JSONL, 0);
	char *other;

	lines = read_text(jsonl);
	other = written(&lines, HR_EXTRAP_TEXT, 0);
	assert_string_equal(text, other);
	again = read_text(text);
	free(other);
	other = written(&again, HR_EXTRAP_JSONL, 0);
	assert_string_equal(jsonl, other);
	free(other);
	free(text);
	free(jsonl);
	hr_measurements_done(&m);
	hr_measurements_done(&lines);
	hr_measurements_done(&again);
}

static void test_text_cannot_hold(void **state)
{
	struct hr_measurements m =
	    read_text(LINE "{\"params\": {\"p\": 2}, \"value\": 1, \"metric\": \"other\"}\n");
	struct hr_measurements blank = read_text("{\"params\": {\"a b\": 1}, \"value\": 1}");

	free(written(&m, HR_EXTRAP_TEXT, -EINVAL)); /* the metrics have different points */
	free(written(&blank, HR_EXTRAP_TEXT, -EINVAL));
	hr_measurements_done(&m);
	hr_measurements_done(&blank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_bad_text),
	    cmocka_unit_test(test_nul_byte),
	    cmocka_unit_test(test_bad_lines),
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_text_cannot_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
