/* SPDX-License-Identifier: Apache-2.0 */
/* jump.c - longjmp out of a signal handler, which leaves an operation that then never ends */
#include <setjmp.h>

#include "shim/core/clock.h"
#include "shim/core/ring.h"

extern const char *gnu_get_libc_version(void) __attribute__((weak));

/*
 * Returns the stack pointer that a jump will set, from setjmp's buffer: word 6 on x86-64, word 13
 * on aarch64. musl stores it unchanged. glibc on x86-64 (since 2.4) XORs it with the thread's
 * pointer guard and rotates it. glibc on aarch64 XORs it with a value, which this code gets by a
 * setjmp with a known stack pointer (musl: 0).
 */
static uintptr_t jump_target(const void *env)
{
#if defined(__x86_64__)
	uintptr_t sp = ((const uintptr_t *)env)[6], guard;

	if (gnu_get_libc_version == NULL)
		return sp;
	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	return (sp >> 17 | sp << 47) ^ guard;
#else
	uintptr_t here;
	jmp_buf own;

	(void)_setjmp(own);
	__asm__("mov %0, sp" : "=r"(here));
	return ((const uintptr_t *)env)[13] ^ ((const uintptr_t *)own)[13] ^ here;
#endif
}

/*
 * Whether the jump ends below the stack frame of the operation in flight. A signal handler then
 * jumps inside itself, and will return into the operation. If the handler runs on an alternate
 * stack above the operation's stack, this is not detected: the operation is recorded as cut now,
 * and again at its end.
 */
static bool jump_stays(const void *env)
{
	uintptr_t target = jump_target(env);

	return target > (uintptr_t)__builtin_frame_address(0) && target < hr_self.frame;
}

void hr_before_longjmp(const void *env)
{
	struct hr_ring_hdr *ring = hr_ring_current();
	uint8_t bare = hr_self.slow.why[HR__SLOW_BARE];
	struct hr_inflight cell;

	if (bare != HR_BARE_NOT && (bare != HR_BARE_CALL || !jump_stays(env))) {
		hr__bare_leave(HR_BARE_NOT);
		hr_self.began = 0;
	}
	if (ring == NULL ||
	    __atomic_load_n(hr__cell_word(&ring->inflight), __ATOMIC_RELAXED) == 0 ||
	    jump_stays(env))
		return;
	cell = ring->inflight;
	if (cell.op != 0)
		hr__ring_cut(ring, &cell, hr_shim_ticks());
	__atomic_store_n(hr__cell_word(&ring->inflight), 0, __ATOMIC_RELEASE);
}
