/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner of .pfw lines: values, blanks, escapes, and what it rejects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/pfw/pfw_line.h"
#include "tests/unit.h"

/* Scans a copy with the readable bytes after it, so that sanitizers find reads beyond them. */
static int scan(const char *text, char **copy, struct hr_pfw_line *l)
{
	size_t n = strlen(text);

	*copy = calloc(1, n + 16);
	memcpy(*copy, text, n);
	return hr__pfw_line(*copy, n, l);
}

static void assert_value(const struct hr_pfw_line *l, enum hr_pfw_key key, const char *expected)
{
	char text[256];

	assert_true(hr_pfw_has(l, key));
	text[hr__pfw_text(&l->v[key], text)] = '\0';
	assert_string_equal(text, expected);
}

static void test_values(void **state)
{
	static const char *const lines[] = {
	    "{\"id\":\"1\",\"name\":\"read\",\"pid\":7,\"ts\":12,\"args\":{\"ret\":-5,\"fname\":\"/"
	    "a\"}}",
	    "  { \"id\" : \"1\" , \"name\" : \"read\" , \"pid\" : 7 , \"ts\" : 12 , \"args\" : { "
	    "\"ret\" "
	    ": -5 , \"fname\" : \"/a\" } } ,\r",
	    "[{\"id\":\"1\",\"new\":{\"a\":[1,{\"b\":\"}\"}]},\"name\":\"read\",\"pid\":7,\"ts\":"
	    "12,"
	    "\"args\":{\"x\":[],\"ret\":-5,\"y\":null,\"fname\":\"/a\"}}]",
	};
	struct hr_pfw_line l = {0};
	int64_t ret;
	char *copy;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(scan(lines[i], &copy, &l), 0);
		assert_value(&l, HR_PFW_NAME, "read");
		assert_value(&l, HR_PFW_PID, "7");
		assert_value(&l, HR_PFW_FNAME, "/a");
		assert_true(hr__pfw_int(&l.v[HR_PFW_RET], &ret));
		assert_int_equal(ret, -5);
		assert_false(hr_pfw_has(&l, HR_PFW_ARG_NAME));
		assert_int_equal(l.more, i == 2);
		free(copy);
	}
}

static void test_nothing(void **state)
{
	static const char *const lines[] = {"", "[", " ]", "  \r", "[ ", ",", "],"};
	struct hr_pfw_line l = {0};
	char *copy;

	for (size_t i = 0; i + 1 < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(scan(lines[i], &copy, &l), 1);
		free(copy);
	}
}

static void test_rejected(void **state)
{
	static const struct {
		const char *line;
		int error;
	} lines[] = {
	    {"x", -EBADMSG},
	    {"{", -EBADMSG},
	    {"{}", -EBADMSG},
	    {"{\"name\"", -EBADMSG},
	    {"{\"name\":", -EBADMSG},
	    {"{\"name\":\"re", -EAGAIN},
	    {"{\"na", -EAGAIN},
	    {"{\"name\":\"a\\\"", -EAGAIN},
	    {"{\"name\":\"read\"", -EBADMSG},
	    {"{\"name\":\"read\"}{", -EBADMSG},
	    {"{\"name\":\"read\" \"cat\":1}", -EBADMSG},
	    {"{\"args\":{\"ret\":1}", -EBADMSG},
	    {"{\"args\":{\"ret\":[[[}", -EBADMSG},
	    {"{\"ts\":}", -EBADMSG},
	};
	struct hr_pfw_line l = {0};
	char *copy, deep[400] = "{\"x\":";

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(scan(lines[i].line, &copy, &l), lines[i].error);
		free(copy);
	}
	memset(deep + 5, '[', 300);
	assert_int_equal(scan(deep, &copy, &l), -EBADMSG);
	free(copy);
}

static void test_escapes(void **state)
{
	struct hr_pfw_line l = {0};
	char *copy;

	assert_int_equal(
	    scan("{\"name\":\"a\\\"\\\\\\/\\n\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\ud83d\","
		 "\"cat\":\"\x01\xff\"}",
		 &copy, &l),
	    0);
	assert_value(&l, HR_PFW_NAME, "a\"\\/\nA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd");
	assert_value(&l, HR_PFW_CAT, "\x01\xff");
	free(copy);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} numbers[] = {
	    {"0", true, 0},
	    {"-1", true, -1},
	    {"9223372036854775807", true, INT64_MAX},
	    {"9223372036854775808", false, 0},
	    {"99999999999999999999", false, 0},
	    {"1.5", false, 0},
	    {"-", false, 0},
	    {"", false, 0},
	    {"null", false, 0},
	};
	struct hr_pfw_value v = {.type = HR_PFW_NUMBER};
	uint64_t ns;
	int64_t n;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		v.p = numbers[i].text;
		v.n = (uint32_t)strlen(v.p);
		assert_int_equal(hr__pfw_int(&v, &n), numbers[i].good);
		if (numbers[i].good)
			assert_int_equal(n, numbers[i].value);
	}
	v.p = "1700000000000000.1239";
	v.n = (uint32_t)strlen(v.p);
	assert_true(hr__pfw_time(&v, 1000, &ns));
	assert_int_equal(ns, UINT64_C(1700000000000000123));
	v.n = 16;
	assert_true(hr__pfw_time(&v, 1000, &ns));
	assert_int_equal(ns, UINT64_C(1700000000000000000));
	v.p = "1700000000123456789.5";
	v.n = (uint32_t)strlen(v.p);
	assert_true(hr__pfw_time(&v, 1, &ns));
	assert_int_equal(ns, UINT64_C(1700000000123456789));
	assert_false(hr__pfw_time(&v, 1000, &ns));
	v.p = "1700000000.1234567891";
	v.n = (uint32_t)strlen(v.p);
	assert_true(hr__pfw_time(&v, UINT64_C(1000000000), &ns));
	assert_int_equal(ns, UINT64_C(1700000000123456789));
	v.p = "-1";
	v.n = 2;
	assert_false(hr__pfw_time(&v, 1000, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),   cmocka_unit_test(test_nothing),
	    cmocka_unit_test(test_rejected), cmocka_unit_test(test_escapes),
	    cmocka_unit_test(test_numbers),
	};

	hr__pfw_line_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
