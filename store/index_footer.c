/* SPDX-License-Identifier: Apache-2.0 */
/* index_footer.c - converts an index to and from the footer of a sealed segment */
#include "store/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* bits of a byte of SegmentIndex.path_scope */
#define PATH_RUNTIME 1u
#define PATH_NO_TEXT 2u

/* Differences of ids are mostly 1, which compresses well. Negative ones become odd numbers. */
static uint32_t zigzag(uint32_t v)
{
	return v << 1 ^ -(v >> 31);
}

static uint32_t unzigzag(uint32_t v)
{
	return v >> 1 ^ -(v & 1);
}

/* ---- packing --------------------------------------------------------------------------------- */

static int pack_paths(const struct hr_index *ix, uint8_t **ret_buf, size_t *ret_bytes)
{
	size_t n = ix->n_paths;
	uint32_t *columns = malloc(n * (3 * sizeof(uint32_t) + sizeof(uint64_t) + 1));
	Headrace__SegmentIndex index = HEADRACE__SEGMENT_INDEX__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	uint8_t *hashes, *scopes;
	uint32_t previous = 0;
	int r;

	if (!columns)
		return -ENOMEM;
	index.path_id = columns;
	index.path_frame = columns + n;
	index.path_mount = columns + 2 * n;
	hashes = (uint8_t *)(columns + 3 * n);
	scopes = hashes + n * sizeof(uint64_t);
	for (size_t i = 0; i < n; i++) {
		const struct hr__path_row *p = &ix->paths[i];

		index.path_id[i] = zigzag(p->id - previous);
		previous = p->id;
		index.path_frame[i] = p->frame;
		index.path_mount[i] = p->mount;
		memcpy(hashes + i * sizeof(p->hash), &p->hash, sizeof(p->hash));
		scopes[i] = (p->scope ? PATH_RUNTIME : 0) | (p->has_text ? 0 : PATH_NO_TEXT);
	}
	index.n_path_id = index.n_path_frame = index.n_path_mount = n;
	index.path_hash = (ProtobufCBinaryData){n * sizeof(uint64_t), hashes};
	index.path_scope = (ProtobufCBinaryData){n, scopes};
	frame.body_case = HEADRACE__FRAME__BODY_INDEX;
	frame.index = &index;
	r = hr_frame_pack(&frame, 1, ret_buf, ret_bytes);
	free(columns);
	return r;
}

struct main_parts {
	uint64_t *offsets;
	uint32_t *lengths, *kinds;
	Headrace__BatchSummary *summaries, **summary_list;
};

static void fill_summary(Headrace__BatchSummary *s, const struct hr_batch_ref *b)
{
	headrace__batch_summary__init(s);
	s->count = b->count;
	s->base_ns = b->base_ns;
	s->last_ns = b->last_ns;
	s->ops = (ProtobufCBinaryData){b->ops_bytes, (uint8_t *)b->ops};
	s->classes = b->classes;
	s->procs = (uint64_t *)b->procs;
	s->n_procs = b->n_procs;
}

/* `paths_bytes`: size of the frame with the paths, at `offset`. 0: there is none. */
static void fill_main(const struct hr_index *ix, const struct main_parts *parts, uint64_t offset,
		      size_t paths_bytes, Headrace__SegmentIndex *index)
{
	uint64_t previous = 0;
	size_t n = ix->n_frames;

	for (size_t i = 0; i < n; i++) {
		parts->offsets[i] = ix->frames[i].offset - previous;
		parts->lengths[i] = ix->frames[i].bytes;
		parts->kinds[i] = ix->frames[i].kind;
		previous = ix->frames[i].offset;
	}
	if (paths_bytes) {
		parts->offsets[n] = offset - previous;
		parts->lengths[n] = (uint32_t)paths_bytes;
		parts->kinds[n++] = HEADRACE__FRAME__BODY_INDEX;
	}
	for (size_t i = 0; i < ix->n_batches; i++) {
		fill_summary(&parts->summaries[i], &ix->batches[i]);
		parts->summary_list[i] = &parts->summaries[i];
	}
	index->offset = parts->offsets;
	index->length = parts->lengths;
	index->kind = parts->kinds;
	index->n_offset = index->n_length = index->n_kind = n;
	index->batches = parts->summary_list;
	index->n_batches = ix->n_batches;
	index->mounts = ix->mounts;
	index->n_mounts = ix->n_mounts;
	index->first_seq = ix->first_seq;
	index->last_seq = ix->last_seq;
	index->first_ns = ix->first_ns;
	index->last_ns = ix->last_ns;
	index->events = ix->events;
	index->max_file = ix->max_file;
}

