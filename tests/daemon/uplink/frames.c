/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/segments.h"

static uint64_t files_of(uint64_t seq)
{
	return 1 + seq % 7;
}

/* Bytes that no compression makes smaller, in a field that nobody looks at here. */
static uint8_t *noise(uint64_t seq, size_t bytes)
{
	uint64_t x = seq * UINT64_C(0x9e3779b97f4a7c15) + 1;
	uint8_t *buf = malloc(bytes + 8);

	for (size_t i = 0; i < bytes; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(buf + i, &x, 8);
	}
	return buf;
}

static void pack(Headrace__Frame *frame, uint8_t **ret, size_t *ret_bytes)
{
	Headrace__Clock clock = HEADRACE__CLOCK__INIT;

	clock.boot_ns = frame->seq;
	clock.real_ns = UINT64_C(1000000000000) + frame->seq;
	frame->clock = &clock;
	assert_int_equal(hr_frame_pack(frame, 1, ret, ret_bytes), 0);
	frame->clock = NULL; /* what it refers to is gone when we return */
	frame->body_case = HEADRACE__FRAME__BODY__NOT_SET;
	frame->events = NULL;
}

static void make_events(Headrace__Frame *frame, size_t bytes, uint8_t **ret, size_t *ret_bytes)
{
	Headrace__EventBatch m = HEADRACE__EVENT_BATCH__INIT;
	Headrace__Column column = HEADRACE__COLUMN__INIT, *columns[] = {&column};
	ProtobufCBinaryData plane = {.data = noise(frame->seq, bytes), .len = bytes};

	frame->body_case = HEADRACE__FRAME__BODY_EVENTS;
	frame->events = &m;
	m.count = (uint32_t)frame->seq;
	m.bytes_moved = 10 * frame->seq;
	m.columns = columns;
	m.n_columns = 1;
	column.planes = &plane;
	column.n_planes = 1;
	pack(frame, ret, ret_bytes);
	free(plane.data);
}

static void make_files(Headrace__Frame *frame, size_t bytes, uint8_t **ret, size_t *ret_bytes)
{
	Headrace__FileRecords m = HEADRACE__FILE_RECORDS__INIT;
	Headrace__FileRecord rows[8], *pointers[8];
	size_t n = files_of(frame->seq), bins = bytes / n / 9;
	uint8_t *filler = noise(frame->seq, n * bins * 8);

	frame->body_case = HEADRACE__FRAME__BODY_FILE_RECORDS;
	frame->file_records = &m;
	for (size_t i = 0; i < n; i++) {
		headrace__file_record__init(&rows[i]);
		rows[i].reads = 1;
		rows[i].read_size_hist = (uint64_t *)(void *)filler + i * bins;
		rows[i].n_read_size_hist = bins;
		pointers[i] = &rows[i];
	}
	m.rows = pointers;
	m.n_rows = n;
	pack(frame, ret, ret_bytes);
	free(filler);
}

static void make_rollups(Headrace__Frame *frame, bool alone, size_t bytes, uint8_t **ret,
			 size_t *ret_bytes)
{
	Headrace__RollupBatch m = HEADRACE__ROLLUP_BATCH__INIT;
	Headrace__Rollup row = HEADRACE__ROLLUP__INIT, *rows[] = {&row};
	uint8_t *filler = noise(frame->seq, bytes);

	frame->body_case = HEADRACE__FRAME__BODY_ROLLUPS;
	frame->rollups = &m;
	m.alone = alone;
	m.rows = rows;
	m.n_rows = 1;
	row.count = frame->seq;
	row.bytes = 100 * frame->seq;
	row.size_hist = (uint64_t *)(void *)filler;
	row.n_size_hist = bytes / 9;
	pack(frame, ret, ret_bytes);
	free(filler);
}

static void make_names(Headrace__Frame *frame, size_t bytes, uint8_t **ret, size_t *ret_bytes)
{
	Headrace__Paths m = HEADRACE__PATHS__INIT;
	Headrace__Path row = HEADRACE__PATH__INIT, *rows[] = {&row};

	frame->body_case = HEADRACE__FRAME__BODY_PATHS;
	frame->paths = &m;
	m.rows = rows;
	m.n_rows = 1;
	row.id = (uint32_t)frame->seq;
	row.path.data = noise(frame->seq, bytes);
	row.path.len = bytes;
	pack(frame, ret, ret_bytes);
	free(row.path.data);
}

static void make_end(Headrace__Frame *frame, uint8_t **ret, size_t *ret_bytes)
{
	Headrace__StreamEnd m = HEADRACE__STREAM_END__INIT;

	frame->body_case = HEADRACE__FRAME__BODY_STREAM_END;
	frame->stream_end = &m;
	m.state = (char *)(uintptr_t) "ended";
	pack(frame, ret, ret_bytes);
}

void frame_make(uint64_t seq, enum frame_kind kind, size_t bytes, uint8_t **ret, size_t *ret_bytes)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	frame.seq = seq;
	switch (kind) {
	case FRAME_EVENTS:
		make_events(&frame, bytes, ret, ret_bytes);
		break;
	case FRAME_FILES:
		make_files(&frame, bytes, ret, ret_bytes);
		break;
	case FRAME_ROLLUPS:
	case FRAME_ALONE:
		make_rollups(&frame, kind == FRAME_ALONE, bytes, ret, ret_bytes);
		break;
	case FRAME_NAMES:
		make_names(&frame, bytes, ret, ret_bytes);
		break;
	default:
		make_end(&frame, ret, ret_bytes);
	}
}

struct hr_stream_id frame_stream(const char *job, uint64_t instance)
{
	return (struct hr_stream_id){
	    .cluster = "", .job = job, .node = "n1", .boot_id = "boot", .instance = instance};
}

int frame_append(struct hr_spool *s, struct hr_writer *w, enum frame_kind kind, size_t bytes)
{
	uint8_t *frame;
	size_t n;
	int r;

	frame_make(hr_writer_mark(w) + 1, kind, bytes, &frame, &n);
	r = hr_spool_make_room(s, w, n);
	if (!r)
		r = hr_writer_append(w, frame, n);
	if (!r)
		hr_spool_appended(s, hr_writer_mark(w));
	free(frame);
	return r;
}

int frame_setup(void **state)
{
	char *folder = NULL, template[] = "/tmp/headrace-uplink-XXXXXX";

	assert_non_null(mkdtemp(template));
	assert_true(asprintf(&folder, "%s/spool", template) > 0);
	*state = folder;
	return 0;
}

int frame_teardown(void **state)
{
	char command[256];

	*strrchr(*state, '/') = '\0';
	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	free(*state);
	return system(command);
}

static int add_bytes(void *arg, const char *folder, int dir_fd)
{
	struct hr_segment_file *files;
	size_t n;

	(void)folder;
	assert_int_equal(hr_segments_list(dir_fd, &files, &n), 0);
	for (size_t i = 0; i < n; i++)
		*(uint64_t *)arg += files[i].bytes;
	free(files);
	return 0;
}

uint64_t frame_disk_bytes(const char *folder)
{
	struct hr_spool *s;
	uint64_t sum = 0;

	assert_int_equal(hr_spool_new(folder, 0, &s), 0);
	assert_int_equal(hr_spool_each(s, add_bytes, &sum), 0);
	hr_spool_free(s);
	return sum;
}

static void sum_loss(const Headrace__Frame *msg, struct frame_sums *t)
{
	const Headrace__LossRow *row = msg->loss->rows[0];

	assert_int_equal(msg->loss->n_rows, 1);
	t->n_losses++;
	if (strcmp(row->reason, "spool_full") == 0) {
		assert_int_equal(row->count, msg->seq);
		t->spool_full += row->count;
		t->spool_full_bytes += row->bytes;
	} else if (strcmp(row->reason, "files_full") == 0) {
		assert_int_equal(row->count, files_of(msg->seq));
		t->files_full += row->count;
	} else {
		assert_string_equal(row->reason, "rollups_full");
		assert_int_equal(row->count, msg->seq);
		t->rollups_full += row->count;
		t->rollups_full_bytes += row->bytes;
	}
}

static void sum_frame(const Headrace__Frame *msg, struct frame_sums *t)
{
	switch (msg->body_case) {
	case HEADRACE__FRAME__BODY_EVENTS:
		assert_int_equal(msg->events->count, msg->seq);
		t->events += msg->seq;
		t->n_events++;
		if (!t->first_event)
			t->first_event = msg->seq;
		break;
	case HEADRACE__FRAME__BODY_FILE_RECORDS:
		assert_int_equal(msg->file_records->n_rows, files_of(msg->seq));
		t->files += msg->file_records->n_rows;
		t->n_files++;
		break;
	case HEADRACE__FRAME__BODY_ROLLUPS:
		assert_int_equal(msg->rollups->rows[0]->count, msg->seq);
		t->rollups += msg->seq;
		t->n_rollups++;
		break;
	case HEADRACE__FRAME__BODY_PATHS:
		t->n_names++;
		break;
	case HEADRACE__FRAME__BODY_LOSS:
		sum_loss(msg, t);
		break;
	default:
		t->ended |= msg->body_case == HEADRACE__FRAME__BODY_STREAM_END;
	}
}

void frame_sum(const char *const *stores, size_t n, const char *job, struct frame_sums *ret)
{
	const struct hr_problem *problems;
	const struct hr_stream *s;
	struct hr_catalog *c;
	char *error = NULL;

	*ret = (struct frame_sums){0};
	assert_int_equal(
	    hr_catalog_open(stores, n, &(struct hr_catalog_filter){.job = job}, &c, &error), 0);
	for (size_t i = 0; i < hr_catalog_problems(c, &problems); i++)
		if (!strstr(problems[i].text, "frames 1 to "))
			fail_msg("%s", problems[i].text);
	assert_int_equal(hr_catalog_streams(c, &s), 1);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		Headrace__Frame *msg;

		assert_int_equal(s->frames[i].seq, s->frames[0].seq + i);
		assert_int_equal(hr_stream_read(s, i, &msg), 0);
		assert_int_equal(msg->seq, s->frames[i].seq);
		sum_frame(msg, ret);
		headrace__frame__free_unpacked(msg, NULL);
	}
	ret->frames = s->n_frames;
	ret->first_seq = s->n_frames ? s->frames[0].seq : 0;
	ret->last_seq = s->last_seq;
	hr_catalog_free(c);
}
