/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "net/wire.h"

static void good(const char *text, const char *host, uint16_t port, const char *again)
{
	char shown[HR_ADDRESS_HOST_BYTES + 32];
	struct hr_address a;

	assert_true(hr_address_is(text));
	assert_int_equal(hr_address_parse(text, &a), 0);
	assert_string_equal(a.host, host);
	assert_int_equal(a.port, port);
	assert_int_equal(a.local, strncmp(text, "unix", 4) == 0);
	hr_address_text(&a, shown, sizeof(shown));
	assert_string_equal(shown, again);
}

static void test_good(void **state)
{
	good("tcp://collector-1", "collector-1", HR_WIRE_PORT, "tcp://collector-1:4747");
	good("tcp://collector-1.example:80", "collector-1.example", 80,
	     "tcp://collector-1.example:80");
	good("tcp://10.0.0.1:0", "10.0.0.1", 0, "tcp://10.0.0.1:0");
	good("tcp://[::1]", "::1", HR_WIRE_PORT, "tcp://[::1]:4747");
	good("tcp://[fe80::1%eth0]:65535", "fe80::1%eth0", 65535, "tcp://[fe80::1%eth0]:65535");
	good("unix:///run/headrace/c.sock", "/run/headrace/c.sock", 0,
	     "unix:///run/headrace/c.sock");
}

static void test_bad(void **state)
{
	static const char *const bad[] = {"",
					  "tcp://",
					  "tcp://:4747",
					  "tcp://h:",
					  "tcp://h:65536",
					  "tcp://h:4 7",
					  "tcp://h:4747/",
					  "tcp://::1:47",
					  "tcp://[::1",
					  "tcp://[::1]4747",
					  "tcp://[]:47",
					  "tcp://a b:4747",
					  "tcp://u@h:474",
					  "unix://relative",
					  "unix:///",
					  "http://h",
					  "host:4747",
					  "tcp:/h",
					  "tcp://h:-1",
					  "tcp://h\n"};
	struct hr_address a = {.port = 7};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(hr_address_parse(bad[i], &a), -EINVAL);
	assert_int_equal(a.port, 7); /* untouched */
	assert_false(hr_address_is("./store"));
	assert_false(hr_address_is("tcp:host"));
}

static void test_long(void **state)
{
	char text[600] = "tcp://";
	struct hr_address a;

	memset(text + 6, 'h', 255);
	assert_int_equal(hr_address_parse(text, &a), 0);
	text[6 + 255] = 'h';
	assert_int_equal(hr_address_parse(text, &a), -EINVAL);
}

static void test_list(void **state)
{
	struct hr_address a[2];
	size_t n = 9;

	assert_int_equal(hr_address_parse_list("tcp://one, unix:///two", a, 2, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(a[0].host, "one");
	assert_string_equal(a[1].host, "/two");
	assert_int_equal(hr_address_parse_list("tcp://one,tcp://two,tcp://three", a, 2, &n),
			 -E2BIG);
	assert_int_equal(hr_address_parse_list("tcp://one,", a, 2, &n), -EINVAL);
	assert_int_equal(hr_address_parse_list("", a, 2, &n), -EINVAL);
	assert_int_equal(n, 2);
}

static void shows(const char *address, const char *text, bool loopback)
{
	struct sockaddr_storage s[4];
	struct hr_address a;
	char shown[80];
	size_t n;

	assert_int_equal(hr_address_parse(address, &a), 0);
	assert_int_equal(hr_address_resolve(&a, false, s, 4, &n), 0);
	assert_int_equal(n, 1);
	hr_sockaddr_text(&s[0], shown, sizeof(shown));
	assert_string_equal(shown, text);
	assert_int_equal(hr_sockaddr_loopback(&s[0]), loopback);
}

static void test_resolve(void **state)
{
	struct sockaddr_storage s;
	struct hr_address a = {.local = true};
	size_t n = 9;

	shows("tcp://10.0.0.1", "10.0.0.1:4747", false);
	shows("tcp://127.8.8.8:5", "127.8.8.8:5", true);
	shows("tcp://[::1]:5", "[::1]:5", true);
	shows("tcp://[::ffff:127.0.0.1]:5", "127.0.0.1:5", true);
	shows("tcp://[::ffff:10.0.0.1]:5", "10.0.0.1:5", false);
	shows("tcp://[2001:db8::1]:5", "[2001:db8::1]:5", false);
	shows("unix:///x", "local", true);
	memset(a.host, 'x', 200);
	assert_int_equal(hr_address_resolve(&a, false, &s, 1, &n), -ENAMETOOLONG);
	assert_int_equal(n, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_long),    cmocka_unit_test(test_list),
	    cmocka_unit_test(test_resolve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
