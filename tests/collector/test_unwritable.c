/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real headrace-collector that is started while its store cannot be written: it answers queries, takes no frames, and takes them again
 * as soon as the store can be written.
 */
#include "tests/collector/client.h"
#include "tests/collector/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG	  help_path(state, "log")
#define EXIT_HELD 125
#define NO_DUCKDB 69
#define WAIT_MS	  300000

static char disk[2048], store[2100], ballast[2100], spill[2200];

/* Job 7 has frames 1 to 3. */
static void make_store(void **state)
{
	struct collector c;
	struct client d;

	snprintf(disk, sizeof(disk), "%s", help_path(state, "disk"));
	snprintf(store, sizeof(store), "%s/store", disk);
	snprintf(ballast, sizeof(ballast), "%s/ballast", disk);
	snprintf(spill, sizeof(spill), "%s/spill", store);
	if (!disk_mount(disk)) {
		printf("SKIPPED unwritable store: no right to mount\n");
		skip();
	}
	/* Without a folder for spilled data: a collector that finds it missing has to do without it, too. */
	collector_start(&c, store, LOG, "--query-spill", "none", NULL);
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "7", "n1", 5);
	client_opened(&d, 1);
	client_use(&d, 1);
	client_losses(&d, 2, 3);
	client_acked(&d, 1, 3);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
}

static void check_jobs(const struct collector *c, const char *expected)
{
	char command[512], text[256];
	size_t n;
	int status;
	FILE *out;

	snprintf(command, sizeof(command),
		 HEADRACE " query --format csv %s 'SELECT job FROM jobs ORDER BY job' 2>/dev/null",
		 c->address);
	out = popen(command, "re");
	assert_non_null(out);
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	status = pclose(out);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DUCKDB) {
		printf("SKIPPED asking: DuckDB is not installed\n");
		return;
	}
	assert_string_equal(text, expected);
	assert_int_equal(status, 0);
}

static bool appears(const char *path)
{
	for (int i = 0; i < WAIT_MS / 10 && access(path, F_OK) < 0; i++)
		usleep(10000);
	return access(path, F_OK) == 0;
}

static void wait_until_held(void)
{
	char holder[256] = "";

	for (int i = 0; i < WAIT_MS / 10 && holder[0] == '\0'; i++) {
		assert_true(hr_store_holder(store, holder, sizeof(holder)));
		usleep(10000);
	}
	assert_memory_equal(holder, "tcp://", 6);
}

/* Started while job 8 and the rest of job 7 cannot be stored; `allow` makes the store writable. */
static void live(void **state, const char *complaint, void (*allow)(void))
{
	struct collector c;
	struct client d;

	collector_start(&c, store, LOG, NULL);
	assert_true(collector_printed(&c, complaint));
	check_jobs(&c, "job\r\n7\r\n");
	client_join(&d, c.address, "n1");
	client_open(&d, 1, "8", "n1", 5);
	client_nacked(&d, 1, "full");
	check_jobs(&c, "job\r\n7\r\n");
	assert_int_equal(collector_run(store, help_path(state, "other"), NULL), EXIT_HELD);
	allow();
	assert_int_equal(client_opened(&d, 1), 1);
	client_use(&d, 1);
	client_losses(&d, 2, 10);
	client_acked(&d, 1, 10);
	wait_until_held();
	assert_true(appears(spill));
	assert_int_equal(collector_run(store, help_path(state, "other"), NULL), EXIT_HELD);
	check_jobs(&c, "job\r\n7\r\n8\r\n");
	client_open(&d, 2, "7", "n1", 5);
	assert_int_equal(client_opened(&d, 2), 3);
	client_use(&d, 2);
	client_losses(&d, 4, 6);
	client_acked(&d, 2, 6);
	client_done(&d);
	assert_int_equal(collector_stop(&c), 0);
	frames_check(store, "7", "n1", 6);
	frames_check(store, "8", "n1", 10);
	disk_unmount(disk);
}

static void make_writable(void)
{
	disk_read_only(disk, false);
}

static void test_read_only(void **state)
{
	make_store(state);
	disk_read_only(disk, true);
	live(state, "read-only file system: the collector answers queries", make_writable);
}

static void make_room(void)
{
	assert_int_equal(unlink(ballast), 0);
}

static void test_full(void **state)
{
	make_store(state);
	disk_fill(ballast);
	live(state, "cannot write to the store: No space left on device", make_room);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_read_only), T(test_full)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
