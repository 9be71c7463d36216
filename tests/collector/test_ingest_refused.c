/* SPDX-License-Identifier: Apache-2.0 */
/* Who may open which stream, and what is refused, without sockets. */
#include "tests/collector/ingest_rig.h"

#include <string.h>
#include <unistd.h>

/* ---- who may -------------------------------------------------------------------------------- */

static void test_takeover(void **state)
{
	struct rig rig;
	struct end older, newer, thief;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &older, "n1", 1);
	end_losses(&older, 2, 5);
	end_marked(&older, 5);
	end_open_as(&rig, &thief, "n1", 6, &ingest_anything, 0, 0);
	end_nacked(&thief, 1, "denied");
	assert_true(thief.last.closed && thief.last.alarm);
	end_open_as(&rig, &newer, "n1", 5, &ingest_anything, 0, 0);
	end_marked(&newer, 5);
	end_nacked(&older, 1, "in_use");
	assert_true(older.last.closed);
	end_losses(&older, 6, 7); /* nobody's */
	end_losses(&newer, 6, 9);
	end_marked(&newer, 9);
	hr_ingest_close(older.channel);
	hr_ingest_close(thief.channel);
	end_losses(&newer, 10, 10); /* the older one's end is not the newer one's */
	end_marked(&newer, 10);
	hr_ingest_close(newer.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 10);
}

/* The secret outlives the collector, and all its bytes count. */
static void test_denied_later(void **state)
{
	struct hr_stream_state s;
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 5);
	end_marked(&e, 5);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	ingest_start(&rig, state, &hr_ingest_defaults);
	for (unsigned i = 0; i < HR_STREAM_SECRET_BYTES; i++) {
		end_open_as(&rig, &e, "n1", (uint16_t)(5 ^ 1u << i), &ingest_anything, 0, 0);
		assert_string_equal(e.reason, "denied");
		hr_ingest_close(e.channel);
	}
	end_open(&rig, &e, "n1", 5);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_true(s.has_secret && s.connected && !s.uid_known);
	assert_string_equal(s.peer, "node n1");
	assert_true(s.heard_ns > UINT64_C(1600000000000000000));
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_false(s.connected);
	assert_int_equal(s.mark, 5);
}

/* A stream that a run wrote into the store has no owner who could show that it is theirs. */
static void test_denied_of_a_run(void **state)
{
	struct hr_stream_id id = ingest_stream("n1");
	struct hr_writer *w;
	struct rig rig;
	struct end e;

	assert_int_equal(hr_writer_open(help_path(state, "store"), &id, &w, NULL), 0);
	assert_int_equal(help_append_loss(w, 2), 0);
	assert_int_equal(hr_writer_close(w), 0);
	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 0, 0);
	end_nacked(&e, 1, "denied");
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 2);
}

static void test_users(void **state)
{
	const struct hr_ingest_right ada = {.own_jobs = true, .uid = 1000, .peer = "user ada"};
	const struct hr_ingest_right bob = {.own_jobs = true, .uid = 1001, .peer = "user bob"};
	struct hr_stream_state s;
	struct rig rig;
	struct end e, other;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open_as(&rig, &e, "n1", 5, &ada, 0, 0);
	assert_int_equal(e.opened, 1);
	end_send(&e, frame_job(2, 1000));
	end_marked(&e, 2);
	end_open_as(&rig, &other, "n1", 5, &bob, 0, 0); /* even with the secret */
	end_nacked(&other, 1, "denied");
	hr_ingest_close(other.channel);
	end_open_as(&rig, &other, "n2", 5, &bob, 0, 0); /* nor another stream of her job */
	end_nacked(&other, 1, "denied");
	assert_non_null(strstr(other.text, "choose another name"));
	hr_ingest_close(other.channel);
	end_send(&e, frame_job(3, 1001)); /* nor may she pretend to be him */
	end_nacked(&e, 1, "denied");
	assert_true(e.last.closed);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_true(s.uid_known);
	assert_int_equal(s.uid, 1000);
	frames_check(rig.store, "7", "n1", 2);
}

