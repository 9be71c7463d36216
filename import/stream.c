/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, their processes, threads and files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/pathid.h"
#include "import/internal.h"

#define PROCESSES_MOST	 (1u << 28) /* keys of sums have 29 bits for a process */
#define PATHS_MOST_BYTES (4u << 20) /* of a frame */
#define UNKNOWN_NODE	 "unknown"
#define NODE_BYTES	 64u /* as HOST_NAME_MAX; encoded, it fits into the name of a file */
#define PIECE_BYTES	 (256u << 10)

/* ---- streams --------------------------------------------------------------------------------- */

/* The same file gives the same number, so that a second import has the same folders. */
static uint64_t stream_instance(const struct hr_import_file *f, const char *node)
{
	uint64_t h = hr_fnv(HR_FNV_BASIS, f->name, strlen(f->name) + 1);

	h = hr_fnv(h, node, strlen(node) + 1);
	return hr_fnv(h, &f->part, sizeof(f->part)) | 1;
}

/* The same content, in whatever file, gives the same number. Returns -errno if it is unreadable. */
static int added_instance(const struct hr_import_file *f, uint64_t *ret)
{
	uint8_t *piece = malloc(PIECE_BYTES);
	struct hr_input *in = NULL;
	uint64_t h = HR_FNV_BASIS;
	long n = piece ? hr_input_open(f->path, &in) : -ENOMEM;

	while (in && (n = hr_input_read(in, piece, PIECE_BYTES)) > 0)
		h = hr_fnv(h, piece, (size_t)n);
	if (in)
		hr_input_close(in);
	free(piece);
	*ret = hr_fnv(h, &f->part, sizeof(f->part)) | 1;
	return (int)n;
}

/* The stream of a file that is added to a recorded one. */
static struct hr_stream_id stream_id_added(const struct hr_import_stream *s)
{
	const struct hr_stream *to = s->into.to;

	return (struct hr_stream_id){.cluster = to->cluster,
				     .job = to->job,
				     .attempt = to->attempt,
				     .node = to->node,
				     .boot_id = to->boot_id,
				     .instance = s->instance,
				     .added_to = to->instance};
}

int hr__istream_open(struct hr_import_stream *s)
{
	struct hr_stream_id id = {
	    .cluster = "",
	    .job = s->import->job_id,
	    .node = s->node,
	    .boot_id = "imported",
	    .instance = s->instance,
	};

	if (s->into.to)
		id = stream_id_added(s);
	return s->writer ? 0 : hr_writer_open(s->import->options->store, &id, &s->writer, NULL);
}

/* Refuses a stream that the job has. Removes one that an import left when it was killed. */
static int added_check(struct hr_import_stream *s)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(s->import->catalog, &streams);
	char *folder;

	if (hr_writer_mark(s->writer) <= 1)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (streams[i].instance == s->instance && streams[i].added_to == s->into.to)
			return hr_import_refuse(s->file, "job %s has this trace already",
						s->import->job_id);
	folder = strdup(hr_writer_dir(s->writer));
	hr_writer_abandon(s->writer);
	s->writer = NULL;
	if (!folder)
		return -ENOMEM;
	hr__folder_remove(folder);
	free(folder);
	return hr__istream_open(s);
}

static int stream_begin(struct hr_import_stream *s)
{
	struct hr_import *i = s->import;
	int r = hr_encoder_new(&s->encoder);

	for (unsigned op = 0; op < HR_OP_MAX; op++)
		s->ops[op] = *hr_op_info((uint16_t)op);
	s->batch = malloc(sizeof(*s->batch));
	if (!r && !s->batch)
		r = -ENOMEM;
	if (!r)
		r = hr__istream_open(s);
	if (r)
		return r;
	if (s->into.to)
		r = added_check(s);
	if (r)
		return r;
	s->batch->n = s->batch->n_tasks = 0;
	return hr__text_add(i, &i->folders, &i->n_folders, &i->folders_room, SIZE_MAX,
			    strdup(hr_writer_dir(s->writer)));
}

