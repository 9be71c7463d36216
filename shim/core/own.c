/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.c - names of libc that a library uses for functions of its own
 *
 * A library may define `remove` or `access` for itself, with other arguments than those of libc. If
 * the program is linked with it, the loader would give all callers the library's function, but the
 * shim is in front of it. The wrapper must not look at the arguments of such a function, and not
 * lose one, so the constructor replaces the beginning of the wrapper by a jump to the function.
 *
 * A preloaded library that wraps functions of libc defines the same names, but its functions have
 * the arguments of libc, so these wrappers stay in use. The difference: who was linked with libc
 * asks for a version of the symbol, and who was linked with the other library, or is this library,
 * for none.
 */
#include <string.h>
#include <sys/mman.h>

#include "shim/core/internal.h"
#include "shim/core/sys.h"

/* A jump to the address that follows it. */
static const uint8_t jump[] = {
#if defined(__x86_64__)
    0xff, 0x25, 0, 0, 0, 0 /* jmp *0(%rip) */
#else
    0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6 /* ldr x16, 8; br x16 */
#endif
};

/* All functions begin at multiples of 16 bytes, so the jump does not reach the next one. */
void hr__own_jump(void *wrapper, const void *to)
{
	uintptr_t first = (uintptr_t)wrapper & ~(uintptr_t)(HR__PAGE_ALIGN - 1);
	uint8_t *end = (uint8_t *)wrapper + sizeof(jump) + sizeof(to);
	size_t bytes = (uintptr_t)end - first;

	/* This function may be in the same page. SELinux, or a filter, may forbid such a page. */
	if (HR_SYS3(mprotect, first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return;
	memcpy(wrapper, jump, sizeof(jump));
	memcpy((uint8_t *)wrapper + sizeof(jump), &to, sizeof(to));
	HR_SYS3(mprotect, first, bytes, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)wrapper, (char *)end);
}
