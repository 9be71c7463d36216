/* SPDX-License-Identifier: Apache-2.0 */
/* A real headrace-collector over loopback: what a daemon and an administrator see of it. */
#include "tests/collector/client.h"
#include "tests/collector/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/now.h"
#include "store/stream_state.h"

#define STORE help_path(state, "store")
#define LOG   help_path(state, "log")

static char store_path[4096];

static void start(struct collector *c, void **state)
{
	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(c, store_path, LOG, NULL);
}

/* ---- exactly once ---------------------------------------------------------------------------- */

static void test_two_channels(void **state)
{
	struct collector c;
	struct client d;

	start(&c, state);
	client_join(&d, c.address, "n1");
	client_open(&d, 7, "a", "n1", 5);
	assert_int_equal(client_opened(&d, 7), 1);
	client_open(&d, 8, "b", "n1", 5);
	assert_int_equal(client_opened(&d, 8), 1);
	client_use(&d, 7);
	client_losses(&d, 2, 10);
	client_acked(&d, 7, 10);
	client_use(&d, 8);
	client_losses(&d, 2, 5);
	client_acked(&d, 8, 5);
	client_use(&d, 7);
	client_losses(&d, 9, 12);
	client_acked(&d, 7, 12);
	client_close(&d, 7);
	client_open(&d, 7, "a", "n1", 5);
	assert_int_equal(client_opened(&d, 7), 12);
	client_use(&d, 9); /* there is none: its frames are nobody's */
	client_losses(&d, 13, 13);
	client_use(&d, 7);
	client_losses(&d, 13, 13);
	client_acked(&d, 7, 13);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store_path, "a", "n1", 13);
	frames_check(store_path, "b", "n1", 5);
}

/* kill -9 anywhere between frames and their acknowledgements, again and again. */
static void test_kill(void **state)
{
	uint64_t sent = 1, acked = 1;
	struct collector c;
	struct client d;

	srandom(1);
	for (int round = 0; round < 20; round++) {
		uint64_t mark, more = 1 + (uint64_t)random() % 200;

		start(&c, state);
		client_join(&d, c.address, "n1");
		client_open(&d, 1, "7", "n1", 5);
		mark = client_opened(&d, 1);
		assert_true(mark >= acked && mark <= sent);
		client_use(&d, 1);
		client_losses(&d, mark + 1, mark + more);
		sent = mark + more;
		if (round % 2) {
			client_acked(&d, 1, sent);
			acked = sent;
		} else {
			usleep((useconds_t)random() % 3000);
		}
		collector_kill(&c);
		client_done(&d);
	}
	start(&c, state);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	acked = client_opened(&d, 1);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store_path, "7", "n1", acked);
}

/* What has come when SIGTERM does is stored and acknowledged; then everybody is told. */
static void test_term(void **state)
{
	struct collector c;
	Headrace__Wire *msg;
	struct client d;

	start(&c, state);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_use(&d, 1);
	client_losses(&d, 2, 50);
	client_acked(&d, 1, 50);
	assert_int_equal(collector_stop(&c), 0);
	msg = client_expect(&d, HEADRACE__WIRE__BODY_REFUSAL);
	assert_string_equal(msg->refusal->reason, "shutdown");
	headrace__wire__free_unpacked(msg, NULL);
	client_expect_end(&d);
	client_done(&d);
	frames_check(store_path, "7", "n1", 50);
}

static void test_takeover(void **state)
{
	struct client older, newer, thief;
	struct collector c;

	start(&c, state);
	client_join(&older, c.address, "n1");
	client_join(&newer, c.address, "n1");
	client_join(&thief, c.address, "n1");
	client_open(&older, 1, "7", "n1", 5);
	client_opened(&older, 1);
	client_open(&thief, 2, "7", "n1", 6);
	client_nacked(&thief, 2, "denied");
	assert_true(collector_printed(&c, "denied"));
	client_open(&newer, 3, "7", "n1", 5);
	assert_int_equal(client_opened(&newer, 3), 1);
	client_nacked(&older, 1, "in_use");
	client_use(&newer, 3);
	client_losses(&newer, 2, 3);
	client_acked(&newer, 3, 3);
	client_done(&older);
	client_done(&newer);
	client_done(&thief);
	assert_int_equal(collector_stop(&c), 0);
}

