/* SPDX-License-Identifier: Apache-2.0 */
/* Where certificates are found: one rule for all who connect to a collector. */
#include "net/tls_find.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit.h"

static const char *const names[] = {"cert.pem", "key.pem", "ca.pem"};
static const char *const variables[] = {"HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY", "HEADRACE_TLS_CA"};
static char folder[] = "/tmp/headrace-tls-find-XXXXXX";
static const struct hr_tls_files no_flags = {0};

static void write_file(const char *dir, const char *name)
{
	char *path;
	FILE *f;

	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
	free(path);
}

/* The three in FOLDER/`below`, where they do not stop at the first `n`. */
static void write_files(const char *below, size_t n)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/%s", folder, below);
	for (char *slash = dir + sizeof(folder); (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(dir, 0700);
	}
	mkdir(dir, 0700);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && i < n; i++)
		write_file(dir, names[i]);
}

static void set_variables(const char *cert, const char *key, const char *ca)
{
	const char *values[] = {cert, key, ca};

	for (int i = 0; i < 3; i++)
		values[i] ? setenv(variables[i], values[i], 1) : unsetenv(variables[i]);
}

static void assert_found(const struct hr_tls_files *flags, const char *cert)
{
	struct hr_tls_paths p;
	char *error = NULL;

	if (hr_tls_find(flags, &p, &error) < 0)
		fail_msg("%s", error);
	if (cert) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", folder, cert);
		assert_string_equal(p.cert, path);
		assert_string_equal(strrchr(p.key, '/'), "/key.pem");
		assert_string_equal(strrchr(p.ca, '/'), "/ca.pem");
	} else {
		assert_true(!p.cert && !p.key && !p.ca);
	}
	hr_tls_paths_done(&p);
}

static void assert_refused(const struct hr_tls_files *flags, int result, const char *text)
{
	struct hr_tls_paths p;
	char *error = NULL;

	assert_int_equal(hr_tls_find(flags, &p, &error), result);
	if (!strstr(error, text))
		fail_msg("'%s' does not say '%s'", error, text);
	free(error);
}

static int setup(void **state)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	set_variables(NULL, NULL, NULL);
	if (!mkdtemp(folder) || chdir(folder) < 0)
		return -1;
	unsetenv("XDG_CONFIG_HOME");
	return setenv("HOME", folder, 1);
}

static int teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command); // NOLINT(cert-env33-c,concurrency-mt-unsafe)
}

static void test_order(void **state)
{
	const struct hr_tls_files flags = {"flags/cert.pem", "flags/key.pem", "flags/ca.pem"};
	char xdg[64];

	assert_found(&no_flags, NULL);
	write_files(".config/headrace/tls", 3);
	assert_found(&no_flags, ".config/headrace/tls/cert.pem");
	write_files("xdg/headrace/tls", 3);
	setenv("XDG_CONFIG_HOME", "relative", 1); /* not one, says its specification */
	assert_found(&no_flags, ".config/headrace/tls/cert.pem");
	snprintf(xdg, sizeof(xdg), "%s/xdg", folder);
	setenv("XDG_CONFIG_HOME", xdg, 1);
	assert_found(&no_flags, "xdg/headrace/tls/cert.pem");
	write_files("env", 3);
	set_variables("env/cert.pem", "env/key.pem", "env/ca.pem");
	assert_found(&no_flags, "env/cert.pem");
	write_files("flags", 3);
	assert_found(&flags, "flags/cert.pem");
}

static void test_plain(void **state)
{
	const struct hr_tls_files plain = {.cert = ""};

	write_files(".config/headrace/tls", 3);
	assert_found(&plain, NULL);
	set_variables(NULL, "", "");
	assert_found(&no_flags, ".config/headrace/tls/cert.pem");
	set_variables("", NULL, NULL);
	assert_found(&no_flags, NULL);
}

static void test_mistakes(void **state)
{
	const struct hr_tls_files half = {.ca = "env/ca.pem"};

	write_files(".config/headrace/tls", 1);
	assert_refused(&no_flags, -EINVAL, "headrace/tls/cert.pem, but not ");
	write_files("env", 3);
	set_variables("env/cert.pem", "env/key.pem", NULL);
	assert_refused(&no_flags, -EINVAL, "found HEADRACE_TLS_KEY, but not HEADRACE_TLS_CA");
	set_variables("env/cert.pem", "env/nosuch", "env/ca.pem");
	assert_refused(&no_flags, -ENOENT, "HEADRACE_TLS_KEY=env/nosuch: No such file");
	assert_refused(&half, -EINVAL, "found --tls-ca, but not ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
