/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.h - temporary stores and ready-made frames for the tests of the store
 *
 * Every function asserts its own success. Single-threaded.
 */
#ifndef HEADRACE_TESTS_STORE_HELP_H
#define HEADRACE_TESTS_STORE_HELP_H

#include <stdbool.h>

#include "tests/store/build.h"
#include "tests/unit.h"

/* A fresh folder; cmocka setup and teardown that put its path into *state. */
int help_setup(void **state);
int help_teardown(void **state);

/* "FOLDER/name", in one of a few static buffers. */
const char *help_path(void **state, const char *name);

/* Stream of node `node` in job "7", instance 1. */
struct hr_stream_id help_id(const char *node);

/* Opens one of node `node`; its first segment is STORE/HELP_SEGMENT for "n1". */
struct hr_writer *help_writer(const char *store, const char *node);
#define HELP_SEGMENT "jobs/7/n1.0000000000000001-0/000001.seg"

/* Append a frame to the writer, with the next seq. Return what hr_writer_append() returns. */
int help_append(struct hr_writer *w, Headrace__Frame *frame);

int help_append_end(struct hr_writer *w);
int help_append_process(struct hr_writer *w, uint64_t proc, uint32_t rank_plus1);
int help_append_loss(struct hr_writer *w, uint64_t count);

/* `n` files from `first`, with text "/data/<id>" (none when `bare`), hash id * 8, mount 1. */
int help_append_paths(struct hr_writer *w, uint32_t first, uint32_t n, bool bare);
int help_append_mount(struct hr_writer *w, uint32_t id, const char *path);

/* `n` reads of process `proc`, start_ns from `first_ns` on. */
int help_append_batch(struct hr_writer *w, uint64_t proc, uint32_t n, uint64_t first_ns);

/* A new stream's frames 2 to 8: mount, process, files, batch, process again, batch, end; and whether a stream has all that. */
void help_append_small(struct hr_writer *w);
void help_check_small(const struct hr_stream *s);

/* Whole files. */
size_t help_read(const char *path, uint8_t **ret);
void help_write(const char *path, const uint8_t *data, size_t bytes);

/* How many problems there are; the one that contains `text`, or NULL. */
size_t help_problems(const struct hr_catalog *c);
const char *help_problem(const struct hr_catalog *c, const char *text);

/* Opens one store that must be fine to open. */
struct hr_catalog *help_open(const char *store, const struct hr_stream **ret_streams,
			     size_t *ret_n);

#endif