/* Each daemon may have its share of half of the memory in flight. */
static void test_windows(void **state)
{
	static const uint64_t shares[] = {8 << 20, 4 << 20, (8 << 20) / 3, 2 << 20};
	struct client d[4];
	struct collector c;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(&c, store_path, LOG, "--memory", "16MiB", "--window", "16MiB", NULL);
	for (unsigned i = 0; i < 4; i++) {
		client_join(&d[i], c.address, "n");
		assert_int_equal(d[i].window_bytes, shares[i]);
	}
	for (unsigned i = 0; i < 4; i++)
		client_done(&d[i]);
	assert_int_equal(collector_stop(&c), 0);
}

/* Daemons that send far more than fits: they wait, and nothing is lost. */
static void test_little_memory(void **state)
{
	struct client d[4];
	char node[8];
	struct collector c;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(&c, store_path, LOG, "--max-frame", "64KiB", "--window", "64KiB",
			"--memory", "128KiB", NULL);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(node, sizeof(node), "n%u", i);
		client_join(&d[i], c.address, node);
		client_open(&d[i], 1, "7", node, 5);
		client_opened(&d[i], 1);
		client_use(&d[i], 1);
	}
	for (uint64_t seq = 2; seq <= 100; seq++)
		for (unsigned i = 0; i < 4; i++)
			client_frame(&d[i], frame_bulk(seq, 30000));
	for (unsigned i = 0; i < 4; i++) {
		client_acked(&d[i], 1, 100);
		client_done(&d[i]);
	}
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store_path, "7", "n3", 100);
}

/* ---- what it keeps --------------------------------------------------------------------------- */

static void test_state(void **state)
{
	struct hr_stream_state s;
	struct collector c;
	struct client d;

	start(&c, state);
	client_connect(&d, c.address);
	d.clock_ahead_ns = INT64_C(3600000000000);
	assert_null(client_hello(&d, 1, 1, "n1"));
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1); /* the first Ping was answered on the way */
	assert_int_equal(frames_state(store_path, "7", &s), 0);
	assert_true(s.connected && s.has_secret && !s.retired);
	assert_string_equal(s.peer, getuid() == 0 ? "operator root (0)" : s.peer);
	client_use(&d, 1);
	client_frame(&d, frame_job(2, getuid()));
	client_acked(&d, 1, 2);
	client_done(&d);
	for (int i = 0; i < 15000 && s.connected; i++) {
		usleep(20000);
		assert_int_equal(frames_state(store_path, "7", &s), 0);
	}
	assert_false(s.connected);
	assert_true(s.uid_known);
	assert_int_equal(s.uid, getuid());
	assert_int_equal(s.mark, 2);
	assert_int_equal(collector_stop(&c), 0);
}

static void test_clock(void **state)
{
	struct hr_stream_state s;
	struct collector c;
	struct client d;
	uint64_t begun;

	snprintf(store_path, sizeof(store_path), "%s", STORE);
	collector_start(&c, store_path, LOG, "--ping", "1s", NULL);
	begun = hr_now_ns(CLOCK_MONOTONIC);
	client_connect(&d, c.address);
	d.clock_ahead_ns = INT64_C(3600000000000);
	assert_null(client_hello(&d, 1, 1, "n1"));
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_use(&d, 1);
	for (uint64_t seq = 2; seq < 4; seq++) {
		usleep(1100000);
		client_losses(&d, seq, seq);
		client_acked(&d, 1, seq);
	}
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	assert_int_equal(frames_state(store_path, "7", &s), 0);
	assert_true(s.clock_known);
	assert_true(llabs(s.clock_offset_ns - INT64_C(3600000000000)) <= (int64_t)s.clock_error_ns);
	assert_true(s.clock_error_ns <= hr_now_ns(CLOCK_MONOTONIC) - begun);
}

/* ---- the store is its own -------------------------------------------------------------------- */

static void test_second(void **state)
{
	const char *second = help_path(state, "second");
	struct collector c, other;

	start(&c, state);
	assert_int_equal(collector_run(store_path, second, NULL), 125);
	snprintf(other.log, sizeof(other.log), "%s", second);
	assert_true(collector_printed(&other, c.address));
	assert_true(collector_printed(&other, "pid"));
	collector_kill(&c);
	start(&c, state); /* who was killed holds nothing */
	assert_int_equal(collector_stop(&c), 0);
}

