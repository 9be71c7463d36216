/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts: when a message is due, limits, receivers that fail, and the messages of hostile jobs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/alert_text.h"
#include "collector/alerts.h"
#include "common/json_part.h"
#include "common/text.h"
#include "tests/unit.h"

#define SECOND_NS UINT64_C(1000000000)
#define START_NS  (UINT64_C(1800000000) * SECOND_NS)
#define MANY	  9000u
#define URL	  HR_ALERT_URL

static void report(const char *text)
{
	fail_msg("%s", text);
}

/* ---- one job that changes -------------------------------------------------------------------- */

static struct hr_alerts alerts;
static Headrace__FleetRate rate;
static Headrace__FleetJob job, *jobs[MANY];
static Headrace__Fleet fleet;
static Headrace__NowStuck op;
static Headrace__FleetStuck stuck, *stucks[1];
static uint64_t second; /* since the start */

static int begin(void **state)
{
	headrace__fleet_rate__init(&rate);
	headrace__fleet_job__init(&job);
	headrace__fleet__init(&fleet);
	headrace__now_stuck__init(&op);
	headrace__fleet_stuck__init(&stuck);
	stuck.op = &op;
	stuck.node = "n1";
	stucks[0] = &stuck;
	op.op = "flock";
	job.job = "train";
	job.user = "alice";
	job.uid = 1000;
	job.rate = &rate;
	job.stuck = stucks;
	job.silent_node = "n2";
	jobs[0] = &job;
	fleet.jobs = jobs;
	fleet.n_jobs = 1;
	second = 0;
	alerts.sinks[URL] = true;
	return 0;
}

static int end(void **state)
{
	hr_alerts_done(&alerts);
	return 0;
}

static void use(const char *rules)
{
	assert_int_equal(hr_alert_rules_parse(rules, &alerts.rules, report), 0);
}

static uint64_t now_ms(void)
{
	return 1000000 + second * 1000;
}

static void tick(void)
{
	second++;
	assert_int_equal(
	    hr_alerts_tick(
		&alerts, &fleet,
		(struct hr_alert_time){.ms = now_ms(), .real_ns = START_NS + second * SECOND_NS}),
	    0);
}

static void ticks(unsigned n)
{
	while (n-- > 0)
		tick();
}

/* The next message to the URL, as sent or failed: "firing", "over", or "" if none is due. */
static const char *message(bool good)
{
	const struct hr_alert *x = hr_alerts_due(&alerts, URL, false, now_ms());
	enum hr_alert_state s;

	if (!x)
		return "";
	s = x->state;
	hr_alerts_sent(&alerts, URL, x->id, good, now_ms());
	return s == HR_ALERT_FIRING ? "firing" : s == HR_ALERT_OVER ? "over" : "pending";
}

static void one_message_each(void **state)
{
	use("metadata > 100 for 5s");
	rate.metadata = 101;
	ticks(5);
	assert_string_equal(message(true), "");
	rate.metadata = 100; /* not above the limit: the time starts again */
	tick();
	assert_int_equal(alerts.n, 0);
	rate.metadata = 200;
	ticks(5);
	assert_string_equal(message(true), "");
	tick();
	assert_string_equal(message(true), "firing");
	assert_int_equal(hr_alerts_count(&alerts, HR_ALERT_METADATA), 1);
	for (unsigned i = 0; i < 100; i++) { /* it is below the limit for up to 9 s */
		rate.metadata = i % 10 == 0 ? 200 : 0;
		tick();
		assert_string_equal(message(true), "");
	}
	rate.metadata = 0;
	ticks(HR_ALERT_OVER_MS / 1000 - 9 + 8);
	assert_string_equal(message(true), "over");
	ticks(1);
	assert_int_equal(alerts.n, 0);
	assert_int_equal(hr_alerts_count(&alerts, HR_ALERT_METADATA), 0);
	rate.metadata = 200;
	ticks(6);
	assert_string_equal(message(true), "firing"); /* another alert */
}

