/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collector/frames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/stream_state.h"

bool frame_is_sent(uint32_t kind)
{
	return kind != HEADRACE__FRAME__BODY_STREAM_START && kind != HEADRACE__FRAME__BODY_INDEX;
}

static struct frame packed(const struct build *b)
{
	return (struct frame){b->packed, b->packed_bytes};
}

static struct frame frame_pack(Headrace__Frame *msg, uint64_t seq)
{
	struct build b = {.seq = seq};

	build_send(&b, msg);
	return packed(&b);
}

struct frame frame_loss(uint64_t seq)
{
	struct build b = {.seq = seq};

	build_losses(&b, &(Headrace__LossRow){.reason = "ring_full", .count = seq}, 1);
	return packed(&b);
}

struct frame frame_job(uint64_t seq, uint32_t uid)
{
	struct build b = {.seq = seq};

	build_job(&b, (Headrace__JobEvent){.state = "running", .uid = uid});
	return packed(&b);
}

struct frame frame_end(uint64_t seq)
{
	struct build b = {.seq = seq};

	build_end(&b, "ended");
	return packed(&b);
}

struct frame frame_start(uint64_t seq, const struct hr_stream_id *id)
{
	Headrace__StreamStart start = HEADRACE__STREAM_START__INIT;

	start.version = HR_STORE_VERSION;
	start.cluster = (char *)id->cluster;
	start.job = (char *)id->job;
	start.attempt = id->attempt;
	start.node = (char *)id->node;
	start.boot_id = (char *)id->boot_id;
	start.instance = id->instance;
	return frame_pack(BUILD_FRAME(STREAM_START, stream_start, &start), seq);
}

struct frame frame_bulk(uint64_t seq, size_t bytes)
{
	struct build b = {.seq = seq};
	Headrace__Path row = {.id = (uint32_t)seq, .path = {bytes, malloc(bytes)}};

	assert_non_null(row.path.data);
	for (size_t i = 0; i < bytes; i++)
		row.path.data[i] = (uint8_t)random();
	build_paths(&b, &row, 1, NULL, 0);
	free(row.path.data);
	return packed(&b);
}

/* A frame around a payload. */
static struct frame around(const uint8_t *payload, size_t bytes)
{
	struct frame f = {malloc(HR_FRAME_HDR_BYTES + bytes), HR_FRAME_HDR_BYTES + bytes};

	assert_non_null(f.buf);
	memcpy(f.buf + HR_FRAME_HDR_BYTES, payload, bytes);
	hr_frame_seal(f.buf, bytes, 0);
	return f;
}

struct frame frame_newer(uint64_t seq)
{
	/* seq (field 1), and field 500, with two bytes in it */
	uint8_t payload[] = {0x08, (uint8_t)seq, 0xa2, 0x1f, 0x02, 'h', 'i'};

	assert_true(seq < 128);
	return around(payload, sizeof(payload));
}

struct frame frame_index(uint64_t seq)
{
	Headrace__SegmentIndex index = HEADRACE__SEGMENT_INDEX__INIT;

	return frame_pack(BUILD_FRAME(INDEX, index, &index), seq);
}

struct frame frame_garbage(void)
{
	static const uint8_t payload[] = {0xff, 0xff, 0xff, 0xff};

	return around(payload, sizeof(payload));
}

struct frame frame_bomb(uint64_t seq, size_t rows)
{
	Headrace__Path row = HEADRACE__PATH__INIT, **list = malloc(rows * sizeof(*list));
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	struct frame f;

	assert_non_null(list);
	for (size_t i = 0; i < rows; i++)
		list[i] = &row;
	paths.n_rows = rows;
	paths.rows = list;
	f = frame_pack(BUILD_FRAME(PATHS, paths, &paths), seq);
	free(list);
	return f;
}

/* ---- what a store has ------------------------------------------------------------------------ */

static const struct hr_stream *find(struct hr_catalog *c, const char *node)
{
	const struct hr_stream *streams, *found = NULL;
	size_t n = hr_catalog_streams(c, &streams);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(streams[i].node, node) != 0)
			continue;
		assert_null(found);
		found = &streams[i];
	}
	return found;
}

static void check_frame(const struct hr_stream *s, uint32_t i)
{
	Headrace__Frame *msg;

	if (s->frames[i].kind != HEADRACE__FRAME__BODY_LOSS)
		return;
	assert_int_equal(hr_stream_read(s, i, &msg), 0);
	assert_int_equal(msg->loss->rows[0]->count, s->frames[i].seq);
	headrace__frame__free_unpacked(msg, NULL);
}

void frames_check(const char *store, const char *job, const char *node, uint64_t last)
{
	const struct hr_catalog_filter filter = {.job = job};
	const struct hr_problem *problems;
	const struct hr_stream *s;
	struct hr_catalog *c;

	assert_int_equal(hr_catalog_open(&store, 1, &filter, &c, NULL), 0);
	if (hr_catalog_problems(c, &problems) != 0)
		fail_msg("%s", problems[0].text);
	s = find(c, node);
	assert_non_null(s);
	assert_int_equal(s->last_seq, last);
	assert_int_equal(s->n_frames, last);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		assert_int_equal(s->frames[i].seq, i + 1);
		check_frame(s, i);
	}
	hr_catalog_free(c);
}

uint64_t frames_first(const char *store, const char *job, const char *node, uint64_t *ret_last)
{
	const struct hr_catalog_filter filter = {.job = job};
	const struct hr_stream *s;
	struct hr_catalog *c;
	uint64_t first = 0;

	assert_int_equal(hr_catalog_open(&store, 1, &filter, &c, NULL), 0);
	s = find(c, node);
	*ret_last = s ? s->last_seq : 0;
	if (s && s->n_frames > 0)
		first = s->frames[0].seq;
	hr_catalog_free(c);
	return first;
}

int frames_state(const char *store, const char *job, struct hr_stream_state *ret)
{
	struct dirent *entry;
	char path[4096];
	int r = -ENOENT, fd;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/jobs/%s", store, job);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		r = hr_stream_state_read(fd, ret);
		close(fd);
	}
	closedir(dir);
	return r;
}
