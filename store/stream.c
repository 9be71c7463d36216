/* SPDX-License-Identifier: Apache-2.0 */
#include "store/catalog.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"

int hr__segment_source(const struct hr__segment *g, struct hr_source *ret)
{
	struct hr_source source = {.fd = -1, .memory = g->content, .bytes = g->bytes};

	if (!source.memory) {
		source.fd = hr__store_open(g->store, g->name);
		if (source.fd < 0)
			return -EIO;
	}
	*ret = source;
	return 0;
}

/* Opens the segment for each frame (microseconds): thousands of segments need no descriptors. */
static int read_frame(const struct hr_stream *s, uint32_t frame, ProtobufCAllocator *allocator,
		      Headrace__Frame **ret)
{
	const struct hr_frame_ref *ref;
	const struct hr__segment *g;
	struct hr_source source;
	Headrace__Frame *msg;
	int r;

	if (frame >= s->n_frames)
		return -EBADMSG;
	ref = &s->frames[frame];
	assert(ref->segment < s->own->n_segments);
	g = &s->own->segments[ref->segment];
	r = hr__segment_source(g, &source);
	if (r < 0)
		return r;
	r = hr__source_frame(&source, ref->offset, ref->bytes, allocator, &msg);
	if (source.fd >= 0)
		close(source.fd);
	if (r < 0)
		return r == -EBADMSG || r == -ENOMEM ? r : -EIO;
	if (msg->body_case != ref->kind || msg->seq != ref->seq) {
		headrace__frame__free_unpacked(msg, allocator);
		return -EBADMSG;
	}
	*ret = msg;
	return 0;
}

int hr_stream_read(const struct hr_stream *s, uint32_t frame, Headrace__Frame **ret)
{
	return read_frame(s, frame, NULL, ret);
}

int hr_stream_each_frame(const struct hr_stream *s, uint64_t kinds, hr_frame_visit *visit,
			 void *context, uint64_t *damaged)
{
	int r = 0;

	for (uint32_t i = 0; i < s->n_frames && r == 0; i++) {
		Headrace__Frame *msg;

		if (s->frames[i].kind >= 64 || !(kinds >> s->frames[i].kind & 1))
			continue;
		r = hr_stream_read(s, i, &msg);
		if (r == 0) {
			r = visit(context, msg);
			headrace__frame__free_unpacked(msg, NULL);
		} else if (r != -ENOMEM) {
			if (damaged != NULL)
				++*damaged;
			r = 0;
		}
	}
	return r;
}

static void *get_piece(void *arena, size_t bytes)
{
	return hr_arena_get(arena, bytes);
}

static void keep_piece(void *arena, void *piece)
{
	(void)arena;
	(void)piece;
}

int hr_stream_read_into(const struct hr_stream *s, uint32_t frame, struct hr_arena *arena,
			Headrace__Frame **ret)
{
	ProtobufCAllocator allocator = {
	    .alloc = get_piece, .free = keep_piece, .allocator_data = arena};
	int r;

	arena->failed = false;
	r = read_frame(s, frame, &allocator, ret);
	return r < 0 && arena->failed ? -ENOMEM : r;
}

const struct hr_process *hr_stream_process(const struct hr_stream *s, uint64_t proc)
{
	size_t at = hr_array_search(i, s->n_processes, s->processes[i].msg->proc < proc);

	return at < s->n_processes && s->processes[at].msg->proc == proc ? &s->processes[at] : NULL;
}

uint64_t hr_stream_added_proc(const struct hr_stream *s, uint64_t proc)
{
	const struct hr_process *p = hr_stream_process(s, proc);

	if (p != NULL && p->msg->same_as != 0)
		return s->added_to->proc_base + p->msg->same_as;
	return proc ? s->proc_base + proc : 0;
}