/* A node's daemon speaks for any user: the first JobEvent says whose job it is. */
static void test_uid_of_a_node(void **state)
{
	struct hr_stream_state s;
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_send(&e, frame_job(2, 1234));
	end_send(&e, frame_job(3, 4321));
	end_marked(&e, 3);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_true(s.uid_known);
	assert_int_equal(s.uid, 1234);
}

/* Bob takes the id of a coming job. The node's JobEvent names Ada: from then on the id is hers. */
static void test_id_of_a_scheduler(void **state)
{
	const struct hr_ingest_right ada = {.own_jobs = true, .uid = 1000, .peer = "user ada"};
	const struct hr_ingest_right bob = {.own_jobs = true, .uid = 1001, .peer = "user bob"};
	struct end taken, early, node, late, again;
	struct rig rig;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open_as(&rig, &taken, "n7", 6, &bob, 0, 0);
	assert_int_equal(taken.opened, 1);
	end_open_as(&rig, &early, "n2", 5, &ada, 0, 0); /* no node has named a user yet */
	end_nacked(&early, 1, "denied");
	end_open(&rig, &node, "n1", 1);
	end_send(&node, frame_job(2, 1000));
	end_marked(&node, 2);
	end_open_as(&rig, &late, "n2", 5, &ada, 0, 0);
	assert_int_equal(late.opened, 1);
	end_open_as(&rig, &again, "n8", 6, &bob, 0, 0);
	end_nacked(&again, 1, "denied");
	assert_non_null(strstr(again.text, "choose another name"));
	hr_ingest_close(taken.channel);
	hr_ingest_close(early.channel);
	hr_ingest_close(node.channel);
	hr_ingest_close(late.channel);
	hr_ingest_close(again.channel);
	ingest_stop(&rig);
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void test_malformed(void **state)
{
	struct hr_stream_id other_id = ingest_stream("n9");
	struct rig rig;
	struct end e, honest;
	struct frame bad[] = {frame_garbage(),
			      frame_loss(0),
			      frame_index(3),
			      frame_index(0),
			      frame_start(3, &other_id),
			      frame_start(1, &other_id),
			      frame_bomb(3, 4000000)};

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &honest, "n2", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		end_open(&rig, &e, "n1", i == 0 ? 1 : 2);
		end_losses(&e, 2, 2);
		end_send(&e, bad[i]);
		end_losses(&e, 3, 3); /* the channel is over */
		end_nacked(&e, 1, "malformed");
		assert_true(e.last.closed && e.last.alarm);
		end_losses(&honest, i + 2, i + 2);
		end_marked(&honest, i + 2);
		hr_ingest_close(e.channel);
	}
	/* The limit applies to each frame: the worker that refused the large one takes the next. */
	end_open(&rig, &e, "n1", 2);
	end_losses(&e, 3, 3);
	while (e.mark < 3 && e.nacks == 0)
		ingest_listen(&rig);
	assert_int_equal(e.nacks, 0);
	hr_ingest_close(e.channel);
	hr_ingest_close(honest.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 3);
	frames_check(rig.store, "7", "n2", sizeof(bad) / sizeof(bad[0]) + 1);
}

static void test_odd_opens(void **state)
{
	struct rig rig;
	struct end e;
	char name[300];

	ingest_start(&rig, state, &hr_ingest_defaults);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	end_open_as(&rig, &e, name, 5, &ingest_anything, 0, 0);
	end_nacked(&e, 1, "malformed");
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "", 5, &ingest_anything, 0, 0);
	end_nacked(&e, 1, "malformed");
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "../../x", 5, &ingest_anything, 0, 0);
	assert_int_equal(e.opened, 1);
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 80, 9);
	end_nacked(&e, 1, "behind");
	hr_ingest_close(e.channel);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 9);
	end_marked(&e, 9);
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 1, 4); /* a spool that has lost its end */
	end_nacked(&e, 1, "behind");
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "../../x", 1);
}

