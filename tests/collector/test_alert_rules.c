/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of alerts as texts, also hostile ones, and URLs of receivers. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/alert_rules.h"
#include "collector/alert_url.h"
#include "tests/unit.h"

static size_t reports;
static char reported[512];

static void report(const char *text)
{
	reports++;
	snprintf(reported, sizeof(reported), "%s", text);
}

static int parse(const char *text, struct hr_alert_rules *ret)
{
	reports = 0;
	reported[0] = '\0';
	return hr_alert_rules_parse(text, ret, report);
}

static void rules_are_parsed(void **state)
{
	struct hr_alert_rules r = {0};

	assert_int_equal(parse(NULL, &r), 0);
	assert_int_equal(r.n, 0);
	assert_int_equal(
	    parse("waiting>80%for 5m,  metadata > 50000 \t for 10s , stuck > 1.5m,silent >30s", &r),
	    -EINVAL); /* a blank is missing */
	assert_int_equal(
	    parse("waiting>80% for 5m,  metadata > 50000 \t for 10s , stuck > 1.5m,silent >30s",
		  &r),
	    0);
	assert_int_equal(r.n, 4);
	assert_string_equal(r.list[0].text, "waiting > 80% for 5m");
	assert_float_equal(r.list[0].limit, 0.8, 1e-9);
	assert_int_equal(r.list[0].for_ms, 300000);
	assert_string_equal(r.list[1].text, "metadata > 50000 for 10s");
	assert_float_equal(r.list[1].limit, 50000, 0);
	assert_float_equal(r.list[2].limit, 90, 1e-9);
	assert_int_equal(r.list[3].kind, HR_ALERT_SILENT);
	assert_int_equal(r.list[3].for_ms, 0);
}

static void wrong_rules_are_named(void **state)
{
	static const char *const wrong[] = {
	    "waiting",
	    "waiting >",
	    "waiting > 80",
	    "waiting > 0%",
	    "waiting > 100%",
	    "waiting > -1%",
	    "waiting > nan%",
	    "waiting > 0x10%",
	    "waiting > %",
	    "waiting < 80%",
	    "waiting >> 80%",
	    "waiting > 80% for",
	    "waiting > 80% for 5",
	    "waiting > 80% for -5m",
	    "waiting > 80% for 5m now",
	    "waiting > 80% since 5m",
	    "waiting > 80% for 31d",
	    "metadata > 0",
	    "metadata > 1e9",
	    "metadata > inf",
	    "metadata > 1000000001",
	    "metadata > 99999999999999999999999999999",
	    "metadata > 5/s",
	    "stuck > 60",
	    "stuck > 4s",
	    "stuck > 99999999999999999999d",
	    "stuck > 31d",
	    "silent > 0s",
	    "checkpoint > 3",
	    "checkpoint > x",
	    "checkpoint > 1x",
	    "checkpoint > 1.2.3x",
	    "checkpoint > .x",
	    "checkpoint > 1001x",
	    "checkpoint > infx",
	    "Waiting > 80%",
	    "> 80%",
	    "latency > 3s",
	    "stuck > 60s,",
	    "waiting > 80%,,stuck > 60s",
	    "\xff\x01 > 3",
	    "waiting > 80% for 5m; stuck > 60s",
	    "stuck > %n%s%s%s",
	    "stuck > 60s, stuck>60s",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa > 3",
	};
	struct hr_alert_rules r = {.n = 7};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		bool trailing = strcmp(wrong[i], "stuck > 60s,") == 0;

		assert_int_equal(parse(wrong[i], &r), trailing ? 0 : -EINVAL);
		if (trailing) {
			r.n = 7;
			continue;
		}
		assert_int_equal(r.n, 7); /* the old rules stay */
		assert_memory_equal(reported, "alerts: '", 9);
	}
	assert_int_equal(parse("latency > 3s, stuck > 1s, waiting > 10%", &r), -EINVAL);
	assert_int_equal(reports, 2); /* each mistake */
	assert_string_equal(reported,
			    "alerts: 'stuck > 1s': the limit must be a time with a unit, from "
			    "5s to 30d, for example: stuck > 60s");
}

static void random_texts_do_no_harm(void **state)
{
	static const char *const parts[] = {
	    "waiting", "stuck", "metadata", ">",    " ",
	    "%",       "80",	"for",	    "5m",   ",",
	    "60s",     "\t",	"-",	    "\xff", "9999999999999999999"};
	struct hr_alert_rules r;
	char text[512];

	srand(1);
	for (unsigned i = 0; i < 20000; i++) {
		text[0] = '\0';
		for (unsigned k = (unsigned)rand() % 24; k > 0; k--)
			strcat(text, parts[(size_t)rand() % (sizeof(parts) / sizeof(*parts))]);
		r = (struct hr_alert_rules){0};
		if (parse(text, &r) < 0)
			assert_int_not_equal(reports, 0);
		assert_true(r.n <= HR_ALERT_RULES_MOST);
	}
}

static void too_many_rules(void **state)
{
	char text[4096] = "";
	struct hr_alert_rules r = {0};

	for (unsigned i = 0; i < HR_ALERT_RULES_MOST; i++)
		snprintf(text + strlen(text), 64, "%smetadata > %u", i ? "," : "", i + 1);
	assert_int_equal(parse(text, &r), 0);
	assert_int_equal(r.n, HR_ALERT_RULES_MOST);
	strcat(text, ",stuck > 60s");
	assert_int_equal(parse(text, &r), -EINVAL);
	assert_string_equal(reported, "alerts: 'stuck > 60s': more than 32 rules");
}

static void urls(void **state)
{
	static const char *const wrong[] = {
	    "",	 "ftp://x",    "http://",	   "http:///x", "https://u:p@/x",
	    "x", "http://a b", "http://a\r\nX: y", "HTTP",	"file:///etc/passwd"};
	char host[64];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(hr_alert_url_valid(wrong[i]));
	assert_true(hr_alert_url_valid("https://user:se@cret@hooks.example:8443/T0/secret?x=@y"));
	hr_alert_url_host("https://user:se@cret@hooks.example:8443/T0/secret?x=@y", host,
			  sizeof(host));
	assert_string_equal(host, "hooks.example:8443");
	hr_alert_url_host("http://[::1]:9/", host, sizeof(host));
	assert_string_equal(host, "[::1]:9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rules_are_parsed),
	    cmocka_unit_test(wrong_rules_are_named),
	    cmocka_unit_test(random_texts_do_no_harm),
	    cmocka_unit_test(too_many_rules),
	    cmocka_unit_test(urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
