/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment, from memory, through the parser that writer and catalogue use: header, footer, scan.
 * The CRCs of frames and trailer are put right first, or the fuzzer would never get past them.
 */
#include <stdlib.h>
#include <string.h>

#include "store/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void mend(uint8_t *buf, size_t bytes)
{
	const uint32_t magic = HR_FRAME_MAGIC;
	size_t at = sizeof(struct hr_segment_hdr);

	while (bytes - at >= HR_FRAME_HDR_BYTES) {
		struct hr_frame_hdr h;

		memcpy(&h, buf + at, sizeof(h));
		if (h.magic != magic || h.length > bytes - at - sizeof(h)) {
			at++;
			continue;
		}
		h.crc32c = hr_crc32c(hr_crc32c(0, &h.length, 8), buf + at + sizeof(h), h.length);
		memcpy(buf + at, &h, sizeof(h));
		at += sizeof(h) + h.length;
	}
}

static void mend_trailer(uint8_t *buf, size_t bytes)
{
	struct hr_segment_trailer t;
	uint8_t *at = buf + bytes - sizeof(t);

	memcpy(&t, at, sizeof(t));
	t.crc32c = hr_crc32c(0, &t, 16);
	memcpy(at, &t, sizeof(t));
}

static int index_frame(void *context, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	return hr__index_add(context, offset, bytes, msg);
}

static void check(const struct hr_index *ix, uint64_t limit)
{
	uint64_t end = sizeof(struct hr_segment_hdr);

	for (size_t i = 0; i < ix->n_frames; i++) {
		if (ix->frames[i].offset < end)
			abort();
		end = ix->frames[i].offset + ix->frames[i].bytes;
	}
	if (end > limit && ix->n_frames > 0)
		abort();
	for (size_t i = 0; i < ix->n_batches; i++)
		if (ix->frames[ix->batches[i].frame].kind != HEADRACE__FRAME__BODY_EVENTS)
			abort();
}

static void parse(const struct hr_source *s)
{
	struct hr_segment_hdr h;
	struct hr_frame_entry paths = {0};
	struct hr_index ix = {0};
	struct hr_segment_places scan;
	Headrace__Frame *msg;
	uint8_t *footer;
	size_t bytes;

	if (hr_segment_header(s, &h) == 0 && hr_segment_footer(s, &h, &ix, &paths) == 0) {
		check(&ix, s->bytes);
		if (paths.offset &&
		    hr__source_frame(s, paths.offset, paths.bytes, NULL, &msg) == 0) {
			(void)hr__index_unpack_paths(&ix, msg);
			headrace__frame__free_unpacked(msg, NULL);
		}
		hr_index_done(&ix);
	}
	if (hr_segment_scan(s, index_frame, &ix, &scan) == 0) {
		check(&ix, scan.end);
		free(scan.holes);
		if (ix.n_frames > 0 && hr__index_pack(&ix, scan.end, &footer, &bytes) == 0)
			free(footer);
	}
	hr_index_done(&ix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct hr_source s = {.fd = -1, .memory = data, .bytes = bytes};
	uint8_t *buf;

	if (bytes < sizeof(struct hr_segment_hdr) + sizeof(struct hr_segment_trailer))
		return 0;
	parse(&s);
	buf = malloc(bytes);
	if (!buf)
		return 0;
	memcpy(buf, data, bytes);
	mend(buf, bytes);
	mend_trailer(buf, bytes);
	s.memory = buf;
	parse(&s);
	free(buf);
	return 0;
}