static int pack_main(const struct hr_index *ix, uint64_t offset, size_t paths_bytes,
		     uint8_t **ret_buf, size_t *ret_bytes)
{
	Headrace__SegmentIndex index = HEADRACE__SEGMENT_INDEX__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	struct hr_arena memory = {0};
	size_t frames = ix->n_frames + 1, batches = ix->n_batches;
	struct main_parts parts = {
	    .offsets = hr_arena_get(&memory, frames * sizeof(*parts.offsets)),
	    .lengths = hr_arena_get(&memory, frames * sizeof(*parts.lengths)),
	    .kinds = hr_arena_get(&memory, frames * sizeof(*parts.kinds)),
	    .summaries = hr_arena_get(&memory, batches * sizeof(*parts.summaries)),
	    .summary_list = hr_arena_get(&memory, batches * sizeof(*parts.summary_list)),
	};
	int r = -ENOMEM;

	if (parts.offsets && parts.lengths && parts.kinds && parts.summaries &&
	    parts.summary_list) {
		fill_main(ix, &parts, offset, paths_bytes, &index);
		frame.body_case = HEADRACE__FRAME__BODY_INDEX;
		frame.index = &index;
		if (ix->has_clock)
			frame.clock = (Headrace__Clock *)&ix->clock;
		r = hr_frame_pack(&frame, 1, ret_buf, ret_bytes);
	}
	hr_arena_free(&memory);
	return r;
}

int hr__index_pack(const struct hr_index *ix, uint64_t offset, uint8_t **ret_buf, size_t *ret_bytes)
{
	struct hr_segment_trailer trailer = {.magic = HR__TRAILER_MAGIC};
	uint8_t *paths = NULL, *rest = NULL, *buf = NULL;
	size_t paths_bytes = 0, rest_bytes = 0;
	int r = ix->n_paths ? pack_paths(ix, &paths, &paths_bytes) : 0;

	if (r == 0)
		r = pack_main(ix, offset, paths_bytes, &rest, &rest_bytes);
	if (r == 0) {
		buf = malloc(paths_bytes + rest_bytes + sizeof(trailer));
		r = buf ? 0 : -ENOMEM;
	}
	if (r == 0) {
		trailer.index_offset = offset + paths_bytes;
		trailer.index_bytes = rest_bytes;
		trailer.crc32c = hr_crc32c(0, &trailer, 2 * sizeof(uint64_t));
		if (paths)
			memcpy(buf, paths, paths_bytes);
		memcpy(buf + paths_bytes, rest, rest_bytes);
		memcpy(buf + paths_bytes + rest_bytes, &trailer, sizeof(trailer));
		*ret_buf = buf;
		*ret_bytes = paths_bytes + rest_bytes + sizeof(trailer);
	}
	free(paths);
	free(rest);
	return r;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static int unpack_frames(struct hr_index *ix, const Headrace__SegmentIndex *msg, uint64_t first_seq,
			 uint64_t limit, struct hr_frame_entry *ret_paths)
{
	uint64_t seq = first_seq == 1 ? 0 : first_seq - 2;
	uint64_t offset = 0, end = sizeof(struct hr_segment_hdr); /* both are at most `limit` */

	if (msg->n_offset == 0 || msg->n_length != msg->n_offset || msg->n_kind != msg->n_offset ||
	    msg->kind[0] != HEADRACE__FRAME__BODY_STREAM_START || first_seq == 0 || limit < end)
		return -EBADMSG;
	for (size_t i = 0; i < msg->n_offset; i++) {
		struct hr_frame_entry f = {.bytes = msg->length[i], .kind = msg->kind[i]};

		if (msg->offset[i] > limit - offset)
			return -EBADMSG;
		f.offset = offset += msg->offset[i];
		if (offset < end || f.bytes < HR_FRAME_HDR_BYTES || f.bytes > limit - offset)
			return -EBADMSG;
		end = offset + f.bytes;
		if (f.kind == HEADRACE__FRAME__BODY_INDEX) {
			*ret_paths = f;
			if (i + 1 != msg->n_offset)
				return -EBADMSG;
			break;
		}
		f.seq = ++seq;
		if (hr__index_frame(ix, &f) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int unpack_batches(struct hr_index *ix, const Headrace__SegmentIndex *msg)
{
	uint32_t frame = 0;

	for (size_t i = 0; i < msg->n_batches; i++, frame++) {
		const Headrace__BatchSummary *b = msg->batches[i];
		struct hr_batch_ref *ref;

		while (frame < ix->n_frames &&
		       ix->frames[frame].kind != HEADRACE__FRAME__BODY_EVENTS)
			frame++;
		if (frame == ix->n_frames)
			return -EBADMSG;
		if (!hr_array_reserve(ix->batches, ix->n_batches, ix->batches_room))
			return -ENOMEM;
		ref = &ix->batches[ix->n_batches++];
		*ref = (struct hr_batch_ref){
		    .frame = frame,
		    .count = b->count,
		    .base_ns = b->base_ns,
		    .last_ns = b->last_ns,
		    .classes = b->classes,
		    .ops = hr_arena_copy(&ix->memory, b->ops.data, b->ops.len),
		    .ops_bytes = (uint32_t)b->ops.len,
		    .procs = hr_arena_copy(&ix->memory, b->procs, b->n_procs * sizeof(b->procs[0])),
		    .n_procs = (uint32_t)b->n_procs,
		};
		if (!ref->ops || !ref->procs)
			return -ENOMEM;
	}
	for (; frame < ix->n_frames; frame++)
		if (ix->frames[frame].kind == HEADRACE__FRAME__BODY_EVENTS)
			return -EBADMSG;
	return 0;
}

int hr__index_unpack(struct hr_index *ix, const Headrace__Frame *msg, uint64_t first_seq,
		     uint64_t limit, struct hr_frame_entry *ret_paths)
{
	const Headrace__SegmentIndex *index = msg->index;
	struct hr_frame_entry paths = {0};
	int r;

	if (msg->body_case != HEADRACE__FRAME__BODY_INDEX || msg->seq != 0)
		return -EBADMSG;
	r = unpack_frames(ix, index, first_seq, limit, &paths);
	if (r == 0)
		r = unpack_batches(ix, index);
	for (size_t i = 0; i < index->n_mounts && r == 0; i++)
		r = hr__index_mount(ix, index->mounts[i]);
	if (r == 0 && (ix->first_seq != index->first_seq || ix->last_seq != index->last_seq))
		r = -EBADMSG;
	if (r < 0)
		return r;
	ix->first_ns = index->first_ns;
	ix->last_ns = index->last_ns;
	ix->events = index->events;
	ix->max_file = index->max_file;
	hr__index_clock(ix, msg);
	*ret_paths = paths;
	return 0;
}

int hr__index_unpack_paths(struct hr_index *ix, const Headrace__Frame *msg)
{
	const Headrace__SegmentIndex *index = msg->index;
	uint32_t row = 0, id = 0;
	size_t n;

	if (msg->body_case != HEADRACE__FRAME__BODY_INDEX || msg->seq != 0)
		return -EBADMSG;
	n = index->n_path_id;
	if (index->path_hash.len != n * sizeof(uint64_t) || index->n_path_frame != n ||
	    index->n_path_mount != n || index->path_scope.len != n)
		return -EBADMSG;
	if (!hr_array_fit(ix->paths, ix->n_paths + n, ix->paths_room))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct hr__path_row p = {
		    .id = id += unzigzag(index->path_id[i]),
		    .frame = index->path_frame[i],
		    .mount = index->path_mount[i],
		    .scope = index->path_scope.data[i] & PATH_RUNTIME,
		    .has_text = !(index->path_scope.data[i] & PATH_NO_TEXT),
		};

		/* The rows of a frame are complete and in order. */
		row = i > 0 && p.frame == index->path_frame[i - 1] ? row + 1 : 0;
		p.row = row;

		memcpy(&p.hash, index->path_hash.data + i * sizeof(p.hash), sizeof(p.hash));
		if (hr__index_path(ix, &p) < 0)
			return -ENOMEM;
	}
	return 0;
}
