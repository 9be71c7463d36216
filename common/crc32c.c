/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - CRC-32C (Castagnoli), by the CPU's instruction if there is one
 *
 * Each call checks the CPU's features, which libgcc or the kernel provides. This takes one load,
 * and needs no ifunc, initialization or lock.
 */
#include "common/frame.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

/* The CRC of each 4-bit value, for CPUs without the instruction. The table fits a cache line. */
#define STEP(c)	  (((c) >> 1) ^ (POLYNOMIAL & -((c)&1u)))
#define NIBBLE(n) STEP(STEP(STEP(STEP((uint32_t)(n)))))

static const uint32_t nibbles[16] = {
    NIBBLE(0), NIBBLE(1), NIBBLE(2),  NIBBLE(3),  NIBBLE(4),  NIBBLE(5),  NIBBLE(6),  NIBBLE(7),
    NIBBLE(8), NIBBLE(9), NIBBLE(10), NIBBLE(11), NIBBLE(12), NIBBLE(13), NIBBLE(14), NIBBLE(15),
};

static uint32_t crc_table(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n-- > 0) {
		crc ^= *p++;
		crc = (crc >> 4) ^ nibbles[crc & 15];
		crc = (crc >> 4) ^ nibbles[crc & 15];
	}
	return crc;
}

#if defined(__x86_64__)
/*
 * The instruction takes three cycles, and the CPU can start one in each cycle. So a long input is
 * divided into three lanes, which are summed in parallel. A multiplication by x^(8 * bytes - 33)
 * modulo the polynomial shifts the sum of a lane by the bytes of the later lanes.
 */
#define LANE_BYTES     ((size_t)512)
#define PAST_ONE_LANE  UINT32_C(0xdd7e3b0c)
#define PAST_TWO_LANES UINT32_C(0x170076fa)

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

__attribute__((target("sse4.2,crc32,pclmul"))) static uint64_t move_past(uint64_t crc,
									 uint32_t lanes)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc),
					       _mm_cvtsi64_si128((int64_t)lanes), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

__attribute__((target("sse4.2,crc32,pclmul"))) static uint32_t
crc_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t first = crc;

	for (; n >= 3 * LANE_BYTES; n -= 3 * LANE_BYTES, p += 2 * LANE_BYTES) {
		uint64_t second = 0, third = 0;

		for (const uint8_t *end = p + LANE_BYTES; p < end; p += 8) {
			first = _mm_crc32_u64(first, word_at(p));
			second = _mm_crc32_u64(second, word_at(p + LANE_BYTES));
			third = _mm_crc32_u64(third, word_at(p + 2 * LANE_BYTES));
		}
		first = move_past(first, PAST_TWO_LANES) ^ move_past(second, PAST_ONE_LANE) ^ third;
	}
	for (; n >= 8; n -= 8, p += 8)
		first = _mm_crc32_u64(first, word_at(p));
	crc = (uint32_t)first;
	for (; n > 0; n--)
		crc = _mm_crc32_u8(crc, *p++);
	return crc;
}
#elif defined(__aarch64__)
static bool has_instruction(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

__attribute__((target("+crc"))) static uint32_t crc_instruction(uint32_t crc, const uint8_t *p,
								size_t n)
{
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		crc = __crc32cd(crc, word);
	}
	for (; n > 0; n--)
		crc = __crc32cb(crc, *p++);
	return crc;
}
#else
static bool has_instruction(void)
{
	return false;
}
#define crc_instruction crc_table
#endif

uint32_t hr__crc32c_table(uint32_t crc, const void *data, size_t bytes)
{
	return ~crc_table(~crc, data, bytes);
}

uint32_t hr_crc32c(uint32_t crc, const void *data, size_t bytes)
{
	if (!has_instruction())
		return hr__crc32c_table(crc, data, bytes);
	return ~crc_instruction(~crc, data, bytes);
}
