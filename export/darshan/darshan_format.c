/* SPDX-License-Identifier: Apache-2.0 */
#include "export/darshan/darshan_format.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PUT_BYTES (1u << 30) /* most bytes of one call of ISA-L */

/* ---- ids ---- */

struct hash_state {
	uint64_t a, b, c;
};

static void hash_mix(struct hash_state *h)
{
	static const uint8_t shifts[4][3] = {{43, 9, 8}, {38, 23, 5}, {35, 49, 11}, {12, 18, 22}};

	for (unsigned i = 0; i < 4; i++) {
		h->a = (h->a - h->b - h->c) ^ (h->c >> shifts[i][0]);
		h->b = (h->b - h->c - h->a) ^ (h->a << shifts[i][1]);
		h->c = (h->c - h->a - h->b) ^ (h->b >> shifts[i][2]);
	}
}

/* Returns up to 8 bytes as a little-endian number. */
static uint64_t bytes_number(const uint8_t *from, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n && i < 8; i++)
		v |= (uint64_t)from[i] << (8 * i);
	return v;
}

uint64_t hr_darshan_id(const void *name, size_t bytes)
{
	struct hash_state h = {.c = UINT64_C(0x9e3779b97f4a7c13)};
	const uint8_t *at = name;
	size_t left = bytes;

	for (; left >= 24; at += 24, left -= 24) {
		h.a += bytes_number(at, 8);
		h.b += bytes_number(at + 8, 8);
		h.c += bytes_number(at + 16, 8);
		hash_mix(&h);
	}
	/* The lowest byte of the last number contains the length. */
	h.c += bytes;
	h.a += bytes_number(at, left);
	if (left > 8)
		h.b += bytes_number(at + 8, left - 8);
	if (left > 16)
		h.c += bytes_number(at + 16, left - 16) << 8;
	hash_mix(&h);
	return h.c;
}

/* ---- regions ---- */

static int log_write(struct hr_darshan_log *log, const void *data, size_t bytes, uint64_t at)
{
	const uint8_t *from = data;

	while (bytes > 0) {
		ssize_t n = pwrite(log->fd, from, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		at += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

void hr_darshan_begin(struct hr_darshan_log *log, int fd)
{
	memset(log, 0, sizeof(*log));
	log->fd = fd;
	log->at = sizeof(log->header);
	memcpy(log->header.version, "3.41", 4);
	log->header.magic = HR_DARSHAN_MAGIC;
}

void hr_darshan_region_start(struct hr_darshan_log *log)
{
	log->region_at = log->at;
	isal_deflate_init(&log->z);
	log->z.level = 1;
	log->z.level_buf = log->level;
	log->z.level_buf_size = sizeof(log->level);
	log->z.gzip_flag = IGZIP_ZLIB;
}

/* Compresses the input of log->z, and writes what is ready. */
static int region_deflate(struct hr_darshan_log *log)
{
	do {
		size_t n;
		int r;

		log->z.next_out = log->out;
		log->z.avail_out = sizeof(log->out);
		if (isal_deflate(&log->z) != COMP_OK)
			return -EIO;
		n = sizeof(log->out) - log->z.avail_out;
		r = log_write(log, log->out, n, log->at);
		if (r < 0)
			return r;
		log->at += n;
	} while (log->z.avail_out == 0);
	return 0;
}

int hr_darshan_put(struct hr_darshan_log *log, const void *data, size_t bytes)
{
	const uint8_t *from = data;
	int r = 0;

	while (bytes > 0 && r == 0) {
		uint32_t n = bytes < PUT_BYTES ? (uint32_t)bytes : PUT_BYTES;

		log->z.next_in = (uint8_t *)from;
		log->z.avail_in = n;
		r = region_deflate(log);
		from += n;
		bytes -= n;
	}
	return r;
}

int hr_darshan_region_end(struct hr_darshan_log *log, struct hr_darshan_region *ret)
{
	int r;

	log->z.end_of_stream = 1;
	r = region_deflate(log);
	if (r == 0)
		*ret = (struct hr_darshan_region){log->region_at, log->at - log->region_at};
	return r;
}

int hr_darshan_module_end(struct hr_darshan_log *log, enum hr_darshan_module module,
			  enum hr_darshan_version version)
{
	log->header.versions[module] = (uint32_t)version;
	return hr_darshan_region_end(log, &log->header.modules[module]);
}

int hr_darshan_finish(struct hr_darshan_log *log)
{
	return log_write(log, &log->header, sizeof(log->header), 0);
}
