/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - the builder of all test stores: opens a stream, and appends frames of known content
 *
 * Each function appends one frame. Rows are plain structs with designated initializers: the
 * functions set `base` of each row, and a member that is not given is zero or empty. A failure
 * aborts with a message, unless `may_fail` is set: then functions return -errno.
 *
 * Owner     The caller; one thread. A struct that is zero but for its members of input is valid.
 */
#ifndef HEADRACE_TESTS_STORE_BUILD_H
#define HEADRACE_TESTS_STORE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/region.h"
#include "store/store.h"

enum build_zstd {
	BUILD_ZSTD_ALL,
	BUILD_ZSTD_NO_BATCHES, /* not EventBatch, whose columns are compressed; headraced does so */
	BUILD_ZSTD_NONE
};

struct build {
	struct hr_writer *writer; /* NULL: a frame is only packed, and the caller frees it */
	uint8_t *packed;	  /* without a writer: the frame */
	size_t packed_bytes;
	uint64_t seq; /* without a writer: of the next frame */
	/* Clock samples: CLOCK_BOOTTIME, the wall clock minus it, the error. now_ns 0: none. */
	uint64_t now_ns, real_minus_boot_ns, error_ns;
	enum build_zstd zstd;
	ProtobufCMessageUnknownField *unknown; /* a field of a later release; NULL: none */
	bool may_fail;
	struct hr_encoder *encoder; /* NULL: build_events() uses one of its own */
	struct hr_regions *regions; /* that are not sent yet */
};

void build_open(struct build *b, const char *store, const struct hr_stream_id *id);
void build_close(struct build *b); /* frees `regions`, too */

/* A frame around a message: BUILD_FRAME(LOSS, loss, &loss). */
#define BUILD_FRAME(kind, member, message)                                                         \
	(&(Headrace__Frame){.base = {.descriptor = &headrace__frame__descriptor},                  \
			    .body_case = HEADRACE__FRAME__BODY_##kind,                             \
			    .member = (message)})

/* Sets number and clock sample of the frame, and appends it. */
int build_send(struct build *b, Headrace__Frame *frame);

int build_job(struct build *b, Headrace__JobEvent job);
int build_processes(struct build *b, Headrace__Process *rows, size_t n);
int build_paths(struct build *b, Headrace__Path *rows, size_t n, Headrace__Mount *mounts,
		size_t n_mounts);
int build_events(struct build *b, const struct hr_event *events, size_t n,
		 const struct hr_task *tasks, size_t n_tasks);
/* A window of 10 s. */
int build_rollups(struct build *b, uint64_t window_start_ns, Headrace__Rollup *rows, size_t n,
		  Headrace__Rollup *sides, size_t n_sides);
int build_file_records(struct build *b, Headrace__FileRecord *rows, size_t n);
int build_kernel_records(struct build *b, Headrace__KernelRecord *rows, size_t n);
int build_losses(struct build *b, Headrace__LossRow *rows, size_t n);
int build_level(struct build *b, char *level, uint64_t start_ns, uint64_t end_ns);
int build_end(struct build *b, char *state);

struct build_texts {
	const char *domain, *category, *args, *name; /* NULL: none */
};

/* Adds a region to the next frame. Sends the frame first if it is full. `count` 0 means 1. */
void build_region(struct build *b, struct hr_region region, struct build_texts texts);

/* Sends the regions that were added, if there are any. */
int build_regions(struct build *b);

/* The bytes of a text, without its final zero. BUILD_BYTES: of a literal with any bytes. */
ProtobufCBinaryData build_bytes(const char *text);
#define BUILD_BYTES(text) ((ProtobufCBinaryData){sizeof(text) - 1, (uint8_t *)(text)})

/* A new temporary folder, which build_remove() removes and frees. */
char *build_folder(void);
void build_remove(char *folder);
void build_empty(const char *folder); /* removes it, without free() */

/* What a function and malloc() return; abort if it is an error, or NULL. */
void build_check(int r, const char *what);
void *build_must(void *memory);

/* qsort() of struct hr_event by the ends of operations. */
int build_by_end(const void *a, const void *b);

#endif
