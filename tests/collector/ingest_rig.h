/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_rig.h - ingest without sockets: daemons' ends of channels, and syncs that can be made to fail
 *
 * Errors    Every function asserts its own success.
 * Threads   One; the rig's own bell wakes it.
 */
#ifndef HEADRACE_TESTS_COLLECTOR_INGEST_RIG_H
#define HEADRACE_TESTS_COLLECTOR_INGEST_RIG_H

#include <stdatomic.h>

#include "collector/ingest.h"
#include "tests/collector/frames.h"

/* The next syncs of data that fail, as they do once when a disk does. */
extern atomic_int ingest_failing_syncs;

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
	uint64_t acked; /* mark of the last acknowledgement */
	size_t released;
	bool gone;
};

void ingest_start(struct rig *rig, void **state, const struct hr_ingest_config *config);
void ingest_stop(struct rig *rig);
void ingest_take(struct rig *rig);   /* the answers that are there */
void ingest_listen(struct rig *rig); /* waits for answers, and takes them */

extern const struct hr_ingest_right ingest_anything;
struct hr_stream_id ingest_stream(const char *node);

/* A stream with secret 5; the secret is overwritten by the next call. */
Headrace__Open ingest_open(const char *node);
void end_try(struct rig *rig, struct end *e, const Headrace__Open *o,
	     const struct hr_ingest_right *right); /* opens it, and waits for the answer */

/*
 * Opens, and waits for what is answered; end_open: with secret 5 and any right, and it is at `mark`.
 * `secret`: each bit is a byte of the secret.
 */
void end_open_as(struct rig *rig, struct end *e, const char *node, uint16_t secret,
		 const struct hr_ingest_right *right, uint64_t first, uint64_t last);
void end_open(struct rig *rig, struct end *e, const char *node, uint64_t mark);
void end_send(struct end *e, struct frame f);
void end_losses(struct end *e, uint64_t first, uint64_t last);
void end_marked(struct end *e, uint64_t mark); /* waits for it */
void end_nacked(struct end *e, unsigned nacks, const char *reason);

#endif
