/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/build.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rollup.h"

void build_check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "build a test store: %s: %s\n", what, strerrordesc_np(-r));
	abort();
}

void *build_must(void *memory)
{
	build_check(memory != NULL ? 0 : -ENOMEM, "allocate");
	return memory;
}

void build_open(struct build *b, const char *store, const struct hr_stream_id *id)
{
	build_check(hr_writer_open(store, id, &b->writer, NULL), store);
}

void build_close(struct build *b)
{
	hr_regions_free(b->regions);
	b->regions = NULL;
	build_check(hr_writer_close(b->writer), "close the stream");
	b->writer = NULL;
}

int build_send(struct build *b, Headrace__Frame *frame)
{
	bool batch = frame->body_case == HEADRACE__FRAME__BODY_EVENTS;
	bool zstd = b->zstd == BUILD_ZSTD_ALL || (b->zstd == BUILD_ZSTD_NO_BATCHES && !batch);
	Headrace__Clock clock = HEADRACE__CLOCK__INIT;
	int r;

	clock.boot_ns = b->now_ns;
	clock.real_ns = b->now_ns + b->real_minus_boot_ns;
	clock.error_ns = b->error_ns;
	frame->clock = b->now_ns > 0 ? &clock : NULL;
	frame->base.n_unknown_fields = b->unknown != NULL;
	frame->base.unknown_fields = b->unknown;
	frame->seq = b->writer != NULL ? hr_writer_mark(b->writer) + 1 : b->seq;
	build_check(hr_frame_pack(frame, zstd, &b->packed, &b->packed_bytes), "pack a frame");
	frame->clock = NULL;
	frame->base.n_unknown_fields = 0;
	if (b->writer == NULL)
		return 0;
	r = hr_writer_append(b->writer, b->packed, b->packed_bytes);
	free(b->packed);
	if (!b->may_fail)
		build_check(r, "append a frame");
	return r;
}

/* Sets `base` of rows, which lie one after the other. Returns the list of pointers to them. */
static void *list_rows(void *rows, size_t n, const ProtobufCMessageDescriptor *descriptor)
{
	void **list = build_must(calloc(n + 1, sizeof(*list)));

	for (size_t i = 0; i < n; i++) {
		ProtobufCMessage *row = (void *)((char *)rows + i * descriptor->sizeof_message);

		row->descriptor = descriptor;
		list[i] = row;
	}
	return list;
}

int build_job(struct build *b, Headrace__JobEvent job)
{
	job.base.descriptor = &headrace__job_event__descriptor;
	return build_send(b, BUILD_FRAME(JOB, job, &job));
}

static int send_rows(struct build *b, Headrace__Frame *frame, void *list)
{
	int r = build_send(b, frame);

	free(list);
	return r;
}

int build_processes(struct build *b, Headrace__Process *rows, size_t n)
{
	Headrace__Processes body = HEADRACE__PROCESSES__INIT;

	body.rows = list_rows(rows, n, &headrace__process__descriptor);
	body.n_rows = n;
	return send_rows(b, BUILD_FRAME(PROCESSES, processes, &body), body.rows);
}

int build_file_records(struct build *b, Headrace__FileRecord *rows, size_t n)
{
	Headrace__FileRecords body = HEADRACE__FILE_RECORDS__INIT;

	body.rows = list_rows(rows, n, &headrace__file_record__descriptor);
	body.n_rows = n;
	return send_rows(b, BUILD_FRAME(FILE_RECORDS, file_records, &body), body.rows);
}

int build_kernel_records(struct build *b, Headrace__KernelRecord *rows, size_t n)
{
	Headrace__KernelRecords body = HEADRACE__KERNEL_RECORDS__INIT;

	body.rows = list_rows(rows, n, &headrace__kernel_record__descriptor);
	body.n_rows = n;
	return send_rows(b, BUILD_FRAME(KERNEL_RECORDS, kernel_records, &body), body.rows);
}

int build_losses(struct build *b, Headrace__LossRow *rows, size_t n)
{
	Headrace__Loss body = HEADRACE__LOSS__INIT;

	body.rows = list_rows(rows, n, &headrace__loss_row__descriptor);
	body.n_rows = n;
	return send_rows(b, BUILD_FRAME(LOSS, loss, &body), body.rows);
}

