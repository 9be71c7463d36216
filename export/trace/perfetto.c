/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace as packets of Perfetto (its protos/perfetto/trace/trace_packet.proto). All packets
 * belong to one sequence, so texts are interned once in the whole trace.
 */
#include "export/trace/trace_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define SEQUENCE	   1 /* trusted_packet_sequence_id; 0 is invalid */
#define CLOCK_REAL	   1 /* builtin clocks of Perfetto */
#define CLOCK_BOOT	   6
#define STATE_CLEARED	   1 /* sequence_flags */
#define NEEDS_STATE	   2
#define UNIT_BYTES	   3
#define SLICE_BYTES	   100u /* a typical operation: a begin with its arguments, and an end */
#define REGION_BYTES	   150u /* a typical region, with its texts */
#define COUNTER_BYTES	   40u
#define MESSAGE_BYTES_MOST 10 /* of a varint: the length of a message */

/* Field numbers of the messages. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_TRACK = 60,
	PACKET_FIRST = 87
};
enum { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8
};
enum { OWNER_PID = 1, PROCESS_NAME = 6, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3 };
enum {
	EVENT_CATEGORY_ID = 3,
	EVENT_ARGUMENT = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_ID = 10,
	EVENT_TRACK = 11,
	EVENT_DOUBLE = 44
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_ARGUMENT = 3, INTERNED_STRING = 29 };
enum { INTERNED_ID = 1, INTERNED_TEXT = 2 };
enum { ARG_NAME_ID = 1, ARG_BOOL = 2, ARG_INT = 4, ARG_TEXT = 6, ARG_TEXT_ID = 17 };

struct packets {
	struct hr_trace_out out;
	FILE *to;
	int error; /* of the first write that failed; the rest is dropped */
};

/* ---- protobuf ---- */

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
	while (v >= 128) {
		*at++ = (uint8_t)v | 128;
		v >>= 7;
	}
	*at++ = (uint8_t)v;
	return at;
}

static uint8_t *put_number(uint8_t *at, unsigned field, uint64_t v)
{
	return put_varint(put_varint(at, field << 3), v);
}

static uint8_t *put_bytes(uint8_t *at, unsigned field, const void *data, size_t n)
{
	at = put_varint(put_varint(at, field << 3 | 2), n);
	memcpy(at, data, n);
	return at + n;
}

/* Texts are escaped as in the SQL tables. This many bytes suffice for one of `bytes` bytes. */
static size_t escaped_room(size_t bytes)
{
	return 4 * bytes + 1 + 2 * (size_t)MESSAGE_BYTES_MOST;
}

static uint8_t *put_text(uint8_t *at, unsigned field, const void *text, size_t bytes)
{
	size_t n = hr_text_escape(NULL, 0, text, bytes);

	at = put_varint(put_varint(at, field << 3 | 2), n);
	hr_text_escape((char *)at, n + 1, text, bytes);
	return at + n;
}

static uint8_t *put_name(uint8_t *at, unsigned field, const char *name)
{
	return put_text(at, field, name, strlen(name));
}

