/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/ops.h"
#include "numbered.h"
#include "tests/unit.h"

static uint64_t file_of(unsigned i)
{
	return 4096 + 8 * (uint64_t)i;
}

void numbered_announce(struct hr_ring_hdr *ring, unsigned i)
{
	struct hr_record s[2] = {
	    {.file = file_of(i), .offset = HR_OFFSET_NONE, .ret = -1, .op = HR_CTL_PATH, .fd = 1}};
	char text[HR_TEXT_BYTES + 1];

	s[0].asked = (uint64_t)snprintf(text, sizeof(text), "/data/file-%04u", i);
	memcpy(&s[1], text, HR_TEXT_BYTES);
	client_commit(ring, s, 2);
}

void numbered_reads(const struct client *c, uint64_t from, uint64_t to)
{
	static uint16_t pread64_id;

	if (!pread64_id)
		pread64_id = hr_op_by_name("pread64");
	for (uint64_t i = from; i < to; i++) {
		struct hr_ring_hdr *ring = client_ring(c, 0, i % 3 == 0);
		struct hr_record rec = {
		    .start_ticks = client_ticks(c),
		    .file = file_of((unsigned)(i / 64 % NUMBERED_PATHS)),
		    .offset = (int64_t)i,
		    .ret = 100,
		    .asked = 100,
		    .dur_lo = 1,
		    .op = pread64_id,
		    .fd = 5,
		};

		client_commit(ring, &rec, 1);
	}
}

void numbered_pause_us(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

void numbered_each_once(const uint8_t *seen, uint64_t n, unsigned seed)
{
	for (uint64_t i = 0; i < n; i++)
		if (seen[i] != 1)
			fail_msg("seed %u: event %llu of %llu was stored %u times", seed,
				 (unsigned long long)i, (unsigned long long)n, seen[i]);
}

void numbered_check(struct nodes *n, uint64_t events, struct nodes_sums *sums)
{
	uint8_t *seen = calloc(1, events + 1);

	nodes_read(n, seen, events, sums);
	assert_int_equal(sums->events, events);
	numbered_each_once(seen, events, 0);
	free(seen);
	client_fdstore_clear();
	nodes_done(n);
}
