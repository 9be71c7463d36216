/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/flatbuffer.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096u

void hr_flat_reset(struct hr_flat *f)
{
	f->used = 0;
	f->align = 1;
	f->failed = false;
}

void hr_flat_done(struct hr_flat *f)
{
	free(f->data);
	*f = (struct hr_flat){0};
}

/* Makes room for `bytes` more. The filled bytes move to the end of the new memory. */
static bool flat_room(struct hr_flat *f, size_t bytes)
{
	size_t size = f->size > 0 ? f->size : FIRST_BYTES;
	uint8_t *data;

	if (f->failed || f->size - f->used >= bytes)
		return !f->failed;
	while (size - f->used < bytes)
		size *= 2;
	data = malloc(size);
	f->failed = data == NULL;
	if (f->failed)
		return false;
	if (f->used > 0)
		memcpy(data + size - f->used, f->data + f->size - f->used, f->used);
	free(f->data);
	f->data = data;
	f->size = size;
	return true;
}

static void flat_put(struct hr_flat *f, const void *data, size_t bytes)
{
	if (bytes == 0 || !flat_room(f, bytes))
		return;
	f->used += bytes;
	memcpy(f->data + f->size - f->used, data, bytes);
}

/* Pads so that the position is a multiple of `align` after `more` further bytes. */
static void flat_align(struct hr_flat *f, size_t align, size_t more)
{
	static const uint8_t zeros[16];
	size_t pad = (~(f->used + more) + 1) & (align - 1);

	f->align = align > f->align ? align : f->align;
	flat_put(f, zeros, pad);
}

static uint32_t flat_number(struct hr_flat *f, uint64_t value, size_t bytes)
{
	flat_align(f, bytes, 0);
	flat_put(f, &value, bytes); /* little-endian */
	return (uint32_t)f->used;
}

static uint32_t flat_reference(struct hr_flat *f, uint32_t position)
{
	flat_align(f, sizeof(uint32_t), 0);
	return flat_number(f, f->used + sizeof(uint32_t) - position, sizeof(uint32_t));
}

uint32_t hr_flat_string(struct hr_flat *f, const char *text)
{
	size_t n = strlen(text);

	flat_align(f, sizeof(uint32_t), n + 1);
	flat_put(f, text, n + 1);
	return flat_number(f, n, sizeof(uint32_t));
}

uint32_t hr_flat_vector(struct hr_flat *f, const uint32_t *positions, size_t n)
{
	flat_align(f, sizeof(uint32_t), n * sizeof(uint32_t));
	for (size_t i = n; i-- > 0;)
		flat_reference(f, positions[i]);
	return flat_number(f, n, sizeof(uint32_t));
}

uint32_t hr_flat_structs(struct hr_flat *f, const void *list, size_t bytes, size_t n)
{
	flat_align(f, sizeof(uint32_t), bytes * n);
	flat_align(f, sizeof(uint64_t), bytes * n);
	flat_put(f, list, bytes * n);
	return flat_number(f, n, sizeof(uint32_t));
}

void hr_flat_begin(struct hr_flat *f)
{
	memset(f->fields, 0, sizeof(f->fields));
	f->table = (uint32_t)f->used;
}

void hr_flat_number(struct hr_flat *f, unsigned field, uint64_t value, size_t bytes)
{
	f->fields[field] = flat_number(f, value, bytes);
}

void hr_flat_reference(struct hr_flat *f, unsigned field, uint32_t position)
{
	f->fields[field] = flat_reference(f, position);
}

uint32_t hr_flat_end(struct hr_flat *f)
{
	uint32_t object = flat_number(f, 0, sizeof(int32_t)), distance;
	unsigned n = HR_FLAT_FIELDS;

	while (n > 0 && f->fields[n - 1] == 0)
		n--;
	for (unsigned i = n; i-- > 0;)
		flat_number(f, f->fields[i] != 0 ? object - f->fields[i] : 0, sizeof(uint16_t));
	flat_number(f, object - f->table, sizeof(uint16_t));
	flat_number(f, (n + 2) * sizeof(uint16_t), sizeof(uint16_t));
	/* The table begins with the distance to the list of its fields, which is before it. */
	distance = (uint32_t)f->used - object;
	if (!f->failed)
		memcpy(f->data + f->size - object, &distance, sizeof(distance));
	return object;
}

const uint8_t *hr_flat_finish(struct hr_flat *f, uint32_t root, size_t *ret_bytes)
{
	flat_align(f, f->align, sizeof(uint32_t));
	flat_reference(f, root);
	*ret_bytes = f->used;
	return f->failed ? NULL : f->data + f->size - f->used;
}