static void means(void **state)
{
	use("waiting > 80% for 100s");
	job.loops = 4;
	for (unsigned i = 0; i < 102;
	     i++) { /* a loop with steps of 10 s, which waits for 9 s of them */
		job.waiting = i % 10 == 9 ? 0 : 4;
		tick();
	}
	assert_string_equal(message(true), "firing");
	hr_alerts_done(&alerts);
	alerts.sinks[URL] = true;
	use("waiting > 80% for 100s");
	for (unsigned i = 0; i < 1000; i++) { /* waits for half of the time */
		job.waiting = i % 10 < 5 ? 0 : 4;
		tick();
		assert_string_equal(message(true), "");
	}
	job.loops = 0; /* no loops: no share */
	job.waiting = 4;
	tick();
	job.loops = 4;
	job.waiting = 0.0 / 0.0;
	ticks(200);
	assert_string_equal(message(true), "");
}

static void gone_jobs_and_rules(void **state)
{
	use("metadata > 100, stuck > 60s");
	rate.metadata = 101;
	tick();
	assert_string_equal(message(true), "firing");
	fleet.n_jobs = 0;
	ticks(9);
	fleet.n_jobs = 1; /* the node has connected again */
	tick();
	fleet.n_jobs = 0;
	ticks(9);
	assert_string_equal(message(true), "");
	tick();
	assert_string_equal(message(true), "over");
	fleet.n_jobs = 1;
	ticks(2);
	assert_string_equal(message(true), "firing");
	use("stuck > 60s");
	ticks(10);
	assert_string_equal(message(true), "over");
	ticks(20);
	assert_int_equal(alerts.n, 0);
}

/* A job that was requeued is another one: its alert begins, and that of the old one ends. */
static void requeued_jobs(void **state)
{
	use("metadata > 100");
	rate.metadata = 101;
	tick();
	assert_string_equal(message(true), "firing");
	job.attempt++;
	tick();
	assert_string_equal(message(true), "firing");
	ticks(HR_ALERT_OVER_MS / 1000 - 1);
	assert_string_equal(message(true), "over");
	assert_string_equal(message(true), "");
}

static void stuck_on_a_silent_node(void **state)
{
	use("stuck > 60s");
	job.n_stuck = 1;
	op.age_ns = 61 * SECOND_NS;
	tick();
	assert_string_equal(message(true), "firing");
	assert_int_equal(alerts.list[0].since_real_ns, START_NS + SECOND_NS - op.age_ns);
	job.n_stuck = 0; /* its node is silent: perhaps the operation has not returned */
	job.silent_nodes = 1;
	ticks(100);
	assert_string_equal(message(true), "");
	job.silent_nodes = 0;
	ticks(10);
	assert_string_equal(message(true), "over");
}

static void slow_checkpoints(void **state)
{
	Headrace__FleetSave save = HEADRACE__FLEET_SAVE__INIT;

	use("checkpoint > 2.5x");
	assert_float_equal(alerts.rules.list[0].limit, 2.5, 1e-9);
	job.save = &save;
	save.dur_ns = 100 * SECOND_NS; /* the usual time is unknown */
	tick();
	save.usual_ns = SECOND_NS / 10;
	save.dur_ns = 5 * SECOND_NS - 1; /* too short to matter */
	tick();
	assert_string_equal(message(true), "");
	save.dur_ns = 5 * SECOND_NS;
	tick();
	assert_string_equal(message(true), "firing");
	ticks(1000); /* until the next checkpoint */
	assert_string_equal(message(true), "");
	save.dur_ns = SECOND_NS / 10;
	ticks(10);
	assert_string_equal(message(true), "over");
}

static void silence_during_a_pause_of_the_collector(void **state)
{
	use("silent > 30s");
	ticks(100);
	second += 100;
	job.silent_nodes = 1;
	job.silent_ms = 100000;
	tick();
	assert_string_equal(message(true), "");
	job.silent_nodes = 0;
	ticks(5);
	job.silent_nodes = 1;
	job.silent_ms = 31000;
	ticks(26);
	assert_string_equal(message(true), "firing");
	assert_int_equal(alerts.list[0].since_real_ns, START_NS + (second - 31) * SECOND_NS);
}

/* ---- receivers that fail --------------------------------------------------------------------- */

