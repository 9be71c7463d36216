/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator does with a collector beside letting it run. */
#include "tests/collector/client.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/stream_state.h"

static char folder[2048], store_path[2100];
static char log_path[2100], running_path[2100]; /* of what is run, and of the collector beside it */

static int setup(void **state)
{
	int r = help_setup(state);

	snprintf(folder, sizeof(folder), "%s", help_path(state, ""));
	snprintf(store_path, sizeof(store_path), "%sstore", folder);
	snprintf(log_path, sizeof(log_path), "%slog", folder);
	snprintf(running_path, sizeof(running_path), "%srunning", folder);
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
	    "conf:1: unknown key 'stroe'",
	    "conf:3: plain: 'maybe' is not one of",
	    "max_frame <= window <= memory",
	    "tls_cert: cannot read ",
	    "tls_ca: cannot read ",
	    "operators: no such group: headrace-nobody-has-this",
	    "query_spill: cannot create or use ",
	    "munge: ",
	};
	struct collector c;

	assert_int_equal(check(&c, "stroe = a\nwindow = 1KiB\nplain = maybe\n"
				   "tls_cert = FOLDER/none\ntls_key = FOLDER/conf\n"
				   "tls_ca = FOLDER/none\n"
				   "operators = headrace-nobody-has-this\n"
				   "query_spill = FOLDER/no/where\n"
				   "munge = yes\nmunge_socket = FOLDER/none\n"),
			 2);
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!collector_printed(&c, says[i]))
			fail_msg("not said: %s", says[i]);
	assert_int_equal(access(store_path, F_OK), -1); /* nothing was made */
}

/* The file is in order, what it names is not: another status. `says` NULL: all is well. */
static void checked(const char *conf, const char *says)
{
	struct collector c;

	assert_int_equal(check(&c, conf), says ? 1 : 0);
	if (says && !collector_printed(&c, says))
		fail_msg("not said: %s", says);
}

static void test_check_surroundings(void **state)
{
	char file[2100];
	struct collector c;

	snprintf(file, sizeof(file), "%sfile", folder);
	help_write(file, (const uint8_t *)"x", 1);
	assert_int_equal(chmod(file, 0600), 0);
	checked("operators = root\nquery_spill = FOLDER/spill\n", NULL);
	checked("tls_cert = FOLDER/file\ntls_key = FOLDER/file\ntls_ca = FOLDER/file\n",
		"contains no PEM certificate");
	checked("query_spill = FOLDER/file\n", "query_spill: cannot create or use");
	assert_int_equal(collector_run(file, log_path, "--check-config", NULL), 1);
	assert_int_equal(collector_run(folder, log_path, "--check-config", NULL), 1);
	snprintf(c.log, sizeof(c.log), "%s", log_path);
	assert_true(collector_printed(&c, "is not a headrace store, and not empty"));
	assert_int_equal(collector_run(store_path, log_path, "--check-config", "--listen",
				       "tcp://192.0.2.1,unix:///nowhere/here", NULL),
			 1);
	assert_true(
	    collector_printed(&c, "tcp://192.0.2.1:4747 is not an address of this machine"));
	assert_true(collector_printed(&c, "unix:///nowhere/here: No such file or directory"));
}

/* Beside the collector that runs with it a configuration is still good. */
static void test_check_while_it_runs(void **state)
{
	struct collector c;

	collector_start(&c, store_path, running_path, NULL);
	assert_int_equal(
	    collector_run(store_path, log_path, "--check-config", "--listen", c.address, NULL), 0);
	assert_int_equal(collector_stop(&c), 0);
}

/* ---- a collector with a job, and commands beside it ------------------------------------------- */

/* `headrace-collector NAME JOB --store STORE [EXTRA EXTRA]`: its exit status; what it says is in `log_path`. */
static int command(struct collector *c, const char *name, const char *job, const char *more,
		   const char *value)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execl(HEADRACE_COLLECTOR, HEADRACE_COLLECTOR, name, job, "--store", store_path,
		      more, value, NULL);
		_exit(127);
	}
	snprintf(c->log, sizeof(c->log), "%s", log_path);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A collector, and what it had of job 7 when it was started: n1 has ended after 5 frames, n2 stands at 4. */
static void start_configured(struct collector *c, const char *conf)
{
	struct client d;

	collector_start(c, store_path, running_path, NULL);
	client_join(&d, c->address, "n1");
	for (uint32_t channel = 1; channel <= 2; channel++) {
		client_open(&d, channel, "7", channel == 1 ? "n1" : "n2", 5);
		client_opened(&d, channel);
		client_use(&d, channel);
		client_losses(&d, 2, 4);
		client_acked(&d, channel, 4);
	}
	client_use(&d, 1);
	client_frame(&d, frame_end(5));
	client_acked(&d, 1, 5);
	client_done(&d);
	assert_int_equal(collector_stop(c), 0); /* else they are its own for another minute */
	collector_start(c, store_path, running_path, conf ? "--config" : NULL, conf, NULL);
}

static void start_with_job(struct collector *c)
{
	start_configured(c, NULL);
}

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

