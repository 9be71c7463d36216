/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"

struct config {
	char *store, *listen, *empty;
	uint64_t memory, age, sessions;
	bool munge;
	unsigned plain;
};

#define KEY(field) offsetof(struct config, field)
static const struct hr_config_key keys[] = {
    {"store", HR_CONFIG_TEXT, false, KEY(store), "FOLDER", NULL, "Where the streams are kept.",
     NULL},
    {"listen", HR_CONFIG_LIST, false, KEY(listen), "ADDRESS", "tcp://127.0.0.1:4747",
     "Where connections are taken, on this machine alone where nothing else is said, because who "
     "comes over plain TCP can be "
     "anybody.",
     NULL},
    {"empty", HR_CONFIG_TEXT, false, KEY(empty), "A-VALUE-WITH-A-LONG-NAME", "", "Nothing.", NULL},
    {"query_memory", HR_CONFIG_BYTES, false, KEY(memory), "SIZE", "4GiB", "Of one query.", NULL},
    {"retention_age", HR_CONFIG_DURATION, false, KEY(age), "TIME", "0", "Older frames go.", NULL},
    {"sessions", HR_CONFIG_NUMBER, false, KEY(sessions), "N", "7", "At once.", NULL},
    {"munge", HR_CONFIG_FLAG, false, KEY(munge), NULL, "no", "Whether credentials are asked for.",
     NULL},
    {"plain", HR_CONFIG_CHOICE, false, KEY(plain), NULL, "loopback", "Who may come without TLS.",
     "no loopback yes"},
};
#define N (sizeof(keys) / sizeof(keys[0]))

static void begin(struct config *c)
{
	memset(c, 0x5a, sizeof(*c));
	assert_int_equal(hr_config_init(keys, N, c), 0);
}

static void test_defaults(void **state)
{
	struct config c;

	begin(&c);
	assert_null(c.store);
	assert_string_equal(c.listen, "tcp://127.0.0.1:4747");
	assert_string_equal(c.empty, "");
	assert_true(c.memory == UINT64_C(4) << 30);
	assert_int_equal(c.age, 0);
	assert_int_equal(c.sessions, 7);
	assert_false(c.munge);
	assert_int_equal(c.plain, 1);
	hr_config_done(keys, N, &c);
	assert_null(c.listen);
}

static void test_mistakes_in_the_table(void **state)
{
	struct hr_config_key bad[2];
	struct config c;

	memcpy(bad, keys + 1, sizeof(bad));
	bad[1] = keys[3];
	bad[1].otherwise = "much";
	assert_int_equal(hr_config_init(bad, 2, &c), -EINVAL);
	bad[1] = keys[7];
	bad[1].choices = NULL;
	assert_int_equal(hr_config_init(bad, 2, &c), -EINVAL);
}

static unsigned warnings;
static char warned[200];

static void warn(const char *text)
{
	warnings++;
	snprintf(warned, sizeof(warned), "%s", text);
}

/* *ret_error without the name of the file. */
static int read_text(struct config *c, const char *text, size_t bytes, bool forgiving,
		     char **ret_error)
{
	char path[] = "/tmp/headrace-config-XXXXXX", *error = NULL;
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	close(fd);
	r = hr_config_file(keys, N, c, path, forgiving ? warn : NULL, &error);
	unlink(path);
	*ret_error = NULL;
	if (error) {
		assert_int_equal(strncmp(error, path, strlen(path)), 0);
		*ret_error = strdup(error + strlen(path));
		free(error);
	}
	return r;
}

static void good(struct config *c, const char *text)
{
	char *error;

	assert_int_equal(read_text(c, text, strlen(text), false, &error), 0);
	assert_null(error);
	free(error);
}

static void bad(const char *text, const char *says)
{
	struct config c;
	char *error;

	begin(&c);
	assert_int_equal(read_text(&c, text, strlen(text), false, &error), -EINVAL);
	assert_non_null(error);
	assert_string_equal(error, says);
	free(error);
	hr_config_done(keys, N, &c);
}

static void test_file(void **state)
{
	struct config c;

	begin(&c);
	good(&c, "# a comment\n"
		 "\n"
		 "store = /srv/with blanks  # and a comment\n"
		 "  listen=tcp://one#1 \t\r\n"
		 "listen = \"tcp://two # three\" # four\n"
		 "query_memory = 512MB\n"
		 "retention_age = 30d\n"
		 "sessions = 12\n"
		 "munge = yes\n"
		 "plain = yes");
	assert_string_equal(c.store, "/srv/with blanks");
	assert_string_equal(c.listen, "tcp://one#1,tcp://two # three");
	assert_true(c.memory == 512u << 20);
	assert_true(c.age == UINT64_C(30) * 86400 * 1000);
	assert_int_equal(c.sessions, 12);
	assert_true(c.munge);
	assert_int_equal(c.plain, 2);
	good(&c, "store =\nretention_age = 100us\nmunge = off\n");
	assert_string_equal(c.store, "");
	assert_int_equal(c.age, 1); /* not none */
	assert_false(c.munge);
	hr_config_done(keys, N, &c);
}

