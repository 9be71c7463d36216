/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - CRC-32C (Castagnoli), with the CPU's instruction where there is one
 *
 * The choice is made at each call from flags that libgcc or the kernel has already read: it costs a
 * load, needs no ifunc, no initialisation and no lock.
 */
#include "common/frame.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

/* The CRC of each nibble: a table of one cache line serves the CPUs without the instruction. */
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
static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t crc_instruction(uint32_t crc, const uint8_t *p,
								  size_t n)
{
	uint64_t wide = crc;

	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		wide = _mm_crc32_u64(wide, word);
	}
	crc = (uint32_t)wide;
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