static void failed_messages(void **state)
{
	unsigned attempts = 0;

	use("metadata > 100");
	rate.metadata = 101;
	for (unsigned i = 0; i < 600; i++) {
		tick();
		attempts += message(false)[0] != '\0';
		assert_string_equal(message(false), "");
	}
	assert_in_range(attempts, 15, 30); /* after 1, 2, 4, 8, 16 s, then each 30 s */
	ticks(30);
	assert_string_equal(message(true), "firing");
	rate.metadata = 0;
	ticks(10);
	assert_string_equal(message(false), "over");
	ticks(1);
	assert_string_equal(message(false), "over");
	ticks(HR_ALERT_UNSENT_MS / 1000);
	assert_int_equal(alerts.n, 0); /* the collector has given up */
	rate.metadata = 101;
	tick();
	rate.metadata = 0;
	ticks(12);
	assert_string_equal(message(true), ""); /* the receiver does not know the alert */
	assert_int_equal(alerts.n, 0);
}

/* The next message that is due to the URL, as sent or failed, is that of this job. */
static void message_of(const char *of, bool good)
{
	const struct hr_alert *x = hr_alerts_due(&alerts, URL, false, now_ms());

	assert_non_null(x);
	assert_string_equal(x->job, of);
	hr_alerts_sent(&alerts, URL, x->id, good, now_ms());
}

static void failed_messages_come_last(void **state)
{
	Headrace__FleetJob other = job;

	use("metadata > 100");
	rate.metadata = 101;
	other.job = "eval";
	jobs[1] = &other;
	fleet.n_jobs = 2;
	tick();
	message_of("train", false);
	ticks(HR_ALERT_RETRY_MS / 1000 + 1); /* now both are due */
	message_of("eval", true);
	message_of("train", true);
	assert_string_equal(message(true), "");
}

static void busy_messages(void **state)
{
	const struct hr_alert *x;
	uint64_t id;

	use("metadata > 100");
	rate.metadata = 101;
	tick();
	x = hr_alerts_due(&alerts, URL, false, now_ms());
	assert_non_null(x);
	id = x->id;
	rate.metadata = 0;
	ticks(600); /* the receiver hangs, and the alert is over */
	assert_string_equal(message(true), "");
	hr_alerts_sent(&alerts, URL, id + 1, true, now_ms());
	hr_alerts_sent(&alerts, URL, id, true, now_ms());
	assert_string_equal(message(true), "over");
}