static uint8_t *put_double(uint8_t *at, unsigned field, double v)
{
	at = put_varint(at, field << 3 | 1);
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

/* A message that another one contains. A byte is kept for its length, so it must be short. */
static uint8_t *begin_short(uint8_t *at, unsigned field)
{
	return put_varint(at, field << 3 | 2) + 1;
}

static uint8_t *end_short(uint8_t *begin, uint8_t *at)
{
	begin[-1] = (uint8_t)(at - begin); /* below 128: see the callers */
	return at;
}

static void write_out(struct packets *p, const uint8_t *data, size_t n)
{
	if (p->error == 0 && fwrite_unlocked(data, 1, n, p->to) < n)
		p->error = errno != 0 ? -errno : -EIO;
}

static void write_packet(struct packets *p, const uint8_t *packet, size_t n)
{
	uint8_t head[1 + MESSAGE_BYTES_MOST];
	size_t n_head = (size_t)(put_varint(put_varint(head, TRACE_PACKET << 3 | 2), n) - head);

	write_out(p, head, n_head);
	write_out(p, packet, n);
}

static uint8_t *put_head(uint8_t *at, uint64_t ns)
{
	at = put_number(at, PACKET_TIMESTAMP, ns);
	at = put_number(at, PACKET_SEQUENCE, SEQUENCE);
	return put_number(at, PACKET_FLAGS, NEEDS_STATE);
}

static const char *const arg_names[] = {
#define HR__ARG(id, name) [HR_ARG_##id] = (name),
    HR_ARGS(HR__ARG)
#undef HR__ARG
};

const char *hr_arg_name(enum hr_arg arg)
{
	return arg_names[arg];
}

/* ---- the first packets ---- */

static uint8_t *put_clock(uint8_t *at, unsigned clock, uint64_t ns)
{
	uint8_t *begin = begin_short(at, SNAPSHOT_CLOCK);

	at = put_number(begin, CLOCK_ID, clock);
	return end_short(begin, put_number(at, CLOCK_TIMESTAMP, ns));
}

/* A text gets an id, which later packets use. */
static void write_interned(struct packets *p, unsigned field, uint64_t id, const void *text,
			   size_t bytes)
{
	size_t room = escaped_room(bytes) + 64;
	uint8_t *packet = malloc(3 * room), *entry, *list, *at;

	if (packet == NULL)
		return; /* names and paths are missing then, but the trace is whole */
	entry = packet + room;
	list = entry + room;
	at = put_text(put_number(entry, INTERNED_ID, id), INTERNED_TEXT, text, bytes);
	at = put_bytes(list, field, entry, (size_t)(at - entry));
	bytes = (size_t)(at - list);
	at = put_number(packet, PACKET_SEQUENCE, SEQUENCE);
	at = put_number(at, PACKET_FLAGS, NEEDS_STATE);
	at = put_bytes(at, PACKET_INTERNED, list, bytes);
	write_packet(p, packet, (size_t)(at - packet));
	free(packet);
}

static void perfetto_intern(struct hr_trace_out *o, enum hr_interned kind, uint64_t number,
			    const struct hr_bytes *text)
{
	static const unsigned fields[] = {[HR_INTERNED_CATEGORY] = INTERNED_CATEGORY,
					  [HR_INTERNED_NAME] = INTERNED_NAME,
					  [HR_INTERNED_STRING] = INTERNED_STRING};

	write_interned((struct packets *)o, fields[kind], number, text->data, text->bytes);
}

static void perfetto_begin(struct hr_trace_out *o, uint64_t boot_ns, uint64_t real_ns)
{
	struct packets *p = (struct packets *)o;
	uint8_t packet[128], *at = packet, *begin;

	at = put_number(at, PACKET_SEQUENCE, SEQUENCE);
	at = put_number(at, PACKET_FLAGS, STATE_CLEARED);
	at = put_number(at, PACKET_FIRST, 1);
	begin = begin_short(at, PACKET_CLOCK_SNAPSHOT);
	at = put_number(begin, SNAPSHOT_PRIMARY, CLOCK_BOOT);
	at = put_clock(at, CLOCK_BOOT, boot_ns);
	at = end_short(begin, put_clock(at, CLOCK_REAL, real_ns));
	write_packet(p, packet, (size_t)(at - packet));
	for (unsigned i = 1; i < HR_ARG_END; i++)
		write_interned(p, INTERNED_ARGUMENT, i, hr_arg_name(i), strlen(hr_arg_name(i)));
}

/* ---- tracks ---- */

/* Describes the process or the thread that the track belongs to. */
static uint8_t *put_owner(uint8_t *at, const struct hr_track *t, uint8_t *scratch)
{
	uint8_t *end = put_number(scratch, OWNER_PID, (uint64_t)t->pid);

	if (!t->process)
		end = put_number(end, THREAD_TID, (uint64_t)t->tid);
	end = put_name(end, t->process ? PROCESS_NAME : THREAD_NAME, t->name);
	return put_bytes(at, t->process ? TRACK_PROCESS : TRACK_THREAD, scratch,
			 (size_t)(end - scratch));
}

static void perfetto_track(struct hr_trace_out *o, const struct hr_track *t)
{
	struct packets *p = (struct packets *)o;
	size_t room = 128 + escaped_room(strlen(t->name));
	uint8_t *packet = malloc(3 * room), *track, *scratch, *at, *begin;

	if (packet == NULL)
		return;
	track = packet + room;
	scratch = track + room;
	at = put_number(track, TRACK_UUID, t->id);
	if (t->parent != 0)
		at = put_number(at, TRACK_PARENT, t->parent);
	if (t->process || t->tid != 0)
		at = put_owner(at, t, scratch);
	else
		at = put_name(at, TRACK_NAME, t->name);
	if (t->values != HR_TRACK_SLICES) {
		begin = begin_short(at, TRACK_COUNTER);
		at = begin;
		if (t->values == HR_TRACK_BYTES)
			at = put_number(at, COUNTER_UNIT, UNIT_BYTES);
		at = end_short(begin, at);
	}
	room = (size_t)(at - track);
	at = put_number(packet, PACKET_SEQUENCE, SEQUENCE);
	at = put_bytes(at, PACKET_TRACK, track, room);
	write_packet(p, packet, (size_t)(at - packet));
	free(packet);
}

/* ---- events ---- */

static uint8_t *put_argument(uint8_t *at, const struct hr_argument *a)
{
	uint8_t *begin = begin_short(at, EVENT_ARGUMENT);

	at = put_number(begin, ARG_NAME_ID, a->name);
	switch (a->type) {
	case HR_ARG_BOOL:
		at = put_number(at, ARG_BOOL, a->value != 0);
		break;
	case HR_ARG_INTERNED:
		at = put_number(at, ARG_TEXT_ID, (uint64_t)a->value);
		break;
	default:
		at = put_number(at, ARG_INT, (uint64_t)a->value);
		break;
	}
	return end_short(begin, at);
}

/* An argument with a text, which can be long. */
static uint8_t *put_long_argument(uint8_t *at, const struct hr_argument *a)
{
	size_t n = hr_text_escape(NULL, 0, a->text.data, a->text.bytes);
	size_t inner = 2 + 1 + n; /* the id of the name, and the tag of the text */
	uint8_t length[MESSAGE_BYTES_MOST];

	inner += (size_t)(put_varint(length, n) - length);
	at = put_varint(put_varint(at, EVENT_ARGUMENT << 3 | 2), inner);
	at = put_number(at, ARG_NAME_ID, a->name);
	return put_text(at, ARG_TEXT, a->text.data, a->text.bytes);
}

/* Writes a packet with the event from `event` on, which ends at `at`. */
static void write_event(struct packets *p, uint64_t ns, const uint8_t *event, const uint8_t *at)
{
	uint8_t head[64], *end = put_head(head, ns);
	size_t n = (size_t)(at - event), n_packet;
	uint8_t outer[1 + MESSAGE_BYTES_MOST], *o;

	end = put_varint(put_varint(end, PACKET_TRACK_EVENT << 3 | 2), n);
	n_packet = (size_t)(end - head) + n;
	o = put_varint(put_varint(outer, TRACE_PACKET << 3 | 2), n_packet);
	write_out(p, outer, (size_t)(o - outer));
	write_out(p, head, (size_t)(end - head));
	write_out(p, event, n);
}

static void perfetto_slice(struct hr_trace_out *o, const struct hr_slice *s)
{
	static const unsigned types[] = {[HR_SLICE_BEGIN] = TYPE_BEGIN,
					 [HR_SLICE_END] = TYPE_END,
					 [HR_SLICE_INSTANT] = TYPE_INSTANT};
	uint8_t small[512], *event = small, *at;
	size_t room = 64;

	for (size_t i = 0; i < s->n_args; i++)
		room +=
		    32 + (s->args[i].type == HR_ARG_TEXT ? escaped_room(s->args[i].text.bytes) : 0);
	if (room > sizeof(small) && (event = malloc(room)) == NULL)
		return;
	at = put_number(event, EVENT_TYPE, types[s->type]);
	at = put_number(at, EVENT_TRACK, s->track->id);
	if (s->type != HR_SLICE_END) {
		at = put_number(at, EVENT_CATEGORY_ID, s->category);
		at = put_number(at, EVENT_NAME_ID, s->name);
	}
	for (size_t i = 0; i < s->n_args; i++)
		at = s->args[i].type == HR_ARG_TEXT ? put_long_argument(at, &s->args[i])
						    : put_argument(at, &s->args[i]);
	write_event((struct packets *)o, s->ns, event, at);
	if (event != small)
		free(event);
}

static void perfetto_counter(struct hr_trace_out *o, uint64_t ns, const struct hr_track *t,
			     double value)
{
	uint8_t event[64], *at = put_number(event, EVENT_TYPE, TYPE_COUNTER);

	at = put_number(at, EVENT_TRACK, t->id);
	write_event((struct packets *)o, ns, event, put_double(at, EVENT_DOUBLE, value));
}

static int perfetto_end(struct hr_trace_out *o)
{
	struct packets *p = (struct packets *)o;
	int r = p->error;

	free(p);
	return r;
}

int hr_perfetto_out_new(FILE *to, struct hr_trace_out **ret)
{
	struct packets *p = malloc(sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	*p = (struct packets){.out = {.begin = perfetto_begin,
				      .intern = perfetto_intern,
				      .track = perfetto_track,
				      .slice = perfetto_slice,
				      .counter = perfetto_counter,
				      .end = perfetto_end,
				      .slice_bytes = SLICE_BYTES,
				      .region_bytes = REGION_BYTES,
				      .counter_bytes = COUNTER_BYTES},
			      .to = to};
	*ret = &p->out;
	return 0;
}
