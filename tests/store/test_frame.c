/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "123456789" is the check value of every CRC catalogue; the other is from RFC 3720, B.4. */
static void crc_known_values(void **state)
{
	uint8_t zeros[32] = {0};

	assert_int_equal(hr_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(hr_crc32c(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(hr__crc32c_table(0, "123456789", 9), 0xe3069283);
}

static void crc_table_and_instruction_agree(void **state)
{
	uint8_t data[4000]; /* more than two rounds of three lanes */

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n < sizeof(data); n++) {
		uint32_t whole = hr_crc32c(0, data, n);

		assert_int_equal(whole, hr__crc32c_table(0, data, n));
		assert_int_equal(whole,
				 hr_crc32c(hr_crc32c(0, data, n / 3), data + n / 3, n - n / 3));
	}
}

static void pack_job(int compress, uint8_t **ret_buf, size_t *ret_bytes)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	Headrace__JobEvent job = HEADRACE__JOB_EVENT__INIT;
	char name[2001];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	job.name = name;
	job.uid = 5;
	frame.seq = 42;
	frame.body_case = HEADRACE__FRAME__BODY_JOB;
	frame.job = &job;
	assert_int_equal(hr_frame_pack(&frame, compress, ret_buf, ret_bytes), 0);
}

static void frame_round_trip(void **state)
{
	for (int compress = 0; compress < 2; compress++) {
		Headrace__Frame *msg;
		uint8_t *buf;
		size_t bytes, whole;

		pack_job(compress, &buf, &bytes);
		assert_true(compress ? bytes < 200 : bytes > 2000);
		assert_int_equal(hr_frame_check(buf, bytes, &whole), 0);
		assert_int_equal(whole, bytes);
		assert_int_equal(hr_frame_unpack(buf, bytes, &msg), 0);
		assert_int_equal(msg->seq, 42);
		assert_int_equal(msg->body_case, HEADRACE__FRAME__BODY_JOB);
		assert_int_equal(strlen(msg->job->name), 2000);
		headrace__frame__free_unpacked(msg, NULL);
		free(buf);
	}
}

static void check_asks_for_more(void **state)
{
	uint8_t *buf;
	size_t bytes, need;

	pack_job(0, &buf, &bytes);
	for (size_t n = 0; n < bytes; n++) {
		assert_int_equal(hr_frame_check(buf, n, &need), -EAGAIN);
		assert_int_equal(need, n < HR_FRAME_HDR_BYTES ? HR_FRAME_HDR_BYTES : bytes);
	}
	free(buf);
}

/* Whatever single bit flips, the frame is not taken. */
static void check_finds_every_flip(void **state)
{
	uint8_t *buf;
	size_t bytes, whole;

	pack_job(1, &buf, &bytes);
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(hr_frame_check(buf, bytes, &whole) < 0);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	free(buf);
}

static void seal_by_hand(uint8_t *buf, uint32_t length, uint32_t flags)
{
	struct hr_frame_hdr h = {.magic = HR_FRAME_MAGIC, .length = length, .flags = flags};

	h.crc32c = hr_crc32c(0, &h.length, 8);
	h.crc32c = hr_crc32c(h.crc32c, buf + sizeof(h), length);
	memcpy(buf, &h, sizeof(h));
}

static void limits(void **state)
{
	struct hr_frame_hdr h = {.magic = HR_FRAME_MAGIC, .length = HR_FRAME_MAX_BYTES + 1};
	/* A zstd frame header that declares 2^40 bytes: magic, single segment with 8-byte size. */
	uint8_t bomb[HR_FRAME_HDR_BYTES + 16] = {0};
	const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0};
	size_t whole;
	Headrace__Frame *msg;

	assert_int_equal(hr_frame_check((uint8_t *)&h, sizeof(h), &whole), -E2BIG);
	h.length = 0;
	h.flags = 2; /* unknown */
	assert_int_equal(hr_frame_check((uint8_t *)&h, sizeof(h), &whole), -EBADMSG);
	memcpy(bomb + HR_FRAME_HDR_BYTES, zstd, sizeof(zstd));
	seal_by_hand(bomb, 16, HR_FRAME_ZSTD);
	assert_int_equal(hr_frame_check(bomb, sizeof(bomb), &whole), 0);
	assert_int_equal(hr_frame_unpack(bomb, sizeof(bomb), &msg), -EBADMSG);
	assert_int_equal(hr_frame_unpack(bomb, 10, &msg), -EBADMSG);
}

static void undecodable_payload(void **state)
{
	uint8_t buf[HR_FRAME_HDR_BYTES + 4] = {0};
	Headrace__Frame *msg;

	memset(buf + HR_FRAME_HDR_BYTES, 0xff, 4);
	seal_by_hand(buf, 4, 0);
	assert_int_equal(hr_frame_unpack(buf, sizeof(buf), &msg), -EBADMSG);
	seal_by_hand(buf, 4, HR_FRAME_ZSTD);
	assert_int_equal(hr_frame_unpack(buf, sizeof(buf), &msg), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(crc_known_values),
	    cmocka_unit_test(crc_table_and_instruction_agree),
	    cmocka_unit_test(frame_round_trip),
	    cmocka_unit_test(check_asks_for_more),
	    cmocka_unit_test(check_finds_every_flip),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(undecodable_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
