/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.h - read-modify-write that is atomic only against signal handlers of the same thread
 *
 * Only one thread and its signal handlers write a ring's head; other threads may load it. A signal
 * handler cannot interrupt an instruction, so no lock prefix is needed, which would make the
 * instruction four times slower.
 *
 * Threads   Only the owning thread. ThreadSanitizer does not understand assembly, so with it these
 * functions are ordinary atomics.
 */
#ifndef HEADRACE_SHIM_CORE_LOCAL_H
#define HEADRACE_SHIM_CORE_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
static inline bool hr__cas_local(uint64_t *word, uint64_t *expected, uint64_t desired)
{
	bool done;

	__asm__("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*word), "+a"(*expected) : "r"(desired));
	return done;
}

static inline void hr__add_local(uint64_t *word, uint64_t n)
{
	__asm__("addq %1, %0" : "+m"(*word) : "er"(n) : "cc");
}
#else
static inline bool hr__cas_local(uint64_t *word, uint64_t *expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(word, expected, desired, true, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static inline void hr__add_local(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}
#endif

/* Prepares a write to this cache line. An x86-64 CPU without this instruction ignores it. */
static inline void hr__prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw (%0)" : : "r"(p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif
