/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in, acknowledgements out, without sockets: what is stored, what is refused, and what a failed sync does. */
#include "tests/collector/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collector/server/ingest.h"

#define WAIT_MS 10000

/* libc's, with a failure to order: the next syncs of data fail, as they do once when a disk does. */
static atomic_int failing_syncs;

int fdatasync(int fd) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
	if (atomic_load(&failing_syncs) > 0) {
		atomic_fetch_sub(&failing_syncs, 1);
		errno = EIO;
		return -1;
	}
	return fsync(fd);
}

int syncfs(int fd) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
	(void)fd;
	if (atomic_load(&failing_syncs) > 0) {
		atomic_fetch_sub(&failing_syncs, 1);
		errno = EIO;
		return -1;
	}
	return 0;
}

struct rig {
	struct hr_ingest *in;
	const char *store;
	int bell;
};

/* A daemon's end of a channel, with all that was said to it. */
struct end {
	struct rig *rig;
	struct hr_channel *channel;
	struct hr_answer last; /* but RELEASED */
	char reason[32], text[256];
	unsigned opened, acks, nacks;
	uint64_t mark;
	size_t released;
	bool gone;
};

static void ring(void *self)
{
	struct rig *rig = self;

	assert_int_equal(eventfd_write(rig->bell, 1), 0);
}

static void take(void *context, const struct hr_answer *a)
{
	struct end *e = a->self;

	(void)context;
	switch (a->kind) {
	case HR_ANSWER_RELEASED:
		e->released += a->bytes;
		return;
	case HR_ANSWER_OPENED:
		e->opened++;
		break;
	case HR_ANSWER_ACK:
		e->acks++;
		break;
	case HR_ANSWER_NACK:
		e->nacks++;
		snprintf(e->reason, sizeof(e->reason), "%s", a->reason);
		snprintf(e->text, sizeof(e->text), "%s", a->text);
		break;
	case HR_ANSWER_GONE:
		e->gone = true;
		return;
	}
	e->mark = a->mark;
	e->last = *a;
}

static void listen_once(struct rig *rig)
{
	struct pollfd p = {.fd = rig->bell, .events = POLLIN};
	eventfd_t n;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(eventfd_read(rig->bell, &n), 0);
	hr_ingest_answers(rig->in, take, NULL);
}

static void start(struct rig *rig, void **state, const struct hr_ingest_config *config)
{
	struct hr_ingest_config c = *config;

	rig->store = help_path(state, "store");
	rig->bell = eventfd(0, EFD_CLOEXEC);
	assert_true(rig->bell >= 0);
	assert_int_equal(hr_store_create(rig->store), 0);
	c.store = rig->store;
	c.wake = ring;
	c.self = rig;
	assert_int_equal(hr_ingest_new(&c, &rig->in), 0);
}

static void stop(struct rig *rig)
{
	hr_ingest_free(rig->in);
	close(rig->bell);
}

static const struct hr_ingest_right anything = {.peer = "node n1"};

static struct hr_stream_id stream_id(const char *node)
{
	return (struct hr_stream_id){
	    .cluster = "c", .job = "7", .node = node, .boot_id = "b", .instance = 1};
}

static void open_raw(struct rig *rig, struct end *e, const char *node, uint8_t secret,
		     const struct hr_ingest_right *right, uint64_t first, uint64_t last)
{
	Headrace__Open o = HEADRACE__OPEN__INIT;
	uint8_t bytes[16];

	memset(bytes, secret, sizeof(bytes));
	*e = (struct end){.rig = rig};
	o.cluster = "c";
	o.job = "7";
	o.node = (char *)node;
	o.boot_id = "b";
	o.instance = 1;
	o.secret = (ProtobufCBinaryData){sizeof(bytes), bytes};
	o.first_seq = first;
	o.last_seq = last;
	assert_int_equal(hr_ingest_open(rig->in, e, &o, right, &e->channel), 0);
	while (e->opened == 0 && e->nacks == 0)
		listen_once(rig);
}

static void open_end(struct rig *rig, struct end *e, const char *node, uint64_t mark)
{
	open_raw(rig, e, node, 5, &anything, 0, 0);
	assert_int_equal(e->opened, 1);
	assert_int_equal(e->mark, mark);
}

static void send_frame(struct end *e, struct frame f)
{
	assert_int_equal(hr_ingest_frame(e->channel, f.buf, f.bytes), 0);
}

static void send_losses(struct end *e, uint64_t first, uint64_t last)
{
	for (uint64_t seq = first; seq <= last; seq++)
		send_frame(e, frame_loss(seq));
}

static void wait_mark(struct end *e, uint64_t mark)
{
	while (e->mark < mark)
		listen_once(e->rig);
	assert_int_equal(e->mark, mark);
}

static void wait_nack(struct end *e, unsigned nacks, const char *reason)
{
	while (e->nacks < nacks)
		listen_once(e->rig);
	assert_int_equal(e->nacks, nacks);
	assert_string_equal(e->reason, reason);
}

/* ---- exactly once ---------------------------------------------------------------------------- */

static void test_once(void **state)
{
	struct hr_stream_id id = stream_id("n1");
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_frame(&e, frame_start(1, &id)); /* the daemon's own: the store has it */
	send_losses(&e, 2, 100);
	wait_mark(&e, 100);
	send_losses(&e, 50, 120); /* resent: those up to 100 are there */
	wait_mark(&e, 120);
	send_frame(&e, frame_start(80, &id)); /* the head of a later segment of the spool */
	send_losses(&e, 121, 121);
	wait_mark(&e, 121);
	assert_int_equal(e.nacks, 0);
	hr_ingest_close(e.channel);
	open_end(&rig, &e, "n1", 121);
	send_losses(&e, 120, 121); /* nothing new: acknowledged all the same */
	while (e.acks == 0)
		listen_once(&rig);
	assert_int_equal(e.mark, 121);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 121);
}

static void test_gap(void **state)
{
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 10);
	send_losses(&e, 12, 20);
	wait_nack(&e, 1, "gap"); /* one word for all nine */
	assert_false(e.last.closed);
	send_losses(&e, 12, 14); /* went back, and still wrong */
	wait_nack(&e, 2, "gap");
	send_losses(&e, 11, 20);
	wait_mark(&e, 20);
	assert_int_equal(e.nacks, 2);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 20);
}

static void test_two_streams(void **state)
{
	struct rig rig;
	struct end a, b;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &a, "n1", 1);
	open_end(&rig, &b, "n2", 1);
	for (uint64_t seq = 2; seq <= 50; seq++) {
		send_losses(&a, seq, seq);
		send_losses(&b, seq, seq);
	}
	wait_mark(&a, 50);
	wait_mark(&b, 50);
	hr_ingest_close(a.channel);
	hr_ingest_close(b.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 50);
	frames_check(rig.store, "7", "n2", 50);
}

/* All that has come when it stops is on disk and acknowledged. */
static void test_stop_commits(void **state)
{
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 300);
	hr_ingest_stop(rig.in);
	while (!hr_ingest_stopped(rig.in))
		listen_once(&rig);
	hr_ingest_answers(rig.in, take, NULL);
	assert_int_equal(e.mark, 300);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 300);
}

static void test_memory_is_released(void **state)
{
	struct rig rig;
	struct end e;
	size_t sent = 0;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	for (uint64_t seq = 2; seq <= 10; seq++) {
		struct frame f =
		    frame_loss(seq + (seq > 8)); /* the last two are ignored, and released */

		sent += f.bytes;
		send_frame(&e, f);
	}
	while (e.released < sent)
		listen_once(&rig);
	assert_int_equal(e.released, sent);
	hr_ingest_close(e.channel);
	stop(&rig);
}