static void test_mistakes(void **state)
{
	struct config c;
	char *error;

	bad("\n\nretention_agee = 30d\n", ":3: unknown key 'retention_agee'");
	bad("# 1\nretention_age = 30x\n", ":2: retention_age: '30x' is not a time with a unit, for "
					  "example 500ms, 30s, 5m, 12h or 30d");
	bad("retention_age = 30", ":1: retention_age: '30' is not a time with a unit, for example "
				  "500ms, 30s, 5m, 12h or 30d");
	bad("query_memory =",
	    ":1: query_memory: '' is not a size, for example 4096, 512MB or 10GiB");
	bad("query_memory = 99999999T", ":1: query_memory: '99999999T' is too large");
	bad("sessions = -1", ":1: sessions: '-1' is not a whole number");
	bad("sessions = 99999999999999999999", ":1: sessions: '99999999999999999999' is too large");
	bad("munge = maybe", ":1: munge: 'maybe' is not yes or no");
	bad("plain = loop", ":1: plain: 'loop' is not one of: no loopback yes");
	bad("store = a\nlisten = b\nlisten = c\nstore = d\n", ":4: store is already set in line 1");
	bad("store /srv", ":1: 'store /srv' is not KEY = VALUE");
	bad("[section]\n", ":1: '[section]' is not KEY = VALUE");
	bad("store = \"/srv", ":1: store: a closing quote is missing");
	bad("store = \"/srv\" /x", ":1: store: a closing quote is missing");
	begin(&c);
	assert_int_equal(read_text(&c, "store = a\0b\nmunge = yes\n", 24, false, &error), -EINVAL);
	assert_string_equal(error, ":1: the line contains a zero byte");
	free(error);
	assert_true(c.munge); /* what stands beside it counts */
	assert_int_equal(hr_config_file(keys, N, &c, "/nonexistent", NULL, &error), -ENOENT);
	assert_string_equal(error, "cannot read /nonexistent: No such file or directory");
	free(error);
	assert_int_equal(hr_config_file(keys, N, &c, "/tmp", NULL, &error), -EIO);
	free(error);
	hr_config_done(keys, N, &c);
}

/* Each is said, with its line. */
static void test_many_mistakes(void **state)
{
	char path[] = "/tmp/headrace-config-XXXXXX", says[512], *error = NULL;
	static const char text[] = "stroe = a\nplain = maybe\nsessions = 3\nmunge\n";
	int fd = mkstemp(path);
	struct config c;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	begin(&c);
	assert_int_equal(hr_config_file(keys, N, &c, path, NULL, &error), -EINVAL);
	unlink(path);
	snprintf(says, sizeof(says),
		 "%s:1: unknown key 'stroe'\n%s:2: plain: 'maybe' is not one of: no loopback yes\n"
		 "%s:4: 'munge' is not KEY = VALUE",
		 path, path, path);
	assert_string_equal(error, says);
	free(error);
	assert_int_equal(c.sessions, 3);
	hr_config_done(keys, N, &c);
}

static void test_unknown_keys_of_another_version(void **state)
{
	const char text[] = "new_one = 1\nstore = a\nnew_two = 2\n";
	struct config c;
	char *error;

	begin(&c);
	warnings = 0;
	assert_int_equal(read_text(&c, text, strlen(text), true, &error), 0);
	free(error);
	assert_int_equal(warnings, 2);
	assert_non_null(strstr(warned, ":3: unknown key 'new_two'"));
	assert_string_equal(c.store, "a");
	hr_config_done(keys, N, &c);
}

static int flags(struct config *c, int argc, char **argv, int *i, char **error)
{
	int r = 0;

	*error = NULL;
	for (*i = 0; *i < argc && r == 0;)
		r = hr_config_flag(keys, N, c, argc, argv, i, error);
	return r;
}

static void test_flags(void **state)
{
	char *argv[] = {"--store", "/a",	 "--listen=unix:///x", "--listen", "tcp://h",
			"--munge", "--plain=no", "--retention-age",    "5m",	   "--store=/b=c",
			"tail"};
	struct config c;
	char *error;
	int i;

	begin(&c);
	good(&c, "listen = tcp://file\nretention_age = 1h\nsessions = 3\n");
	assert_int_equal(flags(&c, 11, argv, &i, &error), -ENOENT);
	assert_int_equal(i, 10);
	assert_null(error);
	assert_string_equal(c.store, "/b=c");
	assert_string_equal(c.listen, "unix:///x,tcp://h"); /* in the place of the file's */
	assert_true(c.munge);
	assert_int_equal(c.plain, 0);
	assert_int_equal(c.age, 300000);
	assert_int_equal(c.sessions, 3);
	hr_config_done(keys, N, &c);
}

