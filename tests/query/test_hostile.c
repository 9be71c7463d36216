/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hostile.c - a collector's operator asks about the streams of all users: no number in a frame crashes the query or makes
 * it take more memory than the frames are worth, and no text in one steers the operator's terminal
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "query/tables/internal.h"
#include "query/notes.h"
#include "tests/query/fixture_frames.h"
#include "tests/seeds.h"
#include "tests/unit.h"

#define SEEDS 40u
/* of address space beyond what the test has at its start */
#define MEMORY_BYTES (UINT64_C(2) << 30)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITED false /* a sanitizer reserves terabytes */
#else
#define LIMITED true
#endif

/* ---- file ids -------------------------------------------------------------------------------- */

static const uint32_t ids[] = {1, 7, 0xf0000000, 0xffffffff};
#define N_IDS (sizeof(ids) / sizeof(ids[0]))

static void send_names(struct fixture__stream *s)
{
	Headrace__Path rows[N_IDS];
	char text[N_IDS][16];

	for (size_t i = 0; i < N_IDS; i++) {
		snprintf(text[i], sizeof(text[i]), "/data/f%zu", i);
		rows[i] =
		    (Headrace__Path){.id = ids[i], .hash = 1000 + i, .path = build_bytes(text[i])};
	}
	build_paths(&s->b, rows, N_IDS, NULL, 0);
}

/* One read of each file, and one of a file that has no name. */
static void send_reads(struct fixture__stream *s)
{
	Headrace__FileRecord rows[N_IDS + 1];
	struct hr_event events[N_IDS + 1] = {0};
	const struct hr_task task = {1, 100};

	for (size_t i = 0; i <= N_IDS; i++) {
		uint32_t id = i < N_IDS ? ids[i] : 0x80000000;

		events[i].start_ns = FIX_BOOT_NS + i;
		events[i].op = HR_OP_read;
		events[i].file = id;
		events[i].ret = 1;
		rows[i] = (Headrace__FileRecord){
		    .proc = 1, .file = id, .reads = i + 1, .first_ns = FIX_BOOT_NS};
	}
	build_events(&s->b, events, N_IDS + 1, &task, 1);
	build_file_records(&s->b, rows, N_IDS + 1);
}

static void any_file_id_has_its_name(void **state)
{
	char *store = fixture__make_folder();
	struct fixture__stream s;
	struct fixture f;

	fixture__open_stream(&s, store, "7", "n1");
	fixture__send_processes(&s, 0);
	send_names(&s);
	send_reads(&s);
	build_close(&s.b);
	fixture_open(&f, store, NULL);
	fixture_expect(&f,
		       "SELECT path, count(*) FROM events GROUP BY path ORDER BY path NULLS LAST",
		       "/data/f0,1\n/data/f1,1\n/data/f2,1\n/data/f3,1\n,1\n");
	fixture_expect(&f, "SELECT DISTINCT path FROM events WHERE path IS NOT NULL ORDER BY path",
		       "/data/f0\n/data/f1\n/data/f2\n/data/f3\n");
	fixture_expect(&f, "SELECT count(DISTINCT file_id), count(DISTINCT base) FROM hr_events()",
		       "4,4\n");
	fixture_expect(
	    &f, "SELECT pattern, count(*) FROM events GROUP BY pattern ORDER BY pattern NULLS LAST",
	    "f,4\n,1\n");
	fixture_expect(&f, "SELECT count(*) FROM events WHERE path = '/data/f3'", "1\n");
	fixture_expect(&f, "SELECT path, reads FROM file_records ORDER BY reads",
		       "/data/f0,1\n/data/f1,2\n/data/f2,3\n/data/f3,4\n,5\n");
	fixture_expect(&f, "SELECT path, first_ns = 1700000000000000000 FROM files ORDER BY path",
		       "/data/f0,true\n/data/f1,true\n/data/f2,true\n/data/f3,true\n");
	fixture_close(&f);
	build_remove(store);
}

/* ---- any number ------------------------------------------------------------------------------ */

static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void spoil_number(ProtobufCType type, void *at, uint64_t *seed)
{
	static const uint64_t extremes[] = {0,
					    1,
					    63,
					    64,
					    65535,
					    65536,
					    0x7fffffff,
					    0x80000000,
					    0xf0000000,
					    0xffffffff,
					    UINT64_C(1) << 32,
					    INT64_MAX,
					    UINT64_C(1) << 63,
					    UINT64_MAX};
	uint64_t value = extremes[random_next(seed) % (sizeof(extremes) / sizeof(extremes[0]))];
	uint32_t narrow = (uint32_t)value;
	bool wide = type == PROTOBUF_C_TYPE_INT64 || type == PROTOBUF_C_TYPE_SINT64 ||
		    type == PROTOBUF_C_TYPE_UINT64 || type == PROTOBUF_C_TYPE_FIXED64 ||
		    type == PROTOBUF_C_TYPE_SFIXED64;

	if (random_next(seed) % 8 != 0)
		return;
	if (wide)
		memcpy(at, &value, sizeof(value));
	else if (type != PROTOBUF_C_TYPE_BOOL && type != PROTOBUF_C_TYPE_STRING &&
		 type != PROTOBUF_C_TYPE_BYTES && type != PROTOBUF_C_TYPE_DOUBLE &&
		 type != PROTOBUF_C_TYPE_FLOAT)
		memcpy(at, &narrow, sizeof(narrow));
}

