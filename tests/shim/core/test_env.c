/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that are followed: kept for a hello by any threads at once, replaced, in bounded room. */
#include "tests/shim/core/harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define THREADS 4
#define TURNS	(100000 / SLOWER)

static void start(void)
{
	static const char *const env[] = {"HEADRACE_SOCKET=/nowhere", NULL};

	harness_init(env);
}

static void set(const char *name, int number, const char *value)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%d", name, number);
	hr_env_set(text, value);
}

/* How many of what is kept begin with `begin`; the last one of them. */
static unsigned kept(const char *begin, char ret_last[HR__ENV_BYTES])
{
	char text[HR__ENV_BYTES];
	unsigned n = 0;

	for (uint32_t at = 0; hr__env_next(&at, text, sizeof(text)) > 0;) {
		if (strncmp(text, begin, strlen(begin)) != 0)
			continue;
		n++;
		strcpy(ret_last, text);
	}
	return n;
}

static bool is_kept(const char *name, int number, const char *value)
{
	char want[HR__ENV_BYTES], got[HR__ENV_BYTES];
	int n = snprintf(want, sizeof(want), "%s%d=", name, number);

	if (kept(want, got) != 1)
		return false;
	snprintf(want + n, sizeof(want) - (size_t)n, "%s", value);
	return strcmp(got, want) == 0;
}

static void *sets_rank(void *arg)
{
	hr_env_set("RANK", "7");
	return NULL;
}

/* The variable reaches a session, also from a thread without I/O. */
CASE(thread_without_a_ring)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	pthread_t t;

	sets_rank(NULL); /* there is no session */
	harness_attach();
	pthread_create(&t, NULL, sets_rank, NULL);
	pthread_join(t, NULL);
	fake_settle(d);
	CHECK(fake_count(d, HR_CTL_ENV) == 1);
}

/* Values of many lengths, one after another, do not use the room up. */
CASE(one_of_a_name)
{
	char value[200];

	start();
	memset(value, 'v', sizeof(value));
	for (unsigned i = 0; i < 2000; i++) {
		value[i % 199] = '\0';
		hr_env_set("LOCAL_RANK", value);
		set("HEADRACE_X", (int)(i % 5), value);
		CHECK(is_kept("HEADRACE_X", (int)(i % 5), value));
		value[i % 199] = 'v';
	}
	value[1999 % 199] = '\0';
	CHECK(kept("LOCAL_RANK=", (char[HR__ENV_BYTES]){0}) == 1);
	CHECK(kept("HEADRACE_X", (char[HR__ENV_BYTES]){0}) == 5);
	CHECK(kept("RANK=", (char[HR__ENV_BYTES]){0}) == 0);
	hr_env_add("LOCAL_RANK", "none");
	CHECK(kept("LOCAL_RANK=none", (char[HR__ENV_BYTES]){0}) == 0);
	hr_env_add("RANK", "0");
	CHECK(kept("RANK=0", (char[HR__ENV_BYTES]){0}) == 1);
	hr_env_set("HOME", "/nowhere"); /* nobody follows it */
	CHECK(kept("HOME", (char[HR__ENV_BYTES]){0}) == 0);
}

