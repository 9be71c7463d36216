/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_munge.c - MUNGE credentials, with a munged of our own
 */
#include "net/munge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/munge_api.h"
#include "tests/unit.h"

/* The real prototypes and numbers, where the header is. */
#if __has_include(<munge.h>)
#include <munge.h>
#define HR_MUNGE(ret, name, params)                                                                \
	_Static_assert(__builtin_types_compatible_p(__typeof__(munge_##name), ret params),         \
		       "munge_" #name);
#include "net/munge_api.def"
#undef HR_MUNGE
_Static_assert((unsigned)EMUNGE_SUCCESS == HR_EMUNGE_SUCCESS, "success");
_Static_assert((unsigned)EMUNGE_NO_MEMORY == HR_EMUNGE_NO_MEMORY, "memory");
_Static_assert((unsigned)EMUNGE_SOCKET == HR_EMUNGE_SOCKET, "socket");
_Static_assert((int)MUNGE_OPT_SOCKET == HR_MUNGE_OPT_SOCKET, "option");
#endif

static char folder[] = "/tmp/headrace-munge-XXXXXX";
static char socket_path[64];
static pid_t munged;

/* The file `name` of our folder, as an option. */
static char *option(const char *name)
{
	char *text;

	assert_true(asprintf(&text, "--%s-file=%s/%s", name, folder, name) > 0);
	return text;
}

static void write_key(void)
{
	char path[64];
	uint8_t key[128];
	int fd;

	snprintf(path, sizeof(path), "%s/key", folder);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 37);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, key, sizeof(key)), sizeof(key));
	close(fd);
}

static int begin_all(void **state)
{
	static const char *const files[] = {"key", "pid", "log", "seed"};
	char *argv[9] = {"munged", "--foreground", "--force"};
	struct stat st;

	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < 4; i++)
		argv[3 + i] = option(files[i]);
	assert_int_equal(chmod(folder, 0755), 0);
	write_key();
	snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
	assert_true(asprintf(&argv[7], "--socket=%s", socket_path) > 0);
	munged = fork();
	assert_true(munged >= 0);
	if (munged == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execv("/usr/sbin/munged", argv);
		_exit(127);
	}
	for (unsigned i = 3; i < 8; i++)
		free(argv[i]);
	for (unsigned i = 0; i < 30000 && stat(socket_path, &st) < 0; i++)
		usleep(10000);
	return stat(socket_path, &st);
}

static int end_all(void **state)
{
	char command[96];

	kill(munged, SIGTERM);
	waitpid(munged, NULL, 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void test_whose(void **state)
{
	char *credential = NULL, *error = NULL;
	uint32_t uid = 77, gid = 77;

	assert_int_equal(hr_munge_encode(socket_path, &credential, &error), 0);
	assert_null(error);
	assert_int_equal(strncmp(credential, "MUNGE:", 6), 0);
	assert_int_equal(hr_munge_decode(socket_path, credential, &uid, &gid, &error), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(gid, getegid());
	/* Whoever caught it on its way cannot use it again. */
	uid = 77;
	assert_int_equal(hr_munge_decode(socket_path, credential, &uid, &gid, &error), -EACCES);
	assert_int_equal(uid, 77);
	assert_non_null(strstr(error, "Replayed"));
	free(error);
	free(credential);
}

static void test_of_another_user(void **state)
{
	char credential[4096] = "", *error = NULL;
	uint32_t uid = 0, gid = 0;
	int pipe_fds[2];
	pid_t child;

	if (geteuid() != 0) {
		printf("SKIPPED test_of_another_user: only root can be another user\n");
		skip();
	}
	assert_int_equal(pipe(pipe_fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char *text;

		_exit(setgid(23456) < 0 || setuid(12345) < 0 ||
		      hr_munge_encode(socket_path, &text, &error) < 0 ||
		      write(pipe_fds[1], text, strlen(text)) < 0);
	}
	waitpid(child, NULL, 0);
	assert_true(read(pipe_fds[0], credential, sizeof(credential) - 1) > 0);
	assert_int_equal(hr_munge_decode(socket_path, credential, &uid, &gid, &error), 0);
	assert_int_equal(uid, 12345);
	assert_int_equal(gid, 23456);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void refused(const char *credential, int error, const char *says)
{
	uint32_t uid = 77, gid;
	char *text = NULL;

	assert_int_equal(hr_munge_decode(socket_path, credential, &uid, &gid, &text), error);
	assert_int_equal(uid, 77);
	assert_non_null(text);
	if (!strstr(text, says))
		assert_string_equal(text, says);
	free(text);
}

static void test_not_good(void **state)
{
	struct munge_ctx *ctx;
	char *credential = NULL, *error = NULL;

	refused("", -EACCES, "MUNGE: ");
	refused("hello", -EACCES, "MUNGE: ");
	assert_int_equal(hr_munge_encode(socket_path, &credential, &error), 0);
	credential[40] = credential[40] == 'A' ? 'B' : 'A';
	refused(credential, -EACCES, "MUNGE: ");
	free(credential);
	/* One that some other service was shown. */
	ctx = hr_munge.ctx_create();
	assert_int_equal(hr_munge.ctx_set(ctx, HR_MUNGE_OPT_SOCKET, socket_path), 0);
	assert_int_equal(hr_munge.encode(&credential, ctx, NULL, 0), 0);
	hr_munge.ctx_destroy(ctx);
	refused(credential, -EACCES, "is for another service");
	free(credential);
}

static void test_no_munged(void **state)
{
	char *credential, *error = NULL;
	uint32_t uid, gid;

	assert_int_equal(hr_munge_encode("/nonexistent/munge", &credential, &error), -ECONNREFUSED);
	assert_non_null(strstr(error, "munged does not answer"));
	assert_non_null(strstr(error, "/nonexistent/munge"));
	free(error);
	assert_int_equal(hr_munge_decode("/nonexistent/munge", "MUNGE:", &uid, &gid, &error),
			 -ECONNREFUSED);
	free(error);
}

/* Before anything has loaded it. */
static void test_no_library(void **state)
{
	char *error = NULL;

	assert_int_equal(hr_munge_load("libmunge-of-nobody.so.2", &error), -ENOENT);
	assert_non_null(strstr(error, "libmunge-of-nobody.so.2"));
	free(error);
	assert_int_equal(hr_munge_load("libc.so.6", &error), -ELIBACC);
	assert_string_equal(error, "libc.so.6 lacks munge_ctx_create");
	free(error);
}

int main(void)
{
	const struct CMUnitTest library[] = {cmocka_unit_test(test_no_library)};
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whose),
	    cmocka_unit_test(test_of_another_user),
	    cmocka_unit_test(test_not_good),
	    cmocka_unit_test(test_no_munged),
	};
	int failed = cmocka_run_group_tests(library, NULL, NULL);

	if (access("/usr/sbin/munged", X_OK) < 0) {
		printf("SKIPPED test_munge: munged is not installed\n");
		return failed ? failed : 77;
	}
	return failed + cmocka_run_group_tests(tests, begin_all, end_all);
}
