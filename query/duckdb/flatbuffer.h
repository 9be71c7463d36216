/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatbuffer.h - builds FlatBuffers (flatbuffers.dev/internals): the metadata of Arrow
 *
 * The buffer is filled from its end, so what a table refers to is written before the table. A
 * position is a number of bytes from the end of the buffer. Memory errors stay in `failed`. One
 * thread.
 */
#ifndef HEADRACE_QUERY_DUCKDB_FLATBUFFER_H
#define HEADRACE_QUERY_DUCKDB_FLATBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_FLAT_FIELDS 8u /* most fields of a table */

struct hr_flat {
	uint8_t *data;
	size_t size, used; /* the last `used` bytes are filled */
	size_t align;	   /* largest alignment so far */
	uint32_t fields[HR_FLAT_FIELDS];
	uint32_t table; /* position at the begin of the open table */
	bool failed;
};

/* Empties the buffer, and keeps its memory. */
void hr_flat_reset(struct hr_flat *f);
void hr_flat_done(struct hr_flat *f);

uint32_t hr_flat_string(struct hr_flat *f, const char *text);

/* A vector of references to tables. */
uint32_t hr_flat_vector(struct hr_flat *f, const uint32_t *positions, size_t n);

/* A vector of n structs of `bytes` bytes, which consist of 64-bit numbers. */
uint32_t hr_flat_structs(struct hr_flat *f, const void *list, size_t bytes, size_t n);

/* A table: begin, one call for each field that has no default value, end. */
void hr_flat_begin(struct hr_flat *f);
void hr_flat_number(struct hr_flat *f, unsigned field, uint64_t value, size_t bytes);
void hr_flat_reference(struct hr_flat *f, unsigned field, uint32_t position);
uint32_t hr_flat_end(struct hr_flat *f);

/* Makes `root` the root. Returns the buffer, which is valid until the next call, or NULL. */
const uint8_t *hr_flat_finish(struct hr_flat *f, uint32_t root, size_t *ret_bytes);

#endif
