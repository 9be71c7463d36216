/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Regions message. What is accepted must come back the same after another round.
 */
#include <stdlib.h>
#include <string.h>

#include "common/region.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void same(const struct hr_region *a, const struct hr_region *b)
{
	if (a->proc != b->proc || a->tid != b->tid || a->kind != b->kind || a->depth != b->depth ||
	    a->open != b->open || a->count != b->count || a->start_ns != b->start_ns ||
	    a->dur_ns != b->dur_ns || a->step != b->step || a->epoch != b->epoch)
		abort();
}

/* Texts that are there twice get one number: they are left as they are. */
static void again(const Headrace__Regions *m)
{
	struct hr_regions *r;
	Headrace__Regions *copy;
	struct hr_region a, b;
	uint8_t *buf;
	size_t bytes;

	if (m->n_key > HR_REGIONS_MAX || hr_regions_new(&r) < 0)
		return;
	for (size_t i = 0; i < m->n_key; i++) {
		hr_regions_get(m, i, &a);
		a.domain = a.category = a.name = a.args = 0;
		if (hr_regions_add(r, &a) < 0)
			abort();
	}
	bytes = headrace__regions__get_packed_size(hr_regions_message(r));
	buf = malloc(bytes + 1);
	if (buf) {
		headrace__regions__pack(hr_regions_message(r), buf);
		copy = headrace__regions__unpack(NULL, bytes, buf);
		if (!copy || hr_regions_restore(copy) < 0 || copy->n_key != m->n_key)
			abort();
		for (size_t i = 0; i < m->n_key; i++) {
			hr_regions_get(m, i, &a);
			hr_regions_get(copy, i, &b);
			same(&a, &b);
		}
		headrace__regions__free_unpacked(copy, NULL);
	}
	free(buf);
	hr_regions_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	Headrace__Regions *msg = headrace__regions__unpack(NULL, bytes, data);

	if (!msg)
		return 0;
	if (hr_regions_restore(msg) == 0)
		again(msg);
	headrace__regions__free_unpacked(msg, NULL);
	return 0;
}