/* Who removes segments under a collector loses what they held, and not what comes after. */
static void test_removed(void **state)
{
	struct rig rig;
	struct end e;
	char path[4096];

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 10);
	wait_mark(&e, 10);
	snprintf(path, sizeof(path), "%s/jobs/7/n1.0000000000000001-0/000001.seg", rig.store);
	assert_int_equal(unlink(path), 0);
	send_losses(&e, 11, 20);
	wait_nack(&e, 1, "error");
	assert_true(e.last.closed);
	assert_non_null(strstr(e.text, "was removed under the collector"));
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "n1", 5, &anything, 11, 20);
	assert_int_equal(e.mark, 10); /* the rest is whole */
	send_losses(&e, 11, 20);
	wait_mark(&e, 20);
	hr_ingest_close(e.channel);
	stop(&rig);
}

/* What was sent before a close counts until it is done with: GONE says when, and nothing follows it. */
static void test_closed_is_gone(void **state)
{
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 50);
	hr_ingest_close(e.channel);
	while (!e.gone)
		listen_once(&rig);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 50);
}

/* Each stream has descriptors: past the limit those that nobody uses are closed, and else one has to wait. */
static void test_streams_have_a_limit(void **state)
{
	struct hr_ingest_config config = hr_ingest_defaults;
	struct end a, b, c;
	struct rig rig;

	config.threads = 1;
	config.max_streams = 2;
	start(&rig, state, &config);
	open_end(&rig, &a, "n1", 1);
	open_end(&rig, &b, "n2", 1);
	open_raw(&rig, &c, "n3", 5, &anything, 0, 0);
	wait_nack(&c, 1, "full");
	assert_false(c.last.closed);
	send_losses(&a, 2, 2);
	wait_mark(&a, 2);
	hr_ingest_close(a.channel);
	wait_mark(&c, 1); /* in the place of n1's, which was idle */
	assert_int_equal(c.opened, 1);
	hr_ingest_close(b.channel);
	open_end(&rig, &a, "n1", 2);
	hr_ingest_close(a.channel);
	hr_ingest_close(c.channel);
	stop(&rig);
}

static void test_a_user_has_a_share_of_streams(void **state)
{
	const struct hr_ingest_right user = {.own_jobs = true, .uid = 1000, .peer = "user 1000"};
	struct hr_ingest_config config = hr_ingest_defaults;
	struct end a, b, c;
	struct rig rig;

	config.threads = 1;
	config.max_streams = 4;
	start(&rig, state, &config);
	open_raw(&rig, &a, "n1", 5, &user, 0, 0);
	open_raw(&rig, &b, "n2", 5, &user, 0, 0);
	assert_int_equal(a.opened + b.opened, 2);
	open_raw(&rig, &c, "n3", 5, &user, 0, 0);
	wait_nack(&c, 1, "full");
	hr_ingest_close(c.channel);
	open_raw(&rig, &c, "n4", 5, &anything, 0, 0);
	assert_int_equal(c.opened, 1);
	hr_ingest_close(a.channel);
	hr_ingest_close(b.channel);
	hr_ingest_close(c.channel);
	stop(&rig);
}

/* A user begins no more than so many; what has begun goes on, and a node is free. */
static void test_a_user_begins_so_many(void **state)
{
	const struct hr_ingest_right user = {.own_jobs = true, .uid = 1000, .peer = "user 1000"};
	static const char *const nodes[] = {"n1", "n2"};
	struct hr_ingest_config config = hr_ingest_defaults;
	struct rig rig;
	struct end e;

	config.max_new = 2;
	start(&rig, state, &config);
	for (unsigned i = 0; i < 4; i++) { /* each twice: the second time it is there */
		open_raw(&rig, &e, nodes[i % 2], 5, &user, 0, 0);
		assert_int_equal(e.opened, 1);
		hr_ingest_close(e.channel);
	}
	open_raw(&rig, &e, "n3", 5, &user, 0, 0);
	wait_nack(&e, 1, "limit");
	assert_true(e.last.closed && e.last.retry_ms >= 1000);
	assert_non_null(strstr(e.text, "user 1000 has begun 2 streams"));
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "n3", 5, &anything, 0, 0);
	assert_int_equal(e.opened, 1);
	hr_ingest_close(e.channel);
	stop(&rig);
}

