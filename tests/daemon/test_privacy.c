/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/privacy.h"
#include "tests/unit.h"

static const struct hr_privacy_rules hashed = {.paths = HR_PATHS_HASH, .keep = 2, .key = "one"};
static const struct hr_privacy_rules other = {.paths = HR_PATHS_HASH, .keep = 2, .key = "other"};
static const struct hr_privacy_rules shortened = {.paths = HR_PATHS_CUT, .keep = 2, .key = "one"};

/* The path as it is kept, in a block of just the room that is promised: valgrind and ASan see one byte more. */
static char *kept(struct hr_privacy *p, const char *path)
{
	size_t bytes = strlen(path), room = hr_privacy_room(bytes), n;
	uint8_t *out = malloc(room);
	char *text;

	assert_non_null(out);
	n = hr_privacy_path(p, (const uint8_t *)path, bytes, out);
	assert_true(n <= room);
	text = strndup((char *)out, n);
	assert_non_null(text);
	free(out);
	return text;
}

static void assert_kept(struct hr_privacy *p, const char *path, const char *want)
{
	char *text = kept(p, path);

	assert_string_equal(text, want);
	free(text);
}

static void test_cut(void **state)
{
	struct hr_privacy *p = hr_privacy_new(&shortened);

	assert_non_null(p);
	assert_kept(p, "/gpfs/alice/imagenet/train/n015.tar", "/gpfs/alice/+.tar");
	assert_kept(p, "/gpfs/alice/imagenet/train/.secret", "/gpfs/alice/+");
	assert_kept(p, "/gpfs/alice/dir.d/name", "/gpfs/alice/+");
	assert_kept(p, "/gpfs/alice/x.123", "/gpfs/alice/+");
	assert_kept(p, "/gpfs/alice/x.toolongtobeone", "/gpfs/alice/+");
	assert_kept(p, "/gpfs/alice", "/gpfs/alice");
	assert_kept(p, "//gpfs//alice//x", "//gpfs//alice//+");
	assert_kept(p, "/", "/");
	assert_kept(p, "memfd:secret", "+");
	assert_kept(p, "secret/usr/bin/x.sh", "+.sh");
	assert_kept(p, "", "");
	hr_privacy_free(p);
}

static void test_hash(void **state)
{
	struct hr_privacy *p = hr_privacy_new(&hashed), *q = hr_privacy_new(&other);
	char *a = kept(p, "/gpfs/alice/set/n015.tar"), *b = kept(p, "/gpfs/alice/set/n016.tar");
	char *c = kept(q, "/gpfs/alice/set/n015.tar"), *again = kept(p, "/gpfs/alice/set/n015.tar");

	assert_int_equal(strlen(a), strlen("/gpfs/alice/01234567/01234567.tar"));
	assert_memory_equal(a, "/gpfs/alice/", 12);
	assert_null(strstr(a, "n015"));
	assert_null(strstr(a, "set"));
	assert_string_equal(a + strlen(a) - 4, ".tar");
	assert_string_equal(a, again);
	assert_memory_equal(a, b, 21); /* the same folder */
	assert_string_not_equal(a, b);
	assert_string_not_equal(a, c); /* another key */
	assert_int_equal(hr_privacy_hash(p, 7), hr_privacy_hash(p, 7));
	assert_int_not_equal(hr_privacy_hash(p, 7), hr_privacy_hash(p, 8));
	assert_int_not_equal(hr_privacy_hash(p, 7), hr_privacy_hash(q, 7));
	assert_int_not_equal(hr_privacy_hash(p, 7), 7);
	free(a);
	free(b);
	free(c);
	free(again);
	hr_privacy_free(p);
	hr_privacy_free(q);
}

/* Nothing but one-letter components: the longest that pseudonyms can make of a path. */
static void test_room(void **state)
{
	struct hr_privacy_rules all = {.paths = HR_PATHS_HASH};
	struct hr_privacy *p = hr_privacy_new(&all);
	char path[4097];

	for (size_t n = 0; n < 40; n++) {
		memset(path, 'a', n);
		path[n] = '\0';
		free(kept(p, path));
		for (size_t i = 0; i < n; i += 2)
			path[i] = '/';
		free(kept(p, path));
		for (size_t i = 0; i < n; i++)
			path[i] = i % 2 ? '/' : 'a';
		free(kept(p, path));
	}
	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 ? '/' : 'a';
	path[sizeof(path) - 1] = '\0';
	free(kept(p, path));
	hr_privacy_free(p);
}

static void test_command(void **state)
{
	static const char line[] = "python3 train.py --token=secret";
	struct hr_privacy_rules rules = {.commands = HR_COMMANDS_PROGRAM};
	struct hr_privacy *p = hr_privacy_new(&rules);
	const uint8_t *bytes = (const uint8_t *)line;

	assert_int_equal(hr_privacy_command(p, bytes, sizeof(line) - 1), strlen("python3"));
	assert_int_equal(hr_privacy_command(p, bytes, 3), 3);
	hr_privacy_free(p);
	rules.commands = HR_COMMANDS_NONE;
	p = hr_privacy_new(&rules);
	assert_int_equal(hr_privacy_command(p, bytes, sizeof(line) - 1), 0);
	assert_kept(p, "/a/path", "/a/path");
	assert_int_equal(hr_privacy_hash(p, 7), 7);
	hr_privacy_free(p);
}

static void test_key(void **state)
{
	char name[] = "/tmp/headrace-key-XXXXXX", *error = NULL;
	uint8_t one[32], two[32];
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "fifteen bytes..", 15), 15);
	assert_int_equal(hr_privacy_key(name, one, &error), 0);
	assert_non_null(strstr(error, "the key must have at least 16 bytes"));
	free(error);
	error = NULL;
	assert_int_equal(hr_privacy_key("/nowhere/key", two, &error), 0);
	assert_string_equal(error,
			    "privacy_key: cannot read /nowhere/key: No such file or directory");
	assert_memory_not_equal(one, two, sizeof(one)); /* random, both */
	free(error);
	error = NULL;
	assert_int_equal(write(fd, "!", 1), 1);
	close(fd);
	assert_int_equal(hr_privacy_key(name, one, &error), 0);
	assert_int_equal(hr_privacy_key(name, two, &error), 0);
	assert_null(error);
	assert_memory_equal(one, two, sizeof(one));
	unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),	 cmocka_unit_test(test_hash),
	    cmocka_unit_test(test_room), cmocka_unit_test(test_command),
	    cmocka_unit_test(test_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