static void test_run_is_refused(void **state)
{
	struct collector c, run = {0};
	int status;
	pid_t pid;

	start(&c, state);
	snprintf(run.log, sizeof(run.log), "%s", help_path(state, "run"));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(open(run.log, O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
		execl(HEADRACE, HEADRACE, "run", "-o", store_path, "--", "true", NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 125);
	assert_true(collector_printed(&run, "-o tcp://127.0.0.1:"));
	assert_int_equal(collector_stop(&c), 0);
}

static void test_mistakes(void **state)
{
	char log[2048], conf[2048]; /* help_path has four buffers */
	static const char text[] = "# a comment\nretention_age = 30d\nwindwo = 3\n";
	struct collector c = {0};

	snprintf(log, sizeof(log), "%s", help_path(state, "mistakes"));
	snprintf(conf, sizeof(conf), "%s", help_path(state, "conf"));
	snprintf(c.log, sizeof(c.log), "%s", log);
	assert_int_equal(collector_run(STORE, log, "--plain", "no", NULL), 2);
	assert_int_equal(collector_run(STORE, log, "--window", "1KiB", NULL), 2);
	assert_int_equal(collector_run(STORE, log, "--nothing", "1", NULL), 2);
	assert_int_equal(collector_run(STORE, log, "--listen", "http://x", NULL), 2);
	assert_int_equal(collector_run(STORE, log, "--check-config", NULL), 0);
	help_write(conf, (const uint8_t *)text, sizeof(text) - 1);
	assert_int_equal(collector_run(STORE, log, "--check-config", "--config", conf, NULL), 2);
	assert_true(collector_printed(&c, "windwo"));
	assert_int_equal(access(STORE, F_OK), -1); /* nothing was made */
}

/* ---- a full disk ----------------------------------------------------------------------------- */

static void test_full_disk(void **state)
{
	char disk[2048], ballast[2100];
	struct collector c;
	Headrace__Wire *msg;
	struct client d;
	uint64_t mark;

	snprintf(disk, sizeof(disk), "%s", help_path(state, "disk"));
	snprintf(ballast, sizeof(ballast), "%s/ballast", disk);
	if (!disk_mount(disk)) {
		printf("SKIPPED full disk: no right to mount\n");
		skip();
	}
	snprintf(store_path, sizeof(store_path), "%s/store", disk);
	collector_start(&c, store_path, LOG, NULL);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_use(&d, 1);
	client_losses(&d, 2, 3);
	client_acked(&d, 1, 3);
	disk_fill(ballast);
	client_losses(&d, 4, 2000); /* beyond the room that was taken ahead */
	for (mark = 3; (msg = client_next(&d))->body_case == HEADRACE__WIRE__BODY_ACK;) {
		mark = msg->ack->seq;
		headrace__wire__free_unpacked(msg, NULL);
	}
	assert_int_equal(msg->body_case, HEADRACE__WIRE__BODY_NACK);
	assert_string_equal(msg->nack->reason, "full");
	assert_true(msg->nack->mark >= mark && msg->nack->mark < 2000);
	assert_true(msg->nack->retry_ms > 0);
	mark = msg->nack->mark;
	headrace__wire__free_unpacked(msg, NULL);
	client_open(&d, 2, "8", "n1", 5); /* nor is there room for another: it waits */
	while ((msg = client_next(&d))->body_case != HEADRACE__WIRE__BODY_NACK)
		headrace__wire__free_unpacked(msg, NULL);
	assert_int_equal(msg->nack->channel, 2);
	assert_string_equal(msg->nack->reason, "full");
	headrace__wire__free_unpacked(msg, NULL);
	assert_int_equal(unlink(ballast), 0);
	assert_int_equal(client_opened(&d, 2), 1);
	client_losses(&d, mark + 1, 2000);
	client_acked(&d, 1, 2000);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	assert_true(collector_printed(&c, "full"));
	frames_check(store_path, "7", "n1", 2000);
	disk_unmount(disk);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_two_channels),  T(test_kill),	   T(test_term),     T(test_takeover),
	    T(test_little_memory), T(test_windows),	   T(test_state),    T(test_clock),
	    T(test_second),	   T(test_run_is_refused), T(test_mistakes), T(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