/* ---- who may -------------------------------------------------------------------------------- */

static void test_takeover(void **state)
{
	struct rig rig;
	struct end older, newer, thief;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &older, "n1", 1);
	send_losses(&older, 2, 5);
	wait_mark(&older, 5);
	open_raw(&rig, &thief, "n1", 6, &anything, 0, 0);
	wait_nack(&thief, 1, "denied");
	assert_true(thief.last.closed && thief.last.alarm);
	open_raw(&rig, &newer, "n1", 5, &anything, 0, 0);
	wait_mark(&newer, 5);
	wait_nack(&older, 1, "in_use");
	assert_true(older.last.closed);
	send_losses(&older, 6, 7); /* nobody's */
	send_losses(&newer, 6, 9);
	wait_mark(&newer, 9);
	hr_ingest_close(older.channel);
	hr_ingest_close(thief.channel);
	send_losses(&newer, 10, 10); /* the older one's end is not the newer one's */
	wait_mark(&newer, 10);
	hr_ingest_close(newer.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 10);
}

/* The secret outlives the collector. */
static void test_denied_later(void **state)
{
	struct hr_stream_state s;
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 5);
	wait_mark(&e, 5);
	hr_ingest_close(e.channel);
	stop(&rig);
	start(&rig, state, &hr_ingest_defaults);
	open_raw(&rig, &e, "n1", 6, &anything, 0, 0);
	wait_nack(&e, 1, "denied");
	hr_ingest_close(e.channel);
	open_end(&rig, &e, "n1", 5);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_true(s.has_secret && s.connected && !s.uid_known);
	assert_string_equal(s.peer, "node n1");
	assert_true(s.heard_ns > UINT64_C(1600000000000000000));
	hr_ingest_close(e.channel);
	stop(&rig);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_false(s.connected);
	assert_int_equal(s.mark, 5);
}

/* A stream that a run wrote into the store has no owner who could show that it is theirs. */
static void test_denied_of_a_run(void **state)
{
	struct hr_stream_id id = stream_id("n1");
	struct hr_writer *w;
	struct rig rig;
	struct end e;

	assert_int_equal(hr_writer_open(help_path(state, "store"), &id, &w, NULL), 0);
	assert_int_equal(help_append_loss(w, 2), 0);
	assert_int_equal(hr_writer_close(w), 0);
	start(&rig, state, &hr_ingest_defaults);
	open_raw(&rig, &e, "n1", 5, &anything, 0, 0);
	wait_nack(&e, 1, "denied");
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 2);
}

