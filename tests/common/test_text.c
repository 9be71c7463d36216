/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of common/text.h: escapes, sizes, durations, JSON. */
#include "common/text.h"

#include "common/json_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"

static void assert_escaped(const char *in, size_t n, const char *want)
{
	char out[256], back[256];

	assert_int_equal(hr_text_escape(out, sizeof(out), in, n), strlen(want));
	assert_string_equal(out, want);
	strcpy(back, out);
	assert_int_equal(hr_text_unescape(back), n);
	assert_memory_equal(back, in, n);
}

static void test_escape(void **state)
{
	assert_escaped("/data/a.jpg", 11, "/data/a.jpg");
	assert_escaped("a\\b", 3, "a\\\\b");
	assert_escaped("a\nb\x7f", 4, "a\\x0Ab\\x7F");
	assert_escaped("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x99\x82", 15,
		       "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x99\x82");
	assert_escaped("\xc2\x85", 2, "\\xC2\\x85"); /* C1 control */
	assert_escaped("\xe2\x80\xae"
		       "gnp",
		       6, "\\xE2\\x80\\xAEgnp"); /* right to left */
	assert_escaped("\xe2\x81\xa6", 3, "\\xE2\\x81\\xA6");
	assert_escaped("\xe2\x80\x93", 3, "\xe2\x80\x93");	       /* a dash */
	assert_escaped("\xff\xc3(", 3, "\\xFF\\xC3(");		       /* not UTF-8 */
	assert_escaped("\xc0\xaf", 2, "\\xC0\\xAF");		       /* overlong */
	assert_escaped("\xed\xa0\x80", 3, "\\xED\\xA0\\x80");	       /* surrogate */
	assert_escaped("\xf4\x90\x80\x80", 4, "\\xF4\\x90\\x80\\x80"); /* past U+10FFFF */
	assert_escaped("\xe2\x82", 2, "\\xE2\\x82");		       /* cut short */
	assert_escaped("", 0, "");
}

static void assert_printed(const char *in, const char *want)
{
	char *out = NULL;
	size_t bytes;
	FILE *to = open_memstream(&out, &bytes);

	hr_text_print(to, "%s", in);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(out, want);
	free(out);
}

static void test_print(void **state)
{
	char *line = hr_text_line("a\n\x1b]0;b\a\\");

	assert_string_equal(line, "a\\x0A\\x1B]0;b\\x07\\");
	free(line);
	assert_printed("two\nlines,\ttab, \\x41", "two\nlines,\ttab, \\x41");
	assert_printed("\x1b[2J\r\x7f", "\\x1B[2J\\x0D\\x7F");
	assert_printed("\xc2\x9b"
		       "31m \x9b"
		       "31m",
		       "\\xC2\\x9B31m \\x9B31m"); /* CSI as a C1 control */
	assert_printed("na\xc3\xafve \xe2", "na\xc3\xafve \\xE2");
	assert_printed("", "");
}

static void assert_short(const char *path, const char *from, size_t cells, const char *want)
{
	char out[256];

	assert_int_equal(hr_text_path_short(out, sizeof(out), path, from, cells), strlen(want));
	assert_string_equal(out, want);
	assert_true(hr_text_cells(out) <= cells);
}

static void test_short_paths(void **state)
{
	static const char path[] = "/data/imagenet/train/n01440764/n01440764_10026.JPEG";

	assert_short("/home/a/data/x", "/home/a", 40, "data/x");
	assert_short("/home/ab/data/x", "/home/a", 40, "/home/ab/data/x");
	assert_short("/home/a", "/home/a", 40, "/home/a");
	assert_short("/home/a/", "/home/a", 40, "/home/a/");
	assert_short("/home", "/", 40, "/home");
	assert_short(path, NULL, 51, path);
	assert_short(path, NULL, 50, "/data/.../train/n01440764/n01440764_10026.JPEG");
	assert_short(path, NULL, 45, "/data/.../n01440764/n01440764_10026.JPEG");
	assert_short(path, NULL, 30, "/data/.../n01440764_10026.JPEG");
	assert_short(path, NULL, 26, "/data/...440764_10026.JPEG");
	assert_short(path, NULL, 15, "...4_10026.JPEG");
	assert_short(path, NULL, 3, "PEG");
	assert_short(path, NULL, 0, "");
	assert_short("/d/\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac/\xe2\x82\xac", NULL, 7,
		     ".../\xe2\x82\xac");
	assert_short("/d/\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", NULL, 5,
		     "...\xe2\x82\xac\xe2\x82\xac");
	assert_short("", NULL, 5, "");
}

