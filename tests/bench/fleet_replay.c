/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_replay.c - loads the frames of a store; sends them */
#include "tests/bench/fleet_replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "net/conn.h"
#include "net/wire.h"
#include "store/store.h"
#include "tests/collector/frames.h"

static void replay_fail(const char *what)
{
	fprintf(stderr, "fleet: %s\n", what);
	exit(1);
}

static void add_frame(struct fleet_record *r, const struct hr_stream *s, uint32_t i,
		      uint64_t *first_ns)
{
	struct fleet_frame *f = &r->frames[r->n++];
	Headrace__Frame *msg;

	if (hr_stream_read(s, i, &msg) < 0 || !msg->clock ||
	    hr_frame_pack(msg, 1, &f->buf, &f->bytes) < 0)
		replay_fail("cannot read a frame of the record");
	if (*first_ns == 0)
		*first_ns = msg->clock->boot_ns;
	f->seq = msg->seq;
	f->due_ns = msg->clock->boot_ns > *first_ns ? msg->clock->boot_ns - *first_ns : 0;
	r->last_ns = f->due_ns > r->last_ns ? f->due_ns : r->last_ns;
	r->bytes += f->bytes;
	if (msg->body_case == HEADRACE__FRAME__BODY_PROCESSES)
		for (size_t k = 0; k < msg->processes->n_rows; k++)
			r->processes = msg->processes->rows[k]->proc > r->processes
					   ? msg->processes->rows[k]->proc
					   : r->processes;
	headrace__frame__free_unpacked(msg, NULL);
}

void fleet_record_load(struct fleet_record *r, const char *store)
{
	const struct hr_stream *s;
	struct hr_catalog *catalog;
	uint64_t first_ns = 0;
	char *error = NULL;

	*r = (struct fleet_record){0};
	if (hr_catalog_open((const char *const[]){store}, 1, NULL, &catalog, &error) < 0)
		replay_fail(error);
	if (hr_catalog_streams(catalog, &s) != 1)
		replay_fail("the record must have one stream: one job on one node");
	r->frames = calloc(s->n_frames, sizeof(*r->frames));
	if (!r->frames)
		replay_fail("no memory");
	for (uint32_t i = 0; i < s->n_frames; i++)
		if (frame_is_sent(s->frames[i].kind))
			add_frame(r, s, i, &first_ns);
	hr_catalog_free(catalog);
}

void fleet_player_init(struct fleet_player *p, const struct fleet_record *r)
{
	*p = (struct fleet_player){.ack_s = calloc(r->n, sizeof(*p->ack_s))};
	if (!p->ack_s)
		replay_fail("no memory");
}

void fleet_player_turn(struct fleet_player *p, const struct fleet_record *r, struct hr_conn *conn,
		       uint64_t now_ns)
{
	Headrace__Use use = HEADRACE__USE__INIT;

	if (p->began_ns == 0) {
		p->began_ns = now_ns;
		use.channel = 1;
		hr_conn_send_now(conn, HR_WIRE(USE, use, &use));
	}
	for (; p->next < r->n && p->began_ns + r->frames[p->next].due_ns <= now_ns; p->next++) {
		const struct fleet_frame *f = &r->frames[p->next];
		uint8_t *buf;

		if (p->in_flight > 0 && p->in_flight + f->bytes > p->window_bytes)
			return;
		p->in_flight += f->bytes;
		buf = malloc(f->bytes);
		if (!buf)
			replay_fail("no memory");
		memcpy(buf, f->buf, f->bytes);
		if (hr_conn_send(conn, buf, f->bytes) < 0)
			replay_fail("cannot send");
	}
}

void fleet_player_acked(struct fleet_player *p, const struct fleet_record *r, uint64_t seq,
			uint64_t now_ns)
{
	for (; p->acked < p->next && r->frames[p->acked].seq <= seq; p->acked++) {
		p->ack_s[p->acked] =
		    (double)(now_ns - p->began_ns - r->frames[p->acked].due_ns) / 1e9;
		p->in_flight -= r->frames[p->acked].bytes;
	}
}
