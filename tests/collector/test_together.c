/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real headrace-collector that never rests: jobs come and end, retention removes them at once, one job goes on, and somebody asks about
 * all of them.
 */
#include "tests/collector/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS   20u
#define FRAMES 50u /* of a job */

/* Asks a few times, and ends with the first status that is not 0. */
static pid_t start_asking(const char *address, const char *log)
{
	char command[8192];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	snprintf(command, sizeof(command),
		 "for i in 1 2 3; do " HEADRACE " query %s --format csv"
		 " 'SELECT count(*), sum(count) FROM losses' >>%s 2>&1 || exit; done",
		 address, log);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* A job of one stream, from its beginning to its end. */
static void whole_job(struct client *c, uint32_t channel, const char *job)
{
	client_open(c, channel, job, "n2", 5);
	assert_int_equal(client_opened(c, channel), 1);
	client_use(c, channel);
	client_losses(c, 2, FRAMES - 1);
	client_frame(c, frame_end(FRAMES));
	client_acked(c, channel, FRAMES);
	client_close(c, channel);
}

static void wait_until_said(const struct collector *c, const char *text)
{
	for (int i = 0; i < 30000 && !collector_printed(c, text); i++)
		usleep(10000);
	assert_true(collector_printed(c, text));
}

static void test_together(void **state)
{
	char store[4096], asked[4096], job[16];
	struct client longest, others;
	struct collector c;
	uint64_t seq = 1;
	pid_t asking;
	int status;

	snprintf(store, sizeof(store), "%s", help_path(state, "store"));
	snprintf(asked, sizeof(asked), "%s", help_path(state, "asked"));
	collector_clocks(help_path(state, "clocks"));
	/* whoever waits for a point in time, as retention, finds that it was long ago */
	collector_later(-3600);
	collector_start(&c, store, help_path(state, "log"), "--retention-size", "1", NULL);
	client_join(&longest, c.address, "n1");
	client_join(&others, c.address, "n2");
	client_open(&longest, 1, "longest", "n1", 5);
	client_opened(&longest, 1);
	client_use(&longest, 1);
	asking = start_asking(c.address, asked);
	for (uint32_t i = 1; i <= JOBS; i++) {
		snprintf(job, sizeof(job), "%u", i);
		whole_job(&others, i, job);
		client_losses(&longest, seq + 1, seq + 10);
		seq += 10;
		client_acked(&longest, 1, seq);
		collector_later(2); /* what has ended is sealed after a second, and may go then */
	}
	assert_int_equal(waitpid(asking, &status, 0), asking);
	wait_until_said(&c, "retention: ");
	client_done(&longest);
	client_done(&others);
	assert_int_equal(collector_stop(&c), 0);
	collector_clocks(NULL);
	frames_check(store, "longest", "n1", seq);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 69) {
		printf("SKIPPED asking: DuckDB is not installed\n");
	} else if (status != 0) {
		uint8_t *text;
		size_t bytes = help_read(asked, &text);

		fail_msg("%.*s", (int)bytes, text);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_together)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