/* Clears a terminal, and begins a line that looks like headrace's. */
static void spoil_text(ProtobufCType type, void *at, uint64_t *seed)
{
	static const char escape[] = "\x1b[2J\nheadrace: ";
	ProtobufCBinaryData *data = at;
	char *text = type == PROTOBUF_C_TYPE_STRING ? *(char **)at : (char *)data->data;
	size_t n = type == PROTOBUF_C_TYPE_STRING ? strlen(text) : data->len;

	if (n > 0 && random_next(seed) % 8 == 0)
		memcpy(text, escape, n < sizeof(escape) - 1 ? n : sizeof(escape) - 1);
}

static size_t element_bytes(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return sizeof(uint64_t);
	default:
		return sizeof(uint32_t);
	}
}

/* Overwrites some of the numbers in a message, and in those inside of it. */
static void spoil(ProtobufCMessage *m, uint64_t *seed)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *d = &m->descriptor->fields[i];
		void *at = (uint8_t *)m + d->offset;
		bool inner = d->type == PROTOBUF_C_TYPE_MESSAGE;
		size_t n = 1;

		if ((d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
		    *(const uint32_t *)((uint8_t *)m + d->quantifier_offset) != d->id)
			continue;
		if (d->label == PROTOBUF_C_LABEL_REPEATED) {
			n = *(const size_t *)((uint8_t *)m + d->quantifier_offset);
			at = *(void **)at;
			if (d->type == PROTOBUF_C_TYPE_STRING || d->type == PROTOBUF_C_TYPE_BYTES)
				continue; /* none that is text */
		}
		for (size_t k = 0; k < n; k++) {
			if (d->type == PROTOBUF_C_TYPE_STRING || d->type == PROTOBUF_C_TYPE_BYTES)
				spoil_text(d->type, at, seed);
			else if (!inner)
				spoil_number(d->type, (uint8_t *)at + k * element_bytes(d->type),
					     seed);
			else if (((ProtobufCMessage **)at)[k] != NULL)
				spoil(((ProtobufCMessage **)at)[k], seed);
		}
	}
}

/* Copies a stream, with its numbers spoiled. */
static void copy_spoiled(const struct hr_stream *from, const char *store, uint64_t *seed)
{
	struct hr_stream_id id = {
	    from->cluster, from->job, from->attempt, from->node, from->boot_id, from->instance, 0};
	struct hr_writer *w;

	if (random_next(seed) % 4 == 0)
		id.job = id.node = "\x1b[2J\nheadrace: ";
	id.instance = *seed; /* of two jobs that now have one name */
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	for (uint32_t i = 1; i < from->n_frames; i++) {
		Headrace__Frame *msg;
		uint64_t seq;
		uint8_t *buf;
		size_t bytes;

		assert_int_equal(hr_stream_read(from, i, &msg), 0);
		seq = msg->seq;
		spoil(&msg->base, seed);
		msg->seq = seq;
		assert_int_equal(hr_frame_pack(msg, 0, &buf, &bytes), 0);
		assert_int_equal(hr_writer_append(w, buf, bytes), 0);
		free(buf);
		headrace__frame__free_unpacked(msg, NULL);
	}
	assert_int_equal(hr_writer_close(w), 0);
}

static void ask(struct fixture *f, const char *sql)
{
	char *text = fixture_ask(f, sql);

	assert_null(strchr(text, '\x1b'));
	free(text);
}

static void check_note(void *self, const char *text)
{
	assert_null(strpbrk(text, "\x1b\n"));
}

static void ask_all(const char *store)
{
	const struct hr_sink notes = {check_note, NULL};
	struct fixture f;

	fixture_open(&f, store, NULL);
	for (unsigned i = 0; i < HR_TABLE_END; i++) {
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\"", hr_tables[i].name);
		ask(&f, sql);
	}
	free(fixture_ask(
	    &f, "SELECT pattern, count(*), count(DISTINCT path) FROM events GROUP BY pattern"));
	ask(&f, "SELECT count(*) FROM events");
	ask(&f, "SELECT count(*) FROM events WHERE path = '/data/train/img-001.jpg'");
	ask(&f, "SELECT * FROM hr_busy(by := 'rank, class')");
	hr_query_notes(f.q, 1000, &notes);
	fixture_close(&f);
}

static void any_number_is_survived(void **state)
{
	char *(*const makers[])(void) = {fixture_make, fixture_make_probed};

	for (size_t m = 0; m < 2; m++) {
		char *whole = makers[m](), *error;
		const struct hr_stream *streams;
		struct hr_catalog *c;
		size_t n;

		assert_int_equal(hr_catalog_open((const char *[]){whole}, 1, NULL, &c, &error), 0);
		n = hr_catalog_streams(c, &streams);
		for (uint64_t i = 0; i < test_seeds(SEEDS); i++) {
			char *store = fixture__make_folder();
			uint64_t seed = i * 7919 + 1;

			for (size_t k = 0; k < n; k++)
				copy_spoiled(&streams[k], store, &seed);
			ask_all(store);
			build_remove(store);
		}
		hr_catalog_free(c);
		build_remove(whole);
	}
}

static void limit_memory(void)
{
	struct rlimit limit = {MEMORY_BYTES, MEMORY_BYTES};

	if (LIMITED)
		setrlimit(RLIMIT_DATA, &limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(any_file_id_has_its_name),
	    cmocka_unit_test(any_number_is_survived),
	};

	limit_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