static void reload(struct collector *c, const char *text, const char *said)
{
	char path[2100];

	snprintf(path, sizeof(path), "%sconf", folder);
	help_write(path, (const uint8_t *)text, strlen(text));
	assert_int_equal(kill(c->pid, SIGHUP), 0);
	for (int i = 0; i < 30000 && !collector_printed(c, said); i++)
		usleep(10000);
	assert_true(collector_printed(c, said));
}

/* Rules of retention count at once, mistakes change nothing, what cannot change is said. */
static void test_reload(void **state)
{
	struct collector c, told;
	char path[2100];

	snprintf(path, sizeof(path), "%sconf", folder);
	help_write(path, (const uint8_t *)"# none\n", 7);
	start_configured(&c, path);
	assert_int_equal(command(&told, "close-job", "7", NULL, NULL), 0);
	usleep(20000); /* it is older than retention_age */
	reload(&c, "retention_age = old\n", "keeping the previous one");
	assert_true(collector_printed(&c, "retention_age: 'old' is not a time"));
	reload(&c, "retention_age = 1ms\nwindow = 64MiB\nnews = 1\n", "retention: removed 1 jobs");
	assert_true(collector_printed(&c, "window: the change needs a restart"));
	assert_true(collector_printed(&c, "conf:3: unknown key 'news'"));
	assert_int_equal(collector_stop(&c), 0);
}

/* ---- close-job, remove-job ------------------------------------------------------------------- */

static void read_state(const char *node, struct hr_stream_state *ret)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/jobs/7/%s.0000000000000001-0", store_path, node);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_read(fd, ret), 0);
	close(fd);
}

/* The stream of a node that is gone is closed; should it come back, it goes on. */
static void test_close(void **state)
{
	struct hr_stream_state s;
	struct collector c, told;
	struct client d;

	start_with_job(&c);
	assert_int_equal(command(&told, "close-job", "7", NULL, NULL), 0);
	assert_true(collector_printed(&told, "job 7, node n2: closed; last message on "));
	assert_false(collector_printed(&told, "n1"));
	read_state("n2", &s);
	assert_true(s.closed_ns > 0 && !s.connected && s.has_secret);
	assert_int_equal(command(&told, "close-job", "7", NULL, NULL), 0);
	assert_true(collector_printed(&told, "nothing to close"));
	client_join(&d, c.address, "n2");
	client_open(&d, 1, "7", "n2", 5);
	assert_int_equal(client_opened(&d, 1), 4);
	read_state("n2", &s);
	assert_true(s.closed_ns == 0 && s.connected);
	assert_int_equal(command(&told, "close-job", "7", NULL, NULL), 1);
	assert_true(collector_printed(&told, "node n2: a daemon has it open"));
	assert_int_equal(command(&told, "close-job", "7", "--node", "n1"), 0);
	assert_true(collector_printed(&told, "job 7, node n1: nothing to close"));
	assert_int_equal(command(&told, "close-job", "7", "--node", "n3"), 1);
	assert_true(collector_printed(&told, "job '7' has no node 'n3'"));
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store_path, "7", "n2", 4);
}

/* The data goes and the marks stay, unless a daemon is there. */
static void test_remove(void **state)
{
	struct hr_stream_state s;
	struct collector c, told;
	struct client d;
	uint64_t last;

	start_with_job(&c);
	client_join(&d, c.address, "n2");
	client_open(&d, 1, "7", "n2", 5);
	assert_int_equal(client_opened(&d, 1), 4);
	assert_int_equal(command(&told, "remove-job", "7", NULL, NULL), 1);
	assert_true(collector_printed(&told, "cannot remove job 7: a daemon has it open"));
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	collector_start(&c, store_path, running_path, NULL);
	assert_int_equal(command(&told, "remove-job", "7", NULL, NULL), 0);
	assert_true(collector_printed(&told, "removed"));
	frames_first(store_path, "7", "n2", &last);
	assert_int_equal(last, 0);
	read_state("n1", &s);
	assert_true(s.retired && s.ended && s.retired_ns > 0 && s.mark == 5);
	client_join(&d, c.address, "n2");
	client_open(&d, 1, "7", "n2", 5);
	assert_int_equal(client_opened(&d, 1), 4);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
}

static void test_commands(void **state)
{
	struct hr_stream_state s;
	struct collector c, told;
	char path[4096], chown[4096];
	struct stat st;

	assert_int_equal(command(&told, "close-job", "7", NULL, NULL), 1);
	start_with_job(&c);
	assert_int_equal(collector_stop(&c), 0);
	assert_int_equal(command(&told, "close-job", "8", NULL, NULL), 1);
	assert_true(collector_printed(&told, "no job '8' in the store"));
	assert_int_equal(command(&told, "remove-job", "8", NULL, NULL), 1);
	assert_int_equal(command(&told, "remove-job", "--x", NULL, NULL), 2);
	assert_int_equal(command(&told, "remove-job", "7", "--node", "n1"), 2);
	if (getuid() != 0) {
		printf("SKIPPED a store of another user: not root\n");
		return;
	}
	snprintf(chown, sizeof(chown), "chown -R 65534:65534 %s", store_path);
	assert_int_equal(system(chown), 0); // NOLINT(cert-env33-c,concurrency-mt-unsafe)
	assert_int_equal(command(&told, "close-job", "7", "--node", "n2"), 0);
	read_state("n2", &s);
	assert_true(s.closed_ns > 0);
	snprintf(path, sizeof(path), "%s/jobs/7/n2.0000000000000001-0/state", store_path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 65534); /* the collector can read it */
}