int build_paths(struct build *b, Headrace__Path *rows, size_t n, Headrace__Mount *mounts,
		size_t n_mounts)
{
	Headrace__Paths body = HEADRACE__PATHS__INIT;
	int r;

	body.rows = list_rows(rows, n, &headrace__path__descriptor);
	body.n_rows = n;
	body.mounts = list_rows(mounts, n_mounts, &headrace__mount__descriptor);
	body.n_mounts = n_mounts;
	r = build_send(b, BUILD_FRAME(PATHS, paths, &body));
	free(body.rows);
	free(body.mounts);
	return r;
}

int build_events(struct build *b, const struct hr_event *events, size_t n,
		 const struct hr_task *tasks, size_t n_tasks)
{
	struct hr_encoder *encoder = b->encoder;
	Headrace__EventBatch batch;
	int r;

	if (encoder == NULL)
		build_check(hr_encoder_new(&encoder), "make an encoder");
	build_check(hr_batch_encode(encoder, events, n, tasks, n_tasks, &batch), "encode events");
	r = build_send(b, BUILD_FRAME(EVENTS, events, &batch));
	if (encoder != b->encoder)
		hr_encoder_free(encoder);
	return r;
}

int build_rollups(struct build *b, uint64_t window_start_ns, Headrace__Rollup *rows, size_t n,
		  Headrace__Rollup *sides, size_t n_sides)
{
	Headrace__RollupBatch body = HEADRACE__ROLLUP_BATCH__INIT;
	int r;

	body.window_start_ns = window_start_ns;
	body.window_ns = HR_WINDOW_NS;
	body.rows = list_rows(rows, n, &headrace__rollup__descriptor);
	body.n_rows = n;
	body.sides = list_rows(sides, n_sides, &headrace__rollup__descriptor);
	body.n_sides = n_sides;
	r = build_send(b, BUILD_FRAME(ROLLUPS, rollups, &body));
	free(body.rows);
	free(body.sides);
	return r;
}

int build_level(struct build *b, char *level, uint64_t start_ns, uint64_t end_ns)
{
	Headrace__Levels body = HEADRACE__LEVELS__INIT;

	body.level = level;
	body.start_ns = start_ns;
	body.end_ns = end_ns;
	return build_send(b, BUILD_FRAME(LEVELS, levels, &body));
}

int build_end(struct build *b, char *state)
{
	Headrace__StreamEnd body = HEADRACE__STREAM_END__INIT;

	body.state = state;
	return build_send(b, BUILD_FRAME(STREAM_END, stream_end, &body));
}

static uint32_t number_text(struct build *b, const char *text)
{
	uint32_t number = 0;

	if (text != NULL)
		build_check(hr_regions_text(b->regions, text, strlen(text), &number), "add a text");
	return number;
}

void build_region(struct build *b, struct hr_region region, struct build_texts texts)
{
	if (b->regions == NULL)
		build_check(hr_regions_new(&b->regions), "make regions");
	if (hr_regions_count(b->regions) == HR_REGIONS_MAX)
		build_regions(b);
	region.count += region.count == 0;
	region.domain = number_text(b, texts.domain);
	region.category = number_text(b, texts.category);
	region.args = number_text(b, texts.args);
	region.name = number_text(b, texts.name);
	build_check(hr_regions_add(b->regions, &region), "add a region");
}

int build_regions(struct build *b)
{
	int r;

	if (b->regions == NULL || hr_regions_count(b->regions) == 0)
		return 0;
	r = build_send(
	    b, BUILD_FRAME(REGIONS, regions, (Headrace__Regions *)hr_regions_message(b->regions)));
	hr_regions_reset(b->regions);
	return r;
}

ProtobufCBinaryData build_bytes(const char *text)
{
	return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

char *build_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	char *path;

	if (asprintf(&path, "%s/headrace-test-XXXXXX", tmp != NULL ? tmp : "/tmp") < 0 ||
	    mkdtemp(path) == NULL)
		build_check(-errno, "make a folder");
	return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void build_empty(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void build_remove(char *folder)
{
	build_empty(folder);
	free(folder);
}

int build_by_end(const void *a, const void *b)
{
	const struct hr_event *x = a, *y = b;
	uint64_t ends[] = {x->start_ns + x->dur_ns, y->start_ns + y->dur_ns};

	return (ends[0] > ends[1]) - (ends[0] < ends[1]);
}