static void repeats_for_alertmanager(void **state)
{
	unsigned n = 0;

	use("metadata > 100");
	rate.metadata = 101;
	for (unsigned i = 0; i < 600; i++) {
		const struct hr_alert *x;

		tick();
		x = hr_alerts_due(&alerts, URL, true, now_ms());
		if (!x)
			continue;
		hr_alerts_sent(&alerts, URL, x->id, true, now_ms());
		n++;
	}
	assert_int_equal(n, 600 / (HR_ALERT_REPEAT_MS / 1000));
	assert_true(HR_ALERT_EXPIRES_MS > 2 * HR_ALERT_REPEAT_MS + HR_ALERT_RETRY_MOST);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void bounded_memory(void **state)
{
	Headrace__FleetJob *many = calloc(MANY, sizeof(*many));
	char(*names)[16] = calloc(MANY, sizeof(*names));

	assert_non_null(many);
	assert_non_null(names);
	use("metadata > 100, metadata > 50");
	rate.metadata = 101;
	for (unsigned i = 0; i < MANY; i++) {
		many[i] = job;
		snprintf(names[i], sizeof(names[i]), "j%u", i);
		many[i].job = names[i];
		jobs[i] = &many[i];
	}
	fleet.n_jobs = MANY;
	tick();
	assert_int_equal(alerts.n, HR_ALERTS_PER_USER); /* all of one user */
	for (unsigned i = 0; i < MANY; i++)
		many[i].uid = i / 4;
	for (unsigned k = 0; k < 100; k++) {
		tick();
		assert_true(alerts.n <= HR_ALERTS_MOST);
	}
	assert_int_equal(alerts.n, HR_ALERTS_MOST);
	assert_true(alerts.ignored > 0);
	while (message(true)[0] != '\0')
		;
	for (unsigned i = 0; i < MANY; i++)
		snprintf(names[i], sizeof(names[i]), "k%u", i); /* other jobs */
	ticks(12);
	assert_int_equal(alerts.n, HR_ALERTS_MOST); /* those that are over make room */
	free(many);
	free(names);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void is_json(const char *text)
{
	const char *at = text;
	struct hr_json_part part;

	assert_non_null(text);
	assert_true(hr_text_is_utf8(text, strlen(text)));
	assert_int_equal(hr_json_part_read(&at, text + strlen(text), &part), 0);
	assert_string_equal(at, "\n");
	assert_null(strstr(text, "\x1b"));
}

static void view_is_json(bool with_job)
{
	const struct hr_alert_view v = {.alert = &alerts.list[0],
					.job = with_job ? &job : NULL,
					.address = "tcp://c:4747",
					.real_ns = START_NS};
	char *text;

	assert_ptr_equal(hr_alert_job(v.alert, &fleet), &job);
	for (int manager = 0; manager < 2; manager++) {
		text = hr_alert_json(&v, manager);
		is_json(text);
		free(text);
	}
}

/* A step, a wait or a fetch has not ended; an operation has not returned. */
static void what_does_not_end(void **state)
{
	static const struct {
		const char *work, *text;
	} works[] = {
	    {"step", "The step at data.py:7 load by rank 3, worker 0 on n1 (pid 12) has not ended"},
	    {"wait",
	     "The wait for a batch at data.py:7 load by rank 3, worker 0 on n1 (pid 12) has"},
	    {"fetch", "The fetch of a batch at data.py:7 load by rank 3, worker 0 on n1 (pid 12) "},
	};
	struct hr_alert_view view = {.job = &job, .address = "tcp://c:4747", .real_ns = START_NS};

	use("stuck > 60s");
	job.n_stuck = job.stuck_total = 1;
	op.age_ns = 61 * SECOND_NS;
	op.rank_plus1 = 4;
	op.worker_plus1 = 1;
	op.pid = 12;
	op.path = (ProtobufCBinaryData){.len = 14, .data = (uint8_t *)"data.py:7 load"};
	tick();
	view.alert = &alerts.list[0];
	for (size_t i = 0; i <= sizeof(works) / sizeof(*works); i++) {
		bool hang = i < sizeof(works) / sizeof(*works);
		const char *wanted = hang ? works[i].text
					  : "flock of data.py:7 load by rank 3, worker 0 on n1 "
					    "(pid 12) has not returned for 61.0 s, in job train";
		char *text;

		op.hang = hang;
		op.op = (char *)(uintptr_t)(hang ? works[i].work : "flock");
		text = hr_alert_sentence(&view);
		assert_non_null(text);
		assert_memory_equal(text, wanted, strlen(wanted));
		free(text);
	}
}

static void hostile_names(void **state)
{
	static const char *const rules[] = {"waiting > 10%", "metadata > 10", "stuck > 10s",
					    "silent > 10s", "checkpoint > 2x"};
	static const char bad[] = "\xff\x1b[2J'\"\\\n\t$(x)\xe2\x80\xae";
	Headrace__FleetSave save = HEADRACE__FLEET_SAVE__INIT;
	char huge[4096];

	save.node = (char *)bad;
	save.dur_ns = UINT64_MAX;
	save.usual_ns = 1;
	job.save = &save;
	memset(huge, '"', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	job.job = job.cluster = job.name = job.user = job.silent_node = stuck.node = (char *)bad;
	op.op = huge;
	op.path = (ProtobufCBinaryData){.len = sizeof(bad), .data = (uint8_t *)bad};
	op.age_ns = UINT64_MAX;
	op.rank_plus1 = op.worker_plus1 = UINT32_MAX;
	job.loops = UINT32_MAX;
	job.waiting = 1e300;
	rate.metadata = 1e300;
	job.silent_nodes = UINT32_MAX;
	job.silent_ms = UINT64_MAX / 2;
	job.n_stuck = 1;
	job.stuck_total = UINT32_MAX;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		hr_alerts_done(&alerts);
		alerts.sinks[URL] = true;
		use(rules[i]);
		ticks(20);
		assert_int_equal(alerts.n, 1);
		view_is_json(true);
		view_is_json(false);
		alerts.list[0].state = HR_ALERT_OVER;
		view_is_json(true);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(one_message_each),
	    TEST(means),
	    TEST(gone_jobs_and_rules),
	    TEST(requeued_jobs),
	    TEST(stuck_on_a_silent_node),
	    TEST(slow_checkpoints),
	    TEST(silence_during_a_pause_of_the_collector),
	    TEST(failed_messages),
	    TEST(failed_messages_come_last),
	    TEST(busy_messages),
	    TEST(repeats_for_alertmanager),
	    TEST(bounded_memory),
	    TEST(what_does_not_end),
	    TEST(hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