/* ---- copies ----------------------------------------------------------------------------------- */

/* A copy made while frames come has each stream up to some frame; a collector that gets it goes on behind that. */
static void test_copy(void **state)
{
	char copy[2200], command_line[4400];
	const struct hr_stream *streams;
	struct hr_catalog *catalog;
	struct collector c;
	struct client d;
	uint64_t mark;
	size_t n;

	collector_start(&c, store_path, running_path, NULL);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_use(&d, 1);
	client_losses(&d, 2, 4);
	client_acked(&d, 1, 4);
	client_losses(&d, 5, 3000);
	snprintf(copy, sizeof(copy), "%scopy", folder);
	snprintf(command_line, sizeof(command_line), "cp -a %s %s", store_path, copy);
	assert_int_equal(system(command_line), 0); // NOLINT(cert-env33-c,concurrency-mt-unsafe)
	client_acked(&d, 1, 3000);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	assert_int_equal(hr_catalog_open((const char *const[]){copy}, 1, NULL, &catalog, NULL), 0);
	n = hr_catalog_streams(catalog, &streams);
	assert_int_equal(n, 1);
	mark = streams[0].last_seq;
	assert_true(mark >= 4 && streams[0].n_frames == mark);
	hr_catalog_free(catalog);
	collector_start(&c, copy, running_path, NULL);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	assert_int_equal(client_opened(&d, 1), mark);
	client_use(&d, 1);
	client_losses(&d, mark + 1, 3001);
	client_acked(&d, 1, 3001);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(copy, "7", "n1", 3001);
}

/* ---- who stays for nothing, and who opens a lot ------------------------------------------------ */

static void ask(struct client *d)
{
	Headrace__Query query = HEADRACE__QUERY__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT, *answer;
	char *words[] = {"jobs"};
	bool done;

	query.words = words;
	query.n_words = 1;
	query.format = "json";
	msg.body_case = HEADRACE__WIRE__BODY_QUERY;
	msg.query = &query;
	client_tell(d, &msg);
	do {
		answer = client_next(d);
		assert_non_null(answer);
		done = answer->body_case == HEADRACE__WIRE__BODY_DONE;
		headrace__wire__free_unpacked(answer, NULL);
	} while (!done);
}

/* It may ask again, but not sit there for ever. One that reads nothing may be a pager's. */
static void test_idle_client(void **state)
{
	struct client idle, mute;
	struct collector c;

	collector_start(&c, store_path, running_path, "--ping", "100ms", NULL);
	client_join(&mute, c.address, "");
	ask(&mute);
	mute.mute = true;
	client_join(&idle, c.address, ""); /* last: a query may take longer than it may be idle */
	ask(&idle);
	ask(&idle);
	client_expect_end(&idle);
	ask(&mute); /* is still there */
	client_done(&idle);
	client_done(&mute);
	assert_int_equal(collector_stop(&c), 0);
}

/* Numbers that share a list of the table, opened, used, closed and used again. */
static void test_many_channels(void **state)
{
	enum { N = 10, STEP = 256 };
	struct collector c;
	struct client d;
	char job[16];

	collector_start(&c, store_path, running_path, NULL);
	client_join(&d, c.address, "n1");
	for (uint32_t i = 0; i < N; i++) {
		snprintf(job, sizeof(job), "%u", i);
		client_open(&d, 1 + i * STEP, job, "n1", 5);
		assert_int_equal(client_opened(&d, 1 + i * STEP), 1);
	}
	for (uint32_t i = 0; i < N; i += 2)
		client_close(&d, 1 + i * STEP);
	client_open(&d, 1, "again", "n1", 5);
	assert_int_equal(client_opened(&d, 1), 1);
	for (uint32_t i = 1; i < N; i += 2) {
		client_use(&d, 1 + i * STEP);
		client_losses(&d, 2, 3);
		client_acked(&d, 1 + i * STEP, 3);
	}
	client_use(&d, 1 + 2 * STEP); /* closed: its frames are nobody's */
	client_losses(&d, 2, 3);
	client_use(&d, 1);
	client_losses(&d, 2, 2);
	client_acked(&d, 1, 2);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store_path, "9", "n1", 3);
	frames_check(store_path, "2", "n1", 1);
	frames_check(store_path, "again", "n1", 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_check_says_all),
	    T(test_check_surroundings),
	    T(test_check_while_it_runs),
	    T(test_reload),
	    T(test_close),
	    T(test_remove),
	    T(test_commands),
	    T(test_copy),
	    T(test_idle_client),
	    T(test_many_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