static void test_users(void **state)
{
	const struct hr_ingest_right ada = {.own_jobs = true, .uid = 1000, .peer = "user ada"};
	const struct hr_ingest_right bob = {.own_jobs = true, .uid = 1001, .peer = "user bob"};
	struct hr_stream_state s;
	struct rig rig;
	struct end e, other;

	start(&rig, state, &hr_ingest_defaults);
	open_raw(&rig, &e, "n1", 5, &ada, 0, 0);
	assert_int_equal(e.opened, 1);
	send_frame(&e, frame_job(2, 1000));
	wait_mark(&e, 2);
	open_raw(&rig, &other, "n1", 5, &bob, 0, 0); /* even with the secret */
	wait_nack(&other, 1, "denied");
	hr_ingest_close(other.channel);
	open_raw(&rig, &other, "n2", 5, &bob, 0, 0); /* nor another stream of her job */
	wait_nack(&other, 1, "denied");
	assert_non_null(strstr(other.text, "choose another name"));
	hr_ingest_close(other.channel);
	send_frame(&e, frame_job(3, 1001)); /* nor may she pretend to be him */
	wait_nack(&e, 1, "denied");
	assert_true(e.last.closed);
	hr_ingest_close(e.channel);
	stop(&rig);
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

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_frame(&e, frame_job(2, 1234));
	send_frame(&e, frame_job(3, 4321));
	wait_mark(&e, 3);
	hr_ingest_close(e.channel);
	stop(&rig);
	assert_int_equal(frames_state(rig.store, "7", &s), 0);
	assert_true(s.uid_known);
	assert_int_equal(s.uid, 1234);
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void test_malformed(void **state)
{
	struct hr_stream_id other_id = stream_id("n9");
	struct rig rig;
	struct end e, honest;
	struct frame bad[] = {frame_garbage(),
			      frame_loss(0),
			      frame_index(3),
			      frame_index(0),
			      frame_start(3, &other_id),
			      frame_start(1, &other_id),
			      frame_bomb(3, 4000000)};

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &honest, "n2", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		open_end(&rig, &e, "n1", i == 0 ? 1 : 2);
		send_losses(&e, 2, 2);
		send_frame(&e, bad[i]);
		send_losses(&e, 3, 3); /* the channel is over */
		wait_nack(&e, 1, "malformed");
		assert_true(e.last.closed && e.last.alarm);
		send_losses(&honest, i + 2, i + 2);
		wait_mark(&honest, i + 2);
		hr_ingest_close(e.channel);
	}
	hr_ingest_close(honest.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 2);
	frames_check(rig.store, "7", "n2", sizeof(bad) / sizeof(bad[0]) + 1);
}

static void test_odd_opens(void **state)
{
	struct rig rig;
	struct end e;
	char name[300];

	start(&rig, state, &hr_ingest_defaults);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	open_raw(&rig, &e, name, 5, &anything, 0, 0);
	wait_nack(&e, 1, "malformed");
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "", 5, &anything, 0, 0);
	wait_nack(&e, 1, "malformed");
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "../../x", 5, &anything, 0, 0);
	assert_int_equal(e.opened, 1);
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "n1", 5, &anything, 80, 9);
	wait_nack(&e, 1, "behind");
	hr_ingest_close(e.channel);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 9);
	wait_mark(&e, 9);
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "n1", 5, &anything, 1, 4); /* a spool that has lost its end */
	wait_nack(&e, 1, "behind");
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "../../x", 1);
}

/* Failover: another collector has acknowledged what the daemon has forgotten. */
static void test_begun_elsewhere(void **state)
{
	struct rig rig;
	struct end e;
	uint64_t last;

	start(&rig, state, &hr_ingest_defaults);
	open_raw(&rig, &e, "n1", 5, &anything, 8, 9);
	assert_int_equal(e.opened, 1);
	assert_int_equal(e.mark, 7);
	send_losses(&e, 8, 9);
	wait_mark(&e, 9);
	hr_ingest_close(e.channel);
	open_raw(&rig, &e, "n1", 5, &anything, 20, 25);
	assert_int_equal(e.mark, 19);
	send_losses(&e, 20, 21);
	wait_mark(&e, 21);
	hr_ingest_close(e.channel);
	stop(&rig);
	assert_true(frames_first(rig.store, "7", "n1", &last) <= 8);
	assert_int_equal(last, 21);
}

static void test_newer_kinds(void **state)
{
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 2);
	send_frame(&e, frame_newer(3));
	send_losses(&e, 4, 4);
	wait_mark(&e, 4);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 4);
}

/* ---- disks ----------------------------------------------------------------------------------- */

