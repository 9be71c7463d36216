/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tsc.h - a counter that user space reads by one instruction; its ticks are the clock of a session
 *
 * On x86-64 this is the time stamp counter (TSC). On aarch64 it is the virtual counter of the
 * generic timer, which is called TSC here, too. Shim and daemon must read the same counter, so both
 * use this file. Any thread and any signal handler may use it.
 */
#ifndef HEADRACE_COMMON_TSC_H
#define HEADRACE_COMMON_TSC_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Whether ticks have one rate on all cores, as always with the generic timer of aarch64. */
static inline bool hr_tsc_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
	return true;
#endif
}

/* The CPU may reorder this instruction with loads and stores, but not with a system call. */
static inline uint64_t hr_tsc_read(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
#error "headrace: x86-64 and aarch64 only"
#endif
}

#endif