/* When there is no room anymore, what is there can still change, and no byte behind it does. */
CASE(full)
{
	char huge[2 * HR__ENV_BYTES];
	unsigned there, i;

	start();
	for (i = 0; i < 2000; i++)
		set("HEADRACE_X", (int)i, "0123456789");
	there = kept("HEADRACE_X", (char[HR__ENV_BYTES]){0});
	CHECK(there > 200 && there < 2000);
	for (i = 0; i < there; i++)
		set("HEADRACE_X", (int)i, i % 2 ? "9876543210" : "x");
	set("HEADRACE_X", 2001, "0123456789");
	for (i = 0; i < there; i += 5)
		CHECK(is_kept("HEADRACE_X", (int)i, i % 2 ? "9876543210" : "x"));
	CHECK(kept("HEADRACE_X", (char[HR__ENV_BYTES]){0}) == there);
	memset(huge, 'h', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	hr_env_set("HEADRACE_X0", huge);
	CHECK(is_kept("HEADRACE_X", 0, "x"));
	CHECK(hr_shim_image.mapping_count == 0 && hr_shim_image.mappings[0].addr == NULL);
}

/* The value is one letter, again and again, as long as its letter says: a torn one shows. */
static void value_of(unsigned i, char ret[32])
{
	unsigned n = 1 + i % 26;

	memset(ret, 'a' + (int)n - 1, n);
	ret[n] = '\0';
}

static bool is_whole(const char *value)
{
	size_t n = strlen(value);

	for (size_t i = 0; i < n; i++)
		if (value[i] != 'a' + (char)n - 1)
			return false;
	return n >= 1 && n <= 26;
}

static int done;

static void *sets(void *number)
{
	char value[32];

	for (unsigned i = 0; i <= TURNS; i++) {
		value_of(i, value);
		set("HEADRACE_X", *(int *)number, value);
		hr_env_set("LOCAL_RANK", value);
	}
	__atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Each reads whole values while they change, and in the end there is the last one of each. */
CASE(threads)
{
	char text[HR__ENV_BYTES], value[32];
	pthread_t t[THREADS];
	int number[THREADS];

	start();
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&t[i], NULL, sets, &number[i]);
	}
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < THREADS)
		for (uint32_t at = 0; hr__env_next(&at, text, sizeof(text)) > 0;)
			if (strncmp(text, "HEADRACE_S", 10) != 0)
				CHECK(is_whole(strchr(text, '=') + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	value_of(TURNS, value);
	for (int i = 0; i < THREADS; i++)
		CHECK(is_kept("HEADRACE_X", i, value));
	CHECK(kept("LOCAL_RANK=", text) == 1 && is_whole(text + 11));
	CHECK(hr_shim_image.mapping_count == 0 && hr_shim_image.mappings[0].addr == NULL);
}

#define ROUNDS (4000 / SLOWER)

#define ROUNDS_S 2 /* no further rounds after this time: on a busy machine, a round takes long */

static int arrived, last_meeting = 2 * ROUNDS;

/* Both go on at once, which a barrier that sleeps does not bring about. */
static void meet(int n)
{
	__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
	for (unsigned i = 0; __atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 2 * n; i++)
		if (i > 1000)
			sched_yield();
}

static void *sets_in_rounds(void *unused)
{
	for (int n = 1; n <= __atomic_load_n(&last_meeting, __ATOMIC_RELAXED); n++) {
		meet(n);
		if (n % 2)
			hr_env_set("LOCAL_RANK", "another");
	}
	return NULL;
}

/* Of two that set one name at one time one stays: not both, not none. */
CASE(two_at_once)
{
	double from = harness_now();
	char text[HR__ENV_BYTES];
	pthread_t t;

	start();
	for (int i = 0; i < 200; i++) /* so that each has some way to the other's */
		set("HEADRACE_X", i, "x");
	pthread_create(&t, NULL, sets_in_rounds, NULL);
	for (int n = 1; n <= last_meeting; n++) {
		if (n % 2 && harness_now() - from > ROUNDS_S)
			__atomic_store_n(&last_meeting, n + 1, __ATOMIC_RELAXED);
		meet(n); /* after it, the other thread sees last_meeting */
		if (n % 2)
			hr_env_set("LOCAL_RANK", "one");
		else
			CHECK(kept("LOCAL_RANK=", text) == 1);
	}
	pthread_join(t, NULL);
}

static volatile unsigned handled;

static void on_alarm(int sig)
{
	char value[32];

	value_of(++handled, value);
	hr_env_set("LOCAL_RANK", value);
}

/* A handler sets it in the middle of the same: one of both stays, whole. */
CASE(signals)
{
	char text[HR__ENV_BYTES], value[32];

	start();
	t_catch(on_alarm, 0);
	t_timer(100 * SLOWER);
	for (unsigned i = 0; handled < 5000 / SLOWER; i++) {
		value_of(i, value);
		hr_env_set("LOCAL_RANK", value);
		set("HEADRACE_X", 0, value);
	}
	t_timer(0);
	CHECK(kept("LOCAL_RANK=", text) == 1 && is_whole(text + 11));
	CHECK(is_kept("HEADRACE_X", 0, value));
}

static bool enough;

static void *sets_on(void *unused)
{
	char value[32];

	for (unsigned i = 0; !__atomic_load_n(&enough, __ATOMIC_ACQUIRE); i++) {
		value_of(i, value);
		hr_env_set("LOCAL_RANK", value);
	}
	return NULL;
}

/* A child that is forked in the middle of a store goes on with all that was kept. */
CASE(fork_in_the_middle)
{
	char text[HR__ENV_BYTES];
	pthread_t t;

	start();
	hr_env_set("RANK", "7");
	pthread_create(&t, NULL, sets_on, NULL);
	for (int i = 0; i < 50; i++) {
		pid_t pid = t_fork();

		if (pid == 0) {
			hr_env_set("LOCAL_RANK", "child");
			CHECK(kept("RANK=", text) == 1 && strcmp(text, "RANK=7") == 0);
			CHECK(kept("LOCAL_RANK=", text) == 1);
			CHECK(strcmp(text, "LOCAL_RANK=child") == 0);
			_exit(0);
		}
		t_wait(pid);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
}

/* The hello says each once, the values that are in force. */
CASE(hello)
{
	struct fake_daemon *d = harness_start(NULL, "RANK=1", "LOCAL_RANK=2", NULL);
	char text[64];

	hr_env_set("RANK", "10000000000000");
	hr_env_set("RANK", "3");
	hr_env_set("WORLD_SIZE", "8");
	harness_file("a", 1);
	t_close(t_open("a", O_RDONLY));
	CHECK(fake_sessions(d) == 1);
	for (unsigned i = 0, seen = 0; seen != 7; i++) {
		CHECK(fake_item(fake_session(d, 0), HR_ITEM_ENV, i, text, sizeof(text)) > 0);
		CHECK(strncmp(text, "RANK=", 5) != 0 || strcmp(text, "RANK=3") == 0);
		seen += strcmp(text, "RANK=3") == 0 ? 1 : 0;
		seen += strcmp(text, "LOCAL_RANK=2") == 0 ? 2 : 0;
		seen += strcmp(text, "WORLD_SIZE=8") == 0 ? 4 : 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_of_a_name), cmocka_unit_test(full),
	    cmocka_unit_test(threads),	     cmocka_unit_test(two_at_once),
	    cmocka_unit_test(signals),	     cmocka_unit_test(fork_in_the_middle),
	    cmocka_unit_test(hello),	     cmocka_unit_test(thread_without_a_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