static void sync_fails(void **state, unsigned sync_each)
{
	struct hr_ingest_config config = hr_ingest_defaults;
	struct rig rig;
	struct end e;

	config.sync_each = sync_each;
	start(&rig, state, &config);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 5);
	wait_mark(&e, 5);
	atomic_store(&failing_syncs, 1);
	send_losses(&e, 6, 6);
	wait_nack(&e, 1, "full");
	assert_int_equal(e.mark, 5); /* 6 can be read, and nobody knows whether it is on disk */
	assert_true(e.last.alarm && !e.last.closed && e.last.retry_ms > 0);
	send_losses(&e, 7, 8);
	send_losses(&e, 6, 8);
	wait_mark(&e, 8);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 8);
}

static void test_fdatasync_fails(void **state)
{
	sync_fails(state, 16);
}

static void test_syncfs_fails(void **state)
{
	sync_fails(state, 0);
}

/* A stream that cannot be synced when it is opened is opened later. */
static void test_open_waits(void **state)
{
	struct rig rig;
	struct end e;

	start(&rig, state, &hr_ingest_defaults);
	atomic_store(&failing_syncs, 1);
	open_raw(&rig, &e, "n1", 5, &anything, 0, 0);
	wait_nack(&e, 1, "full");
	assert_false(e.last.closed);
	while (e.opened == 0)
		listen_once(&rig);
	send_losses(&e, 2, 3);
	wait_mark(&e, 3);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 3);
}

/* Of two that wait for room the one that came last is let in, and keeps it. */
static void test_open_waits_in_order(void **state)
{
	struct rig rig;
	struct end old, new;

	start(&rig, state, &hr_ingest_defaults);
	atomic_store(&failing_syncs, 2);
	open_raw(&rig, &old, "n1", 5, &anything, 0, 0);
	wait_nack(&old, 1, "full");
	open_raw(&rig, &new, "n1", 5, &anything, 0, 0);
	while (new.opened == 0)
		listen_once(&rig);
	wait_nack(&old, 2, "in_use");
	assert_true(old.last.closed);
	send_losses(&new, 2, 3);
	wait_mark(&new, 3);
	hr_ingest_close(old.channel);
	hr_ingest_close(new.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 3);
}

/* An idle stream lets go of its writer, and goes on where it was. */
static void test_idle(void **state)
{
	struct hr_ingest_config config = hr_ingest_defaults;
	struct hr_stream_id id = stream_id("n1");
	struct hr_writer *w;
	struct rig rig;
	struct end e;
	int r;

	config.idle_ms = 100;
	start(&rig, state, &config);
	open_end(&rig, &e, "n1", 1);
	send_losses(&e, 2, 3);
	wait_mark(&e, 3);
	assert_int_equal(hr_writer_open(rig.store, &id, &w, NULL), -EBUSY);
	hr_ingest_close(e.channel);
	for (int i = 0; (r = hr_writer_open(rig.store, &id, &w, NULL)) == -EBUSY && i < 100; i++)
		usleep(100000);
	assert_int_equal(r, 0);
	assert_int_equal(hr_writer_close(w), 0);
	open_end(&rig, &e, "n1", 3);
	send_losses(&e, 4, 4);
	wait_mark(&e, 4);
	hr_ingest_close(e.channel);
	stop(&rig);
	frames_check(rig.store, "7", "n1", 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_once),
	    T(test_gap),
	    T(test_two_streams),
	    T(test_stop_commits),
	    T(test_memory_is_released),
	    T(test_removed),
	    T(test_closed_is_gone),
	    T(test_streams_have_a_limit),
	    T(test_a_user_has_a_share_of_streams),
	    T(test_a_user_begins_so_many),
	    T(test_takeover),
	    T(test_denied_later),
	    T(test_denied_of_a_run),
	    T(test_users),
	    T(test_uid_of_a_node),
	    T(test_malformed),
	    T(test_odd_opens),
	    T(test_begun_elsewhere),
	    T(test_newer_kinds),
	    T(test_fdatasync_fails),
	    T(test_syncfs_fails),
	    T(test_open_waits),
	    T(test_open_waits_in_order),
	    T(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
