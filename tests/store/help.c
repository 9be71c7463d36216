/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int help_setup(void **state)
{
	*state = build_folder();
	return 0;
}

int help_teardown(void **state)
{
	build_remove(*state);
	return 0;
}

const char *help_path(void **state, const char *name)
{
	static char buffers[4][4096];
	static unsigned next;
	char *ret = buffers[next++ % 4];

	snprintf(ret, sizeof(buffers[0]), "%s/%s", (const char *)*state, name);
	return ret;
}

struct hr_stream_id help_id(const char *node)
{
	return (struct hr_stream_id){
	    .cluster = "c", .job = "7", .attempt = 0, .node = node, .boot_id = "b", .instance = 1};
}

static struct build builder(struct hr_writer *w)
{
	return (struct build){.writer = w, .may_fail = true};
}

int help_append(struct hr_writer *w, Headrace__Frame *frame)
{
	struct build b = builder(w);

	return build_send(&b, frame);
}

int help_append_end(struct hr_writer *w)
{
	struct build b = builder(w);

	return build_end(&b, "ended");
}

int help_append_process(struct hr_writer *w, uint64_t proc, uint32_t rank_plus1)
{
	struct build b = builder(w);

	return build_processes(&b, &(Headrace__Process){.proc = proc, .rank_plus1 = rank_plus1}, 1);
}

int help_append_loss(struct hr_writer *w, uint64_t count)
{
	struct build b = builder(w);

	return build_losses(&b, &(Headrace__LossRow){.reason = "ring_full", .count = count}, 1);
}

int help_append_paths(struct hr_writer *w, uint32_t first, uint32_t n, bool bare)
{
	Headrace__Path *rows = calloc(n, sizeof(*rows));
	char(*text)[32] = calloc(n, sizeof(*text));
	struct build b = builder(w);
	int r;

	assert_true(rows && text);
	for (uint32_t i = 0; i < n; i++) {
		if (!bare)
			snprintf(text[i], sizeof(text[i]), "/data/%u", first + i);
		rows[i] = (Headrace__Path){.id = first + i,
					   .hash = (first + i) * 8,
					   .mount = 1,
					   .scope = i % 2,
					   .path = build_bytes(text[i])};
	}
	r = build_paths(&b, rows, n, NULL, 0);
	free(rows);
	free(text);
	return r;
}

int help_append_mount(struct hr_writer *w, uint32_t id, const char *path)
{
	struct build b = builder(w);
	Headrace__Mount mount = {.id = id, .path = build_bytes(path), .fs_type = "xfs"};

	return build_paths(&b, NULL, 0, &mount, 1);
}

int help_append_batch(struct hr_writer *w, uint64_t proc, uint32_t n, uint64_t first_ns)
{
	struct hr_event *events = calloc(n, sizeof(*events));
	struct hr_task task = {.proc = proc, .tid = 100};
	struct build b = builder(w);
	int r;

	assert_non_null(events);
	for (uint32_t i = 0; i < n; i++)
		events[i] = (struct hr_event){.start_ns = first_ns + i * 10,
					      .dur_ns = 5,
					      .offset = i * 4096,
					      .ret = 4096,
					      .asked = 4096,
					      .file = 1 + i / 100,
					      .fd = 3,
					      .op = HR_OP_read};
	b.now_ns = first_ns + n * 10;
	b.real_minus_boot_ns = 1000000;
	b.error_ns = 7;
	r = build_events(&b, events, n, &task, 1);
	free(events);
	return r;
}

size_t help_read(const char *path, uint8_t **ret)
{
	FILE *f = fopen(path, "rbe");
	long n;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	rewind(f);
	*ret = malloc((size_t)n + 1);
	assert_non_null(*ret);
	assert_int_equal(fread(*ret, 1, (size_t)n, f), n);
	fclose(f);
	return (size_t)n;
}

void help_write(const char *path, const uint8_t *data, size_t bytes)
{
	FILE *f = fopen(path, "wbe");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
}

struct hr_writer *help_writer(const char *store, const char *node)
{
	struct hr_stream_id id = help_id(node);
	struct hr_writer *w;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	return w;
}

void help_append_small(struct hr_writer *w)
{
	assert_int_equal(help_append_mount(w, 2, "/data"), 0);
	assert_int_equal(help_append_process(w, 77, 0), 0);
	assert_int_equal(help_append_paths(w, 1, 5, false), 0);
	assert_int_equal(help_append_batch(w, 77, 300, 1000), 0);
	assert_int_equal(help_append_process(w, 77, 4), 0);
	assert_int_equal(help_append_batch(w, 77, 100, 9000), 0);
	assert_int_equal(help_append_end(w), 0);
}

void help_check_small(const struct hr_stream *s)
{
	struct hr_file_info info;
	uint32_t files;

	assert_string_equal(s->job, "7");
	assert_string_equal(s->node, "n1");
	assert_string_equal(s->cluster, "c");
	assert_int_equal(s->instance, 1);
	assert_int_equal(s->last_seq, 8);
	assert_int_equal(s->n_frames, 8);
	for (uint32_t f = 0; f < 8; f++)
		assert_int_equal(s->frames[f].seq, f + 1);
	assert_true(s->ended);
	assert_int_equal(s->real_minus_boot_ns, 1000000);
	assert_int_equal(s->clock_error_ns, 7);
	assert_int_equal(s->n_batches, 2);
	assert_int_equal(s->batches[0].count, 300);
	assert_int_equal(s->batches[0].base_ns, 1000);
	assert_int_equal(s->batches[0].last_ns, 1000 + 299 * 10 + 5);
	assert_int_equal(s->batches[1].frame, 6);
	assert_int_equal(s->batches[1].classes, 1u << HR_CLASS_READ);
	assert_int_equal(s->batches[1].n_procs, 1);
	assert_int_equal(s->batches[1].procs[0], 77);
	assert_int_equal(s->n_processes, 1);
	assert_int_equal(s->processes[0].rank, 3);
	assert_int_equal(s->processes[0].worker, -1);
	assert_non_null(hr_stream_process(s, 77));
	assert_null(hr_stream_process(s, 78));
	assert_int_equal(s->n_mounts, 3);
	assert_null(s->mounts[1]);
	assert_memory_equal(s->mounts[2]->path.data, "/data", 5);
	assert_int_equal(hr_stream_files(s, &files), 0);
	assert_int_equal(files, 5);
	assert_int_equal(hr_stream_file(s, 4, true, &info), 0);
	assert_int_equal(info.hash, 32);
	assert_int_equal(info.mount, 1);
	assert_int_equal(info.scope, 1);
	assert_int_equal(info.path_bytes, 7);
	assert_memory_equal(info.path, "/data/4", 7);
	assert_int_equal(hr_stream_file(s, 6, false, &info), -ENOENT);
	assert_int_equal(hr_stream_file(s, 0, false, &info), -ENOENT);
}

size_t help_problems(const struct hr_catalog *c)
{
	const struct hr_problem *list;

	return hr_catalog_problems(c, &list);
}

const char *help_problem(const struct hr_catalog *c, const char *text)
{
	const struct hr_problem *problems;
	size_t n = hr_catalog_problems(c, &problems);

	for (size_t i = 0; i < n; i++)
		if (strstr(problems[i].text, text))
			return problems[i].text;
	return NULL;
}

struct hr_catalog *help_open(const char *store, const struct hr_stream **ret_streams, size_t *ret_n)
{
	struct hr_catalog *c;

	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, NULL), 0);
	*ret_n = hr_catalog_streams(c, ret_streams);
	return c;
}
