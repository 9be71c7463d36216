/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_thunk.h - the entries that must not leave a stack frame
 *
 * The child of vfork returns to its caller first, on the parent's stack, and would overwrite a
 * frame of the wrapper. dlsym and dlopen depend on the library that called them, which they find by
 * the return address. So the wrapper of such a function calls hr__<name>_target, a C function which
 * returns the address of the function to use, and then jumps there with stack and registers
 * unchanged (HR_THUNK: of a function with at most three arguments). The wrapper of syscall() does
 * the same for system calls that create a process (fork, clone...). For all others, it jumps to
 * hr__syscall_record. wrap_syscall.c uses HR_THUNK_SYSCALL once.
 */
#ifndef HEADRACE_SHIM_WRAP_WRAP_THUNK_H
#define HEADRACE_SHIM_WRAP_WRAP_THUNK_H

#include <sys/syscall.h>

#define HR_STRING_(x) #x
#define HR_STRING(x)  HR_STRING_(x)
#define HR_HIDDEN     __attribute__((visibility("hidden"), used))

/* They return the address of the function to use, and mark the thread before a vfork. */
HR_HIDDEN void *hr__vfork_target(void);
HR_HIDDEN void *hr__dlsym_target(void *handle);
HR_HIDDEN void *hr__dlvsym_target(void *handle);
HR_HIDDEN void *hr__dlopen_target(const char *path, int flags);
HR_HIDDEN void *hr__dlmopen_target(long scope, const char *path, int flags);
HR_HIDDEN void *hr__syscall_target(long number, unsigned long a);
/* Records a call of syscall() with any other number. */
HR_HIDDEN long hr__syscall_record(long number, long a, long b, long c, long d, long e, long f);

/* clang-format off */
#define HR_ENTRY(name) \
	".text\n" \
	".p2align 4\n" \
	".globl " name "\n" \
	".type " name ", %function\n" \
	name ":\n" \
	".cfi_startproc\n"

#define HR_ENTRY_END(name) \
	".cfi_endproc\n" \
	".size " name ", . - " name "\n" \
	".previous\n"

#if defined(__x86_64__)

#define HR_THUNK(name) \
	__asm__(HR_ENTRY(#name) \
		"endbr64\n" \
		"push %rdi\n" \
		"push %rsi\n" \
		"push %rdx\n" \
		".cfi_adjust_cfa_offset 24\n" \
		"call hr__" #name "_target\n" \
		"pop %rdx\n" \
		"pop %rsi\n" \
		"pop %rdi\n" \
		".cfi_adjust_cfa_offset -24\n" \
		"jmp *%rax\n" \
		HR_ENTRY_END(#name));

/* Passes seven words to hr__syscall_record: six in registers, the last one on the stack. */
#define HR_THUNK_SYSCALL \
	__asm__(HR_ENTRY("syscall") \
		"endbr64\n" \
		"cmp $" HR_STRING(SYS_clone) ", %rdi\n" \
		"je 1f\n" \
		"cmp $" HR_STRING(SYS_fork) ", %rdi\n" \
		"je 1f\n" \
		"cmp $" HR_STRING(SYS_vfork) ", %rdi\n" \
		"je 1f\n" \
		"cmp $" HR_STRING(HR_SYS_CLONE3) ", %rdi\n" \
		"je 1f\n" \
		"jmp hr__syscall_record\n" \
		"1: push %rdi\n" \
		"push %rsi\n" \
		"push %rdx\n" \
		"push %rcx\n" \
		"push %r8\n" \
		"push %r9\n" \
		"sub $8, %rsp\n" \
		".cfi_adjust_cfa_offset 56\n" \
		"call hr__syscall_target\n" \
		"add $8, %rsp\n" \
		"pop %r9\n" \
		"pop %r8\n" \
		"pop %rcx\n" \
		"pop %rdx\n" \
		"pop %rsi\n" \
		"pop %rdi\n" \
		".cfi_adjust_cfa_offset -56\n" \
		"jmp *%rax\n" \
		HR_ENTRY_END("syscall"));

#elif defined(__aarch64__)

#define HR_THUNK(name) \
	__asm__(HR_ENTRY(#name) \
		"hint #34\n" /* bti c */ \
		"stp x29, x30, [sp, #-48]!\n" \
		".cfi_adjust_cfa_offset 48\n" \
		"stp x0, x1, [sp, #16]\n" \
		"str x2, [sp, #32]\n" \
		"bl hr__" #name "_target\n" \
		"mov x16, x0\n" \
		"ldp x0, x1, [sp, #16]\n" \
		"ldr x2, [sp, #32]\n" \
		"ldp x29, x30, [sp], #48\n" \
		".cfi_adjust_cfa_offset -48\n" \
		"br x16\n" \
		HR_ENTRY_END(#name));

/* Passes seven words, all in registers. This architecture lacks fork and vfork. */
#define HR_THUNK_SYSCALL \
	__asm__(HR_ENTRY("syscall") \
		"hint #34\n" /* bti c */ \
		"cmp x0, #" HR_STRING(SYS_clone) "\n" \
		"b.eq 1f\n" \
		"cmp x0, #" HR_STRING(HR_SYS_CLONE3) "\n" \
		"b.eq 1f\n" \
		"b hr__syscall_record\n" \
		"1: stp x29, x30, [sp, #-80]!\n" \
		".cfi_adjust_cfa_offset 80\n" \
		"stp x0, x1, [sp, #16]\n" \
		"stp x2, x3, [sp, #32]\n" \
		"stp x4, x5, [sp, #48]\n" \
		"str x6, [sp, #64]\n" \
		"bl hr__syscall_target\n" \
		"mov x16, x0\n" \
		"ldp x0, x1, [sp, #16]\n" \
		"ldp x2, x3, [sp, #32]\n" \
		"ldp x4, x5, [sp, #48]\n" \
		"ldr x6, [sp, #64]\n" \
		"ldp x29, x30, [sp], #80\n" \
		".cfi_adjust_cfa_offset -80\n" \
		"br x16\n" \
		HR_ENTRY_END("syscall"));

#else
#error "headrace: x86-64 and aarch64 only"
#endif
/* clang-format on */

#define HR_SYS_CLONE3 435 /* the same number on every architecture; old headers lack it */

#endif
