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
#include "tests/store/build.h"

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

static void make_events(struct build *b, size_t bytes)
{
	Headrace__EventBatch m = HEADRACE__EVENT_BATCH__INIT;
	Headrace__Column column = HEADRACE__COLUMN__INIT, *columns[] = {&column};
	ProtobufCBinaryData plane = {.data = noise(b->seq, bytes), .len = bytes};

	m.count = (uint32_t)b->seq;
	m.bytes_moved = 10 * b->seq;
	m.columns = columns;
	m.n_columns = 1;
	column.planes = &plane;
	column.n_planes = 1;
	build_send(b, BUILD_FRAME(EVENTS, events, &m));
	free(plane.data);
}

static void make_files(struct build *b, size_t bytes)
{
	Headrace__FileRecord rows[8];
	size_t n = files_of(b->seq), bins = bytes / n / 9;
	uint8_t *filler = noise(b->seq, n * bins * 8);

	for (size_t i = 0; i < n; i++)
		rows[i] =
		    (Headrace__FileRecord){.reads = 1,
					   .read_size_hist = (uint64_t *)(void *)filler + i * bins,
					   .n_read_size_hist = bins};
	build_file_records(b, rows, n);
	free(filler);
}

static void make_rollups(struct build *b, bool alone, size_t bytes)
{
	Headrace__RollupBatch m = HEADRACE__ROLLUP_BATCH__INIT;
	Headrace__Rollup row = HEADRACE__ROLLUP__INIT, *rows[] = {&row};
	uint8_t *filler = noise(b->seq, bytes);

	m.alone = alone;
	m.rows = rows;
	m.n_rows = 1;
	row.count = b->seq;
	row.bytes = 100 * b->seq;
	row.size_hist = (uint64_t *)(void *)filler;
	row.n_size_hist = bytes / 9;
	build_send(b, BUILD_FRAME(ROLLUPS, rollups, &m));
	free(filler);
}

static void make_names(struct build *b, size_t bytes)
{
	Headrace__Path row = {.id = (uint32_t)b->seq, .path = {bytes, noise(b->seq, bytes)}};

	build_paths(b, &row, 1, NULL, 0);
	free(row.path.data);
}

static struct build frame_make(uint64_t seq, enum frame_kind kind, size_t bytes)
{
	struct build b = {.seq = seq, .now_ns = seq, .real_minus_boot_ns = UINT64_C(1000000000000)};

	switch (kind) {
	case FRAME_EVENTS:
		make_events(&b, bytes);
		break;
	case FRAME_FILES:
		make_files(&b, bytes);
		break;
	case FRAME_ROLLUPS:
	case FRAME_ALONE:
		make_rollups(&b, kind == FRAME_ALONE, bytes);
		break;
	case FRAME_NAMES:
		make_names(&b, bytes);
		break;
	default:
		build_end(&b, "ended");
	}
	return b;
}

struct hr_stream_id frame_stream(const char *job, uint64_t instance)
{
	return (struct hr_stream_id){
	    .cluster = "", .job = job, .node = "n1", .boot_id = "boot", .instance = instance};
}

int frame_append(struct hr_spool *s, struct hr_writer *w, enum frame_kind kind, size_t bytes)
{
	struct build b = frame_make(hr_writer_mark(w) + 1, kind, bytes);
	int r = hr_spool_make_room(s, w, b.packed_bytes);

	if (!r)
		r = hr_writer_append(w, b.packed, b.packed_bytes);
	if (!r)
		hr_spool_appended(s, hr_writer_mark(w));
	free(b.packed);
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
