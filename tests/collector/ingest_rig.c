/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collector/ingest_rig.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_MS 300000

/* libc's, with a failure to order: the next syncs of data fail, as they do once when a disk does. */
atomic_int ingest_failing_syncs;

int fdatasync(int fd) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
	if (atomic_load(&ingest_failing_syncs) > 0) {
		atomic_fetch_sub(&ingest_failing_syncs, 1);
		errno = EIO;
		return -1;
	}
	return fsync(fd);
}

int syncfs(int fd) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
	if (atomic_load(&ingest_failing_syncs) > 0) {
		atomic_fetch_sub(&ingest_failing_syncs, 1);
		errno = EIO;
		return -1;
	}
	return 0;
}

static void ring(void *self)
{
	struct rig *rig = self;

	assert_int_equal(eventfd_write(rig->bell, 1), 0);
}

static void take(const struct hr_answer *a)
{
	struct end *e = a->self;

	switch (a->kind) {
	case HR_ANSWER_RELEASED:
		e->released += a->bytes;
		return;
	case HR_ANSWER_OPENED:
		e->opened++;
		break;
	case HR_ANSWER_ACK:
		e->acks++;
		e->acked = a->mark;
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

void ingest_take(struct rig *rig)
{
	hr_ingest_answers(rig->in, take);
}

void ingest_listen(struct rig *rig)
{
	struct pollfd p = {.fd = rig->bell, .events = POLLIN};
	eventfd_t n;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(eventfd_read(rig->bell, &n), 0);
	ingest_take(rig);
}

void ingest_start(struct rig *rig, void **state, const struct hr_ingest_config *config)
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

void ingest_stop(struct rig *rig)
{
	hr_ingest_free(rig->in);
	close(rig->bell);
}

const struct hr_ingest_right ingest_anything = {.node = true, .peer = "node n1"};

struct hr_stream_id ingest_stream(const char *node)
{
	return (struct hr_stream_id){
	    .cluster = "c", .job = "7", .node = node, .boot_id = "b", .instance = 1};
}

Headrace__Open ingest_open(const char *node)
{
	static uint8_t secret[16];
	Headrace__Open o = HEADRACE__OPEN__INIT;

	o.cluster = "c";
	o.job = "7";
	o.node = (char *)node;
	o.boot_id = "b";
	o.instance = 1;
	o.secret = (ProtobufCBinaryData){sizeof(secret), secret};
	for (unsigned i = 0; i < sizeof(secret); i++)
		secret[i] = 5 >> i & 1;
	return o;
}

void end_try(struct rig *rig, struct end *e, const Headrace__Open *o,
	     const struct hr_ingest_right *right)
{
	*e = (struct end){.rig = rig};
	assert_int_equal(hr_ingest_open(rig->in, e, o, right, &e->channel), 0);
	while (e->opened == 0 && e->nacks == 0)
		ingest_listen(rig);
}

void end_open_as(struct rig *rig, struct end *e, const char *node, uint16_t secret,
		 const struct hr_ingest_right *right, uint64_t first, uint64_t last)
{
	Headrace__Open o = ingest_open(node);

	for (unsigned i = 0; i < o.secret.len; i++)
		o.secret.data[i] = secret >> i & 1;
	o.first_seq = first;
	o.last_seq = last;
	end_try(rig, e, &o, right);
}

void end_open(struct rig *rig, struct end *e, const char *node, uint64_t mark)
{
	end_open_as(rig, e, node, 5, &ingest_anything, 0, 0);
	assert_int_equal(e->opened, 1);
	assert_int_equal(e->mark, mark);
}

void end_send(struct end *e, struct frame f)
{
	assert_int_equal(hr_ingest_frame(e->channel, f.buf, f.bytes), 0);
}

void end_losses(struct end *e, uint64_t first, uint64_t last)
{
	for (uint64_t seq = first; seq <= last; seq++)
		end_send(e, frame_loss(seq));
}

void end_marked(struct end *e, uint64_t mark)
{
	while (e->mark < mark)
		ingest_listen(e->rig);
	assert_int_equal(e->mark, mark);
}

void end_nacked(struct end *e, unsigned nacks, const char *reason)
{
	while (e->nacks < nacks)
		ingest_listen(e->rig);
	assert_int_equal(e->nacks, nacks);
	assert_string_equal(e->reason, reason);
}