static struct hr_import_stream *stream_new(struct hr_import_file *f, const char *node)
{
	struct hr_import_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->import = f->import;
	s->file = f;
	s->part = f->part;
	s->node = strdup(node);
	s->instance = stream_instance(f, node);
	s->first_ns = UINT64_MAX;
	s->batch_number = 1;
	hr_filerecs_init(&s->records);
	if (!s->node) {
		hr__istream_free(s);
		return NULL;
	}
	s->next = f->streams;
	f->streams = s;
	return s;
}

int hr_import_stream(struct hr_import_file *f, const char *node, size_t bytes,
		     struct hr_import_stream **ret)
{
	const char *other = f->import->options->node ? f->import->options->node : UNKNOWN_NODE;
	struct hr_import_stream *s;

	char name[NODE_BYTES + 1];

	if (f->import->catalog) /* whose pids are not those of the recording */
		return hr_import_refuse(f, "a trace of this format cannot be added to a job: "
					   "import it as a job with -o STORE");
	if (bytes == 0) {
		node = other;
		bytes = strlen(other);
	}
	bytes = bytes < NODE_BYTES ? bytes : NODE_BYTES;
	memcpy(name, node, bytes);
	name[bytes] = '\0';
	hr__name_clean(name);
	for (s = f->streams; s; s = s->next)
		if (s->part == f->part && strcmp(s->node, name) == 0)
			break;
	if (!s) {
		s = stream_new(f, name);
		if (!s)
			return -ENOMEM;
		s->failed = stream_begin(s);
	}
	*ret = s;
	return s->failed;
}

int hr_import_stream_of(struct hr_import_file *f, const struct hr_import_origin *origin,
			struct hr_import_stream **ret)
{
	struct hr__into into = {0};
	struct hr_import_stream *s;
	int r;

	if (!f->import->catalog)
		return hr_import_stream(f, origin->node, origin->node ? strlen(origin->node) : 0,
					ret);
	r = hr__into_choose(f, origin, &into);
	s = r ? NULL : stream_new(f, into.to->node);
	if (!s) {
		hr__into_done(&into);
		return r ? r : -ENOMEM;
	}
	s->into = into;
	s->into.name = f->path;
	s->failed = added_instance(f, &s->instance);
	if (!s->failed)
		s->failed = stream_begin(s);
	*ret = s;
	return s->failed;
}

void hr_import_clock(struct hr_import_stream *s, int64_t real_minus_trace_ns, bool known)
{
	s->clock_ns = real_minus_trace_ns - HR_IMPORT_CLOCK_NS;
	s->clock_unknown = !known;
}

void hr__istream_free(struct hr_import_stream *s)
{
	if (!s)
		return;
	hr_writer_abandon(s->writer);
	hr__into_done(&s->into);
	free(s->losses);
	free(s->node);
	free(s->processes);
	free(s->threads);
	hr_map64_done(&s->thread_of);
	free(s->files);
	hr_map64_done(&s->file_of);
	free(s->fresh);
	free(s->unnamed);
	hr_encoder_free(s->encoder);
	free(s->batch);
	hr__nest_free(s);
	hr_regions_free(s->regions);
	hr_rollups_done(&s->rollups);
	hr_filerecs_done(&s->records);
	free(s->given);
	hr_arena_free(&s->given_memory);
	hr_arena_free(&s->keep);
	hr_arena_free(&s->texts);
	free(s);
}

void hr_import_program(struct hr_import_stream *s, const char *name)
{
	if (!s->program)
		s->program = name;
}