static void test_cells(void **state)
{
	/* two Chinese characters, a combining accent, a zero-width space */
	static const char text[] = "a\xe4\xb8\xad\xe6\x96\x87"
				   "e\xcc\x81\xe2\x80\x8b";
	size_t bytes;

	assert_int_equal(hr_text_character("a", &bytes), 1);
	assert_int_equal(hr_text_character(text + 1, &bytes), 2);
	assert_int_equal(bytes, 3);
	assert_int_equal(hr_text_character("\xcc\x81", &bytes), 0);
	assert_int_equal(bytes, 2);
	assert_int_equal(hr_text_character("\xe2\x80\x8b", &bytes), -1);
	assert_int_equal(hr_text_character("\xff", &bytes), -1);
	assert_int_equal(bytes, 1);
	assert_int_equal(hr_text_character("\xf0\x9f\x99\x82", &bytes), 2);
	assert_int_equal(hr_text_cells(text), 1 + 2 + 2 + 1 + 0 + 1);
	assert_int_equal(hr_text_start(text, 2), 1); /* no half of a character */
	assert_int_equal(hr_text_start(text, 3), 4);
	assert_int_equal(hr_text_start(text, 6), 10); /* with its accent */
	assert_string_equal(hr_text_end(text, 3), text + 7);
	assert_string_equal(hr_text_end(text, 100), text);
	assert_short("/d/\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad/\xe4\xb8\xad", NULL, 7,
		     ".../\xe4\xb8\xad");
	assert_short("/\xe4\xb8\xad/x/y/long-name.txt", NULL, 20, "/\xe4\xb8\xad/...long-name.txt");
}

static void test_bars(void **state)
{
	assert_string_equal(hr_text_bar(0.6, 5).s, "###  ");
	assert_string_equal(hr_text_bar(0.001, 5).s, "#    ");
	assert_string_equal(hr_text_bar(0, 5).s, "     ");
	assert_string_equal(hr_text_bar(2, 5).s, "#####");
	assert_string_equal(hr_text_bar(-1, 5).s, "     ");
	assert_string_equal(hr_text_bar(0.0 / 0.0, 5).s, "     ");
	assert_int_equal(strlen(hr_text_bar(1, 100).s), 31);
}

static void test_utf8(void **state)
{
	assert_true(hr_text_is_utf8("", 0));
	assert_true(hr_text_is_utf8("a\n\\\xc3\xa9", 5));
	assert_false(hr_text_is_utf8("a\xc3\xa9", 2));
	assert_false(hr_text_is_utf8("\xe9", 1));
}

static void test_escape_never_splits(void **state)
{
	char out[8];

	assert_int_equal(hr_text_escape(out, 6, "ab\n\n", 4), 10);
	assert_string_equal(out, "ab");
	assert_int_equal(hr_text_escape(out, 7, "ab\n", 3), 6);
	assert_string_equal(out, "ab\\x0A");
	assert_int_equal(hr_text_escape(NULL, 0, "\xe2\x82\xac", 3), 3);
}

static void test_unescape_refuses(void **state)
{
	const char *const bad[] = {"\\", "\\x", "\\x4", "\\xZZ", "\\n"};
	char text[8];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(text, bad[i]);
		assert_int_equal(hr_text_unescape(text), -EINVAL);
	}
}

/* The texts of HR_NUMBERS, which the other languages print, too */
static void test_numbers(void **state)
{
	FILE *in = fopen(HR_NUMBERS, "re");
	unsigned long long value;
	char line[256], what[16], want[32];
	unsigned n = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		struct hr_human found;

		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%15s\t%llu\t%31[^\n]", what, &value, want), 3);
		if (strcmp(what, "size") == 0)
			found = hr_text_size(value);
		else if (strcmp(what, "duration") == 0)
			found = hr_text_duration(value);
		else
			found = hr_text_count(value);
		assert_string_equal(found.s, want);
		n++;
	}
	assert_true(n >= 60);
	fclose(in);
	assert_string_equal(hr_text_size(UINT64_MAX).s, "16.0 EiB");
	assert_string_equal(hr_text_count(UINT64_MAX).s, "18,446,744,073,709,551,615");
	assert_string_equal(hr_text_percent(1, 3).s, "33.3 %");
	assert_string_equal(hr_text_percent(0, 0).s, "-");
	assert_string_equal(hr_text_date(UINT64_C(1700000045000000000)).s, "2023-11-14 22:14 UTC");
}

