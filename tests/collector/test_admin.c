/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator does with a collector beside letting it run. */
#include "tests/collector/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[2048], store_path[2100], log_path[2100];

static int setup(void **state)
{
	int r = help_setup(state);

	snprintf(folder, sizeof(folder), "%s", help_path(state, ""));
	snprintf(store_path, sizeof(store_path), "%sstore", folder);
	snprintf(log_path, sizeof(log_path), "%slog", folder);
	return r;
}

/* ---- --check-config -------------------------------------------------------------------------- */

/* A configuration in which FOLDER stands for the test's. Returns the exit status. */
static int check(struct collector *c, const char *text)
{
	char path[2100], conf[8192];
	size_t n = 0;

	snprintf(path, sizeof(path), "%sconf", folder);
	snprintf(c->log, sizeof(c->log), "%s", log_path);
	for (const char *at = text; *at && n + sizeof(folder) < sizeof(conf); at++) {
		if (strncmp(at, "FOLDER/", 7) == 0) {
			n += (size_t)snprintf(conf + n, sizeof(conf) - n, "%s", folder);
			at += 6;
		} else {
			conf[n++] = *at;
		}
	}
	help_write(path, (const uint8_t *)conf, n);
	return collector_run(store_path, log_path, "--check-config", "--config", path, NULL);
}

static void test_check_says_all(void **state)
{
	static const char *const says[] = {
	    "conf:1: there is no key 'stroe'",
	    "conf:3: plain: 'maybe' is none of",
	    "max_frame <= window <= memory",
	    "tls_cert: cannot read ",
	    "tls_ca: cannot read ",
	    "operators: there is no group headrace-nobody-has-this",
	    "query_spill: cannot make or use ",
	    "munge: ",
	};
	struct collector c;

	(void)state;
	assert_int_equal(check(&c, "stroe = a\nwindow = 1KiB\nplain = maybe\n"
				   "tls_cert = FOLDER/none\ntls_key = FOLDER/conf\n"
				   "tls_ca = FOLDER/none\n"
				   "operators = headrace-nobody-has-this\n"
				   "query_spill = FOLDER/no/where\n"
				   "munge = yes\nmunge_socket = FOLDER/none\n"),
			 2);
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!collector_said(&c, says[i]))
			fail_msg("not said: %s", says[i]);
	assert_int_equal(access(store_path, F_OK), -1); /* nothing was made */
}

/* The file is in order, what it names is not: another status. `says` NULL: all is well. */
static void checked(const char *conf, const char *says)
{
	struct collector c;

	assert_int_equal(check(&c, conf), says ? 1 : 0);
	if (says && !collector_said(&c, says))
		fail_msg("not said: %s", says);
}

static void test_check_surroundings(void **state)
{
	char file[2100];
	struct collector c;

	(void)state;
	snprintf(file, sizeof(file), "%sfile", folder);
	help_write(file, (const uint8_t *)"x", 1);
	assert_int_equal(chmod(file, 0600), 0);
	checked("operators = root\nquery_spill = FOLDER/spill\n", NULL);
	checked("tls_cert = FOLDER/file\ntls_key = FOLDER/file\ntls_ca = FOLDER/file\n",
		"holds no certificate in PEM");
	checked("query_spill = FOLDER/file\n", "query_spill: cannot make or use");
	assert_int_equal(collector_run(file, log_path, "--check-config", NULL), 1);
	assert_int_equal(collector_run(folder, log_path, "--check-config", NULL), 1);
	snprintf(c.log, sizeof(c.log), "%s", log_path);
	assert_true(collector_said(&c, "holds something else"));
	assert_int_equal(collector_run(store_path, log_path, "--check-config", "--listen",
				       "tcp://192.0.2.1,unix:///nowhere/here", NULL),
			 1);
	assert_true(collector_said(&c, "tcp://192.0.2.1:4747 is no address of this machine"));
	assert_true(collector_said(&c, "unix:///nowhere/here: No such file or directory"));
}

/* Beside the collector that runs with it a configuration is still good. */
static void test_check_while_it_runs(void **state)
{
	char log[2100];
	struct collector c;

	(void)state;
	snprintf(log, sizeof(log), "%srunning", folder);
	collector_start(&c, store_path, log, NULL);
	assert_int_equal(
	    collector_run(store_path, log_path, "--check-config", "--listen", c.address, NULL), 0);
	assert_int_equal(collector_stop(&c), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_check_says_all),
	    T(test_check_surroundings),
	    T(test_check_while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