static void refused(struct rig *rig, const Headrace__Open *o, const char *reason, const char *text)
{
	static struct end ends[8]; /* answers may come after the call */
	static unsigned n;
	struct end *e = &ends[n++ % 8];

	end_try(rig, e, o, &ingest_anything);
	assert_int_equal(e->opened, 0);
	end_nacked(e, 1, reason);
	assert_string_equal(e->text, text);
	hr_ingest_close(e->channel);
}

/* The same stream is one of the same boot and cluster, with a whole secret. */
static void test_wrong_opens(void **state)
{
	Headrace__Open o = ingest_open("n1");
	struct rig rig;
	struct end e, again[4];

	ingest_start(&rig, state, &hr_ingest_defaults);
	o.secret.len--;
	refused(&rig, &o, "malformed", "the secret must have 16 bytes");
	o = ingest_open("n1");
	o.job = "";
	refused(&rig, &o, "malformed", "a stream must have a job, a node and an instance");
	o = ingest_open("n1");
	o.instance = 0;
	refused(&rig, &o, "malformed", "a stream must have a job, a node and an instance");
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 4);
	end_marked(&e, 4);
	o = ingest_open("n1");
	o.boot_id = "c";
	refused(&rig, &o, "malformed", "the stream of job 7 on n1 has another boot or cluster");
	o = ingest_open("n1");
	o.cluster = "d";
	refused(&rig, &o, "malformed", "the stream of job 7 on n1 has another boot or cluster");
	o = ingest_open("n1");
	o.first_seq = 6;
	o.last_seq = 4;
	refused(&rig, &o, "behind", "the store has frames up to 4, but the daemon has 6 to 4");
	o.first_seq = 1;
	o.last_seq = 3;
	refused(&rig, &o, "behind", "the store has frames up to 4, but the daemon has 1 to 3");
	/* None of them takes the stream from its daemon. */
	end_losses(&e, 5, 5);
	end_marked(&e, 5);
	o.last_seq = 5; /* the daemon has exactly what is stored, or one frame more */
	end_try(&rig, &again[0], &o, &ingest_anything);
	assert_int_equal(again[0].mark, 5);
	hr_ingest_close(again[0].channel);
	o.first_seq = 6;
	o.last_seq = 6;
	end_try(&rig, &again[1], &o, &ingest_anything);
	assert_int_equal(again[1].mark, 5);
	hr_ingest_close(again[1].channel);
	/* Another attempt, and another instance, are other streams. */
	o = ingest_open("n1");
	o.attempt = 1;
	end_try(&rig, &again[2], &o, &ingest_anything);
	assert_int_equal(again[2].mark, 1);
	hr_ingest_close(again[2].channel);
	o = ingest_open("n1");
	o.instance = 2;
	end_try(&rig, &again[3], &o, &ingest_anything);
	assert_int_equal(again[3].mark, 1);
	hr_ingest_close(again[3].channel);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
}

/* Failover: another collector has acknowledged what the daemon has forgotten. */
static void test_begun_elsewhere(void **state)
{
	struct rig rig;
	struct end e;
	uint64_t last;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 8, 9);
	assert_int_equal(e.opened, 1);
	assert_int_equal(e.mark, 7);
	end_losses(&e, 8, 9);
	end_marked(&e, 9);
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 20, 25);
	assert_int_equal(e.mark, 19);
	end_losses(&e, 20, 21);
	end_marked(&e, 21);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	assert_true(frames_first(rig.store, "7", "n1", &last) <= 8);
	assert_int_equal(last, 21);
}

static void test_newer_kinds(void **state)
{
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 2);
	end_send(&e, frame_newer(3));
	end_losses(&e, 4, 4);
	end_marked(&e, 4);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_takeover),	 T(test_denied_later),	    T(test_denied_of_a_run),
	    T(test_users),	 T(test_id_of_a_scheduler), T(test_uid_of_a_node),
	    T(test_malformed),	 T(test_odd_opens),	    T(test_begun_elsewhere),
	    T(test_newer_kinds), T(test_wrong_opens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