static void test_parsing(void **state)
{
	uint64_t v = 7;

	assert_int_equal(hr_text_parse_size("10GiB", &v), 0);
	assert_int_equal(v, UINT64_C(10) << 30);
	assert_int_equal(hr_text_parse_size("1.5k", &v), 0);
	assert_int_equal(v, 1536);
	assert_int_equal(hr_text_parse_size("4096", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(hr_text_parse_duration("100ms", &v), 0);
	assert_int_equal(v, 100000000);
	assert_int_equal(hr_text_parse_duration("5", &v), 0);
	assert_int_equal(v, UINT64_C(5000000000));
	assert_int_equal(hr_text_parse_duration("30d", &v), 0);
	assert_int_equal(v, UINT64_C(30) * 86400 * 1000000000);
	assert_int_equal(hr_text_parse_uint("47", 100, &v), 0);
	assert_int_equal(v, 47);
	assert_int_equal(hr_text_parse_size("", &v), -EINVAL);
	assert_int_equal(hr_text_parse_size("-1", &v), -EINVAL);
	assert_int_equal(hr_text_parse_size("0x10", &v), -EINVAL);
	assert_int_equal(hr_text_parse_size("10 GiB!", &v), -EINVAL);
	assert_int_equal(hr_text_parse_size("99999999999T", &v), -ERANGE);
	assert_int_equal(hr_text_parse_duration("nan", &v), -EINVAL);
	assert_int_equal(hr_text_parse_uint("101", 100, &v), -ERANGE);
	assert_int_equal(hr_text_parse_uint("1a", 100, &v), -EINVAL);
	assert_int_equal(v, 47); /* untouched on failure */
}

static void test_json(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	struct hr_json j;

	hr_json_init(&j, out);
	hr_json_object(&j, NULL);
	hr_json_string(&j, "name", "a\"b\\\n");
	hr_json_path(&j, "path", "x\xff\\", 3);
	hr_json_array(&j, "list");
	hr_json_uint(&j, NULL, UINT64_MAX);
	hr_json_int(&j, NULL, -1);
	hr_json_end(&j);
	hr_json_object(&j, "empty");
	hr_json_end(&j);
	hr_json_bool(&j, "yes", true);
	hr_json_null(&j, "none");
	hr_json_double(&j, "half", 0.5);
	for (size_t i = 0; hr_json_row(&j, "rows", i, 2); i++)
		hr_json_uint(&j, "n", i);
	for (size_t i = 0; hr_json_row(&j, "no_rows", i, 0); i++)
		fail();
	hr_json_uint_if(&j, "unknown", false, 7);
	assert_false(hr_json_object_if(&j, "nothing", false));
	hr_json_end(&j);
	fclose(out);
	assert_string_equal(
	    text, "{\n  \"name\": \"a\\\"b\\\\\\u000a\",\n  \"path\": \"x\\\\xFF\\\\\\\\\",\n"
		  "  \"list\": [\n    18446744073709551615,\n    -1\n  ],\n  \"empty\": {},\n"
		  "  \"yes\": true,\n  \"none\": null,\n  \"half\": 0.5,\n"
		  "  \"rows\": [\n    {\n      \"n\": 0\n    },\n"
		  "    {\n      \"n\": 1\n    }\n  ],\n"
		  "  \"no_rows\": [],\n  \"unknown\": null,\n  \"nothing\": null\n}\n");
	free(text);
}

static void test_json_members(void **state)
{
	static const char json[] =
	    "{\"a\": {\"path\": \"no\"}, \"path\": \"/d/\\\"x\\\" \\u00e9\", \"n\": -3}";
	struct hr_json_part v;
	char text[32];
	int64_t n;

	assert_true(hr_json_part_find(json, strlen(json), "path", &v));
	assert_int_equal(v.type, HR_JSON_STRING);
	text[hr_json_part_text(&v, text)] = '\0';
	assert_string_equal(text, "/d/\"x\" \xc3\xa9");
	assert_true(hr_json_part_find(json, strlen(json), "n", &v));
	assert_true(hr_json_part_int(&v, &n));
	assert_int_equal(n, -3);
	assert_true(hr_json_part_find(json, strlen(json), "a", &v));
	assert_true(hr_json_part_find(v.p, v.n, "path", &v));
	assert_true(hr_json_part_is(&v, "no"));
	assert_false(hr_json_part_find(json, strlen(json), "b", &v));
	assert_false(hr_json_part_find(json, 20, "path", &v)); /* cut short */
	assert_false(hr_json_part_find("[1]", 3, "path", &v));
	assert_false(hr_json_part_find(json, 0, "path", &v));
}

static void test_quote(void **state)
{
	static const char *const words[][2] = {
	    {"./headrace-7", "./headrace-7"}, {"/a b", "'/a b'"},
	    {"it's", "'it'\\''s'"},	      {"", "''"},
	    {"$HOME;", "'$HOME;'"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *quoted = hr_text_quote(words[i][0]);

		assert_string_equal(quoted, words[i][1]);
		free(quoted);
	}
}

static void test_words(void **state)
{
	assert_true(hr_text_has_word("read pread64 readv", "read"));
	assert_true(hr_text_has_word("read pread64 readv", "pread64"));
	assert_true(hr_text_has_word("pread64 readv", "readv"));
	assert_false(hr_text_has_word("pread64 readv", "read"));
	assert_false(hr_text_has_word("", "read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_json_members),
	    cmocka_unit_test(test_quote),
	    cmocka_unit_test(test_escape),
	    cmocka_unit_test(test_utf8),
	    cmocka_unit_test(test_print),
	    cmocka_unit_test(test_short_paths),
	    cmocka_unit_test(test_bars),
	    cmocka_unit_test(test_escape_never_splits),
	    cmocka_unit_test(test_unescape_refuses),
	    cmocka_unit_test(test_cells),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_parsing),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
