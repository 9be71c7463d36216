/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/order.h"

void hr_index_done(struct hr_index *ix)
{
	for (size_t i = 0; i < ix->n_mounts; i++)
		headrace__mount__free_unpacked(ix->mounts[i], NULL);
	free(ix->frames);
	free(ix->batches);
	free(ix->paths);
	free(ix->mounts);
	hr_arena_free(&ix->memory);
	*ix = (struct hr_index){0};
}

size_t hr__index_bytes(const struct hr_index *ix)
{
	return ix->frames_room * sizeof(*ix->frames) + ix->batches_room * sizeof(*ix->batches) +
	       ix->paths_room * sizeof(*ix->paths) + ix->mounts_room * sizeof(*ix->mounts) +
	       ix->copied_bytes;
}

/* Lists the processes of a batch of events, each once, in ascending order. */
static int list_procs(struct hr_index *ix, const Headrace__EventBatch *batch,
		      struct hr_batch_ref *ret)
{
	uint64_t *procs =
	    hr_arena_copy(&ix->memory, batch->task_proc, batch->n_task_proc * sizeof(*procs));
	size_t n = 0;

	if (!procs)
		return -ENOMEM;
	hr_uint64s_sort(procs, batch->n_task_proc);
	for (size_t i = 0; i < batch->n_task_proc; i++)
		if (n == 0 || procs[n - 1] != procs[i])
			procs[n++] = procs[i];
	ret->procs = procs;
	ret->n_procs = (uint32_t)n;
	return 0;
}

static void widen_times(struct hr_index *ix, uint64_t first_ns, uint64_t last_ns)
{
	if (ix->events == 0 || first_ns < ix->first_ns)
		ix->first_ns = first_ns;
	if (last_ns > ix->last_ns)
		ix->last_ns = last_ns;
}

static int add_batch(struct hr_index *ix, const Headrace__EventBatch *batch)
{
	struct hr_batch_ref *ref;

	if (!hr_array_reserve(ix->batches, ix->n_batches, ix->batches_room))
		return -ENOMEM;
	ref = &ix->batches[ix->n_batches];
	*ref = (struct hr_batch_ref){
	    .frame = (uint32_t)ix->n_frames,
	    .count = batch->count,
	    .base_ns = batch->base_ns,
	    .last_ns = batch->last_ns,
	    .classes = batch->classes,
	    .ops = hr_arena_copy(&ix->memory, batch->ops.data, batch->ops.len),
	    .ops_bytes = (uint32_t)batch->ops.len,
	};
	if (!ref->ops || list_procs(ix, batch, ref) < 0)
		return -ENOMEM;
	ix->copied_bytes += batch->ops.len + batch->n_task_proc * sizeof(uint64_t);
	widen_times(ix, batch->base_ns, batch->last_ns);
	ix->events += batch->count;
	ix->n_batches++;
	return 0;
}

int hr__index_mount(struct hr_index *ix, const Headrace__Mount *mount)
{
	Headrace__Mount *copy;

	if (!hr_array_reserve(ix->mounts, ix->n_mounts, ix->mounts_room))
		return -ENOMEM;
	copy = hr_message_copy(&mount->base);
	if (!copy)
		return -ENOMEM;
	ix->mounts[ix->n_mounts++] = copy;
	ix->copied_bytes += sizeof(*copy) + headrace__mount__get_packed_size(mount);
	return 0;
}

int hr__index_path(struct hr_index *ix, const struct hr__path_row *row)
{
	if (!hr_array_reserve(ix->paths, ix->n_paths, ix->paths_room))
		return -ENOMEM;
	ix->paths[ix->n_paths++] = *row;
	if (row->id > ix->max_file)
		ix->max_file = row->id;
	return 0;
}

int hr__index_paths(struct hr_index *ix, const Headrace__Paths *paths)
{
	int r = 0;

	for (size_t i = 0; i < paths->n_rows && r == 0; i++) {
		const Headrace__Path *p = paths->rows[i];

		r = hr__index_path(ix, &(struct hr__path_row){
					   .hash = p->hash,
					   .id = p->id,
					   .frame = (uint32_t)ix->n_frames,
					   .row = (uint32_t)i,
					   .mount = p->mount,
					   .scope = p->scope != 0,
					   .has_text = p->path.len > 0,
				       });
	}
	for (size_t i = 0; i < paths->n_mounts && r == 0; i++)
		r = hr__index_mount(ix, paths->mounts[i]);
	return r;
}

int hr__index_frame(struct hr_index *ix, const struct hr_frame_entry *f)
{
	if (!hr_array_reserve(ix->frames, ix->n_frames, ix->frames_room))
		return -ENOMEM;
	ix->frames[ix->n_frames++] = *f;
	if (f->seq > 0 && !hr__is_start_copy(f)) {
		if (ix->first_seq == 0)
			ix->first_seq = f->seq;
		ix->last_seq = f->seq;
	}
	return 0;
}

void hr__index_clock(struct hr_index *ix, const Headrace__Frame *msg)
{
	if (!msg->clock)
		return;
	ix->has_clock = true;
	headrace__clock__init(&ix->clock);
	ix->clock.boot_ns = msg->clock->boot_ns;
	ix->clock.real_ns = msg->clock->real_ns;
	ix->clock.error_ns = msg->clock->error_ns;
}

int hr__index_add(struct hr_index *ix, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	int r = 0;

	/* frames come in the order of the segment, without overlap */
	assert(ix->n_frames == 0 ||
	       offset >= ix->frames[ix->n_frames - 1].offset + ix->frames[ix->n_frames - 1].bytes);
	/* The frame is added last, when nothing can fail: its parts already refer to its index. */
	if (ix->n_frames == UINT32_MAX)
		return -ENOMEM;
	if (msg->body_case == HEADRACE__FRAME__BODY_EVENTS)
		r = add_batch(ix, msg->events);
	else if (msg->body_case == HEADRACE__FRAME__BODY_PATHS)
		r = hr__index_paths(ix, msg->paths);
	if (r == 0)
		r = hr__index_frame(ix, &(struct hr_frame_entry){.offset = offset,
								 .seq = msg->seq,
								 .bytes = bytes,
								 .kind = msg->body_case});
	if (r == 0)
		hr__index_clock(ix, msg);
	return r;
}