/* A reload: fixed keys keep their values, which is reported; the others change. */
static void test_fixed_keys_stay(void **state)
{
	struct hr_config_key some[N];
	struct config old, fresh;

	memcpy(some, keys, sizeof(some));
	for (size_t k = 0; k < N; k++)
		some[k].fixed = strcmp(some[k].name, "plain") != 0 &&
				strcmp(some[k].name, "retention_age") != 0;
	begin(&old);
	begin(&fresh);
	good(&old, "store = /a\nsessions = 1\nplain = no\nretention_age = 1h\n");
	good(&fresh, "store = /b\nsessions = 2\nplain = yes\nretention_age = 2h\n");
	warnings = 0;
	hr_config_keep_fixed(some, N, &old, &fresh, warn);
	assert_int_equal(warnings, 2);
	assert_string_equal(warned, "sessions: the change needs a restart");
	assert_string_equal(fresh.store, "/a");
	assert_string_equal(old.store, "/b"); /* each text has one owner */
	assert_int_equal(fresh.sessions, 1);
	assert_int_equal(fresh.plain, 2);
	assert_int_equal(fresh.age, 7200000);
	hr_config_done(keys, N, &old);
	hr_config_done(keys, N, &fresh);
}

static void bad_flag(char *word, const char *says)
{
	struct config c;
	char *error;
	int i;

	begin(&c);
	assert_int_equal(flags(&c, 1, &word, &i, &error), -EINVAL);
	assert_int_equal(i, 0);
	assert_string_equal(error, says);
	free(error);
	hr_config_done(keys, N, &c);
}

static void test_mistakes_in_flags(void **state)
{
	char *unknown[] = {"--stor", "--store_", "-s", "store", "--", "", "--retention_age=1d"};
	struct config c;
	char *error;

	bad_flag("--store", "--store needs a text");
	bad_flag(
	    "--retention-age",
	    "--retention-age needs a time with a unit, for example 500ms, 30s, 5m, 12h or 30d");
	bad_flag("--retention-age=x", "--retention-age: 'x' is not a time with a unit, for example "
				      "500ms, 30s, 5m, 12h or 30d");
	bad_flag("--munge=2", "--munge: '2' is not yes or no");
	begin(&c);
	for (size_t k = 0; k < sizeof(unknown) / sizeof(unknown[0]); k++) {
		int i = 0;

		assert_int_equal(hr_config_flag(keys, N, &c, 1, &unknown[k], &i, &error), -ENOENT);
	}
	hr_config_done(keys, N, &c);
}

static char *printed(void (*print)(const struct hr_config_key *, size_t, FILE *))
{
	char *text;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	print(keys, N, to);
	fclose(to);
	return text;
}

static void test_help(void **state)
{
	char *text = printed(hr_config_help);

	assert_string_equal(
	    text, "  --store FOLDER           Where the streams are kept.\n"
		  "  --listen ADDRESS         Where connections are taken, on this machine alone "
		  "where nothing else is\n"
		  "                           said, because who comes over plain TCP can be "
		  "anybody. (default:\n"
		  "                           tcp://127.0.0.1:4747)\n"
		  "  --empty A-VALUE-WITH-A-LONG-NAME\n"
		  "                           Nothing.\n"
		  "  --query-memory SIZE      Of one query. (default: 4GiB)\n"
		  "  --retention-age TIME     Older frames go. (default: 0)\n"
		  "  --sessions N             At once. (default: 7)\n"
		  "  --munge                  Whether credentials are asked for. (default: no)\n"
		  "  --plain no|loopback|yes  Who may come without TLS. (default: loopback)\n");
	free(text);
}

static void print_man(const struct hr_config_key *of, size_t n, FILE *to)
{
	hr_config_man(of, n, true, to);
}

static void test_man(void **state)
{
	char *text = printed(print_man);

	assert_non_null(strstr(text, ".TP\n\\fB\\-\\-retention\\-age\\fR \\fITIME\\fR, "
				     "\\fBretention_age\\fR in the file\n"
				     "Older frames go. (default: 0)\n"));
	assert_non_null(strstr(text, "\\fB\\-\\-munge\\fR, \\fBmunge\\fR in the file\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_mistakes_in_the_table),
	    cmocka_unit_test(test_file),
	    cmocka_unit_test(test_mistakes),
	    cmocka_unit_test(test_many_mistakes),
	    cmocka_unit_test(test_unknown_keys_of_another_version),
	    cmocka_unit_test(test_flags),
	    cmocka_unit_test(test_fixed_keys_stay),
	    cmocka_unit_test(test_mistakes_in_flags),
	    cmocka_unit_test(test_help),
	    cmocka_unit_test(test_man),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
