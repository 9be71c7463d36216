/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_frames.c - a generated store, read back as the bytes of its frames */
#include "tests/bench/ingest.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "tests/bench/generate.h"
#include "tests/collector/frames.h"

struct gathered {
	struct bench_frames *f;
	size_t bytes, bytes_room, offsets_room, events_room;
	uint64_t events;
};

static int keep(struct gathered *g, const uint8_t *frame, size_t bytes, uint32_t events)
{
	struct bench_frames *f = g->f;

	if (!frame || !hr_array_fit(f->bytes, g->bytes + bytes, g->bytes_room) ||
	    !hr_array_fit(f->offsets, f->n + 2, g->offsets_room) ||
	    !hr_array_fit(f->events, f->n + 1, g->events_room))
		return -ENOMEM;
	memcpy(f->bytes + g->bytes, frame, bytes);
	f->offsets[f->n] = g->bytes;
	f->events[f->n++] = events;
	g->bytes += bytes;
	f->offsets[f->n] = g->bytes;
	return 0;
}

/* The stream's frames of one segment: neither its head nor its footer. */
static int take_segment(struct gathered *g, const uint8_t *data, size_t bytes)
{
	size_t at = sizeof(struct hr_segment_hdr), whole;

	while (at < bytes && hr_frame_check(data + at, bytes - at, &whole) == 0) {
		Headrace__Frame *msg;
		int r = hr_frame_unpack(data + at, whole, &msg);

		if (r < 0)
			return r;
		if (frame_is_sent(msg->body_case))
			r = keep(g, data + at, whole,
				 msg->body_case == HEADRACE__FRAME__BODY_EVENTS ? msg->events->count
										: 0);
		headrace__frame__free_unpacked(msg, NULL);
		if (r < 0)
			return r;
		at += whole;
	}
	return 0;
}

static int take_file(struct gathered *g, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	uint8_t *data = NULL;
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0)
		data = malloc((size_t)st.st_size);
	if (data)
		n = pread(fd, data, (size_t)st.st_size, 0);
	close(fd);
	r = n == st.st_size ? take_segment(g, data, (size_t)n) : -EIO;
	free(data);
	return r;
}

int bench_frames_make(struct bench_frames *f, uint64_t events, uint32_t batch)
{
	struct hr_gen_config config = HR_GEN_CONFIG(events);
	char folder[] = "/dev/shm/headrace-ingest-XXXXXX", pattern[128];
	struct gathered g = {.f = f};
	glob_t found = {0};
	int r;

	*f = (struct bench_frames){0};
	config.nodes = 1;
	config.batch_events = batch;
	if (!mkdtemp(folder))
		return -errno;
	hr_gen_store(&config, folder, "bench");
	snprintf(pattern, sizeof(pattern), "%s/jobs/bench/*/*.seg", folder);
	r = glob(pattern, 0, NULL, &found) != 0 ? -ENOENT : 0;
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		r = take_file(&g, found.gl_pathv[i]);
	globfree(&found);
	build_empty(folder);
	if (r < 0)
		bench_frames_done(f);
	return r;
}

void bench_frames_done(struct bench_frames *f)
{
	free(f->bytes);
	free(f->offsets);
	free(f->events);
	*f = (struct bench_frames){0};
}