int hr__istream_lose(struct hr_import_stream *s, enum hr_loss_reason reason, uint32_t op,
		     uint64_t count, uint64_t bytes, uint64_t dur_ns)
{
	char *name = (char *)(uintptr_t)hr_loss_name(reason);
	Headrace__LossRow *row = NULL;

	for (uint32_t i = 0; i < s->n_losses && !row; i++)
		if (s->losses[i].reason == name && s->losses[i].op == op)
			row = &s->losses[i];
	if (!row) {
		if (!hr_array_reserve(s->losses, s->n_losses, s->losses_room))
			return -ENOMEM;
		row = &s->losses[s->n_losses++];
		headrace__loss_row__init(row);
		row->reason = name;
		row->op = op;
	}
	row->count += count;
	row->bytes += bytes;
	row->dur_ns += dur_ns;
	return 0;
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* The stream fails at its next operation. Returns 0, which is no number of anything. */
static uint32_t no_memory(struct hr_import_stream *s)
{
	s->failed = s->failed ? s->failed : -ENOMEM;
	return 0;
}

uint32_t hr_import_process(struct hr_import_stream *s, int32_t pid)
{
	if (s->n_processes >= PROCESSES_MOST ||
	    !hr_array_reserve(s->processes, s->n_processes, s->processes_room))
		return no_memory(s);
	s->processes[s->n_processes++] = (struct hr_import_process){.pid = pid,
								    .rank = -1,
								    .local_rank = -1,
								    .worker = -1,
								    .loader = -1,
								    .loader_worker = -1,
								    .restart = -1,
								    .first_ns = UINT64_MAX};
	return s->n_processes;
}

struct hr_import_process *hr_import_process_at(struct hr_import_stream *s, uint32_t proc)
{
	return &s->processes[proc - 1];
}

const char *hr_import_text(struct hr_import_stream *s, const void *text, size_t bytes)
{
	char *copy = hr_arena_alloc(&s->keep, bytes + 1);

	if (copy && bytes)
		memcpy(copy, text, bytes);
	return copy;
}

uint32_t hr_import_thread(struct hr_import_stream *s, uint32_t proc, uint32_t tid)
{
	uint64_t key = (uint64_t)proc << 32 | tid;
	uint32_t i = hr_map64_get(&s->thread_of, key);

	if (i != HR_MAP64_NONE)
		return i + 1;
	if (!proc || proc > s->n_processes ||
	    !hr_array_reserve(s->threads, s->n_threads, s->threads_room) ||
	    hr_map64_set(&s->thread_of, key, s->n_threads))
		return no_memory(s);
	s->threads[s->n_threads++] = (struct hr__import_thread){.proc = proc, .tid = tid};
	return s->n_threads;
}

/* ---- files ----------------------------------------------------------------------------------- */

static uint32_t file_add(struct hr_import_stream *s, bool runtime)
{
	if (!hr_array_reserve(s->files, s->n_files, s->files_room))
		return no_memory(s);
	s->files[s->n_files++] = (struct hr__file){.scope = runtime};
	return s->n_files;
}

static int path_note(struct hr_import_stream *s, uint32_t id, uint64_t hash, const void *path,
		     size_t bytes)
{
	const void *text;

	if (s->fresh_bytes > PATHS_MOST_BYTES) {
		int r = hr__istream_send_paths(s);

		if (r)
			return r;
	}
	text = hr_arena_copy(&s->texts, path, bytes);
	if (!text || !hr_array_reserve(s->fresh, s->n_fresh, s->fresh_room))
		return -ENOMEM;
	s->fresh[s->n_fresh++] = (struct hr__fresh_path){id, (uint32_t)bytes, hash, text};
	s->fresh_bytes += bytes + sizeof(Headrace__Path);
	s->files[id - 1].named = 1;
	return 0;
}

uint32_t hr_import_path(struct hr_import_stream *s, const void *path, size_t bytes, bool runtime)
{
	uint64_t hash = hr_path_id(path, bytes);
	uint32_t id = hr_map64_get(&s->file_of, hash);

	if (bytes == 0 || s->into.to)
		return 0;
	if (id != HR_MAP64_NONE)
		return id;
	id = file_add(s, runtime);
	if (id && (hr_map64_set(&s->file_of, hash, id) || path_note(s, id, hash, path, bytes)))
		(void)no_memory(s);
	return id;
}

uint32_t hr_import_path_later(struct hr_import_stream *s, uint64_t key, const char *fallback)
{
	const char *text = hr_import_text(s, fallback, strlen(fallback));
	uint32_t id = text ? file_add(s, false) : 0;

	if (!id || !hr_array_reserve(s->unnamed, s->n_unnamed, s->unnamed_room))
		return no_memory(s);
	s->unnamed[s->n_unnamed++] = (struct hr__unnamed){id, key, text};
	return id;
}

int hr_import_path_resolve(struct hr_import_stream *s, uint32_t file, const void *path,
			   size_t bytes)
{
	if (!file || file > s->n_files || s->files[file - 1].named || !bytes)
		return 0;
	return path_note(s, file, hr_path_id(path, bytes), path, bytes);
}
