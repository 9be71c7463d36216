/* SPDX-License-Identifier: Apache-2.0 */
/*
 * highfd CMD... - lets one program use descriptors above 65,536 where the hard limit forbids them
 *
 * A tracer between the program and the kernel: descriptor numbers from SHIFT + 512 up are SHIFT lower in the kernel, and
 * the limit on open files that the program reads is SHIFT higher. Libraries in the program, the shim among them, see
 * nothing but high numbers. Follows one process and no children. Exit status as CMD's; 77 where it does not work.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
int main(void)
{
	return 77;
}
#else

#define SHIFT 50000
#define FIRST (SHIFT + 512)

static pid_t child;

/* The kernel's number for one that the program uses. */
static bool lower(unsigned long long *number)
{
	if ((int)*number < FIRST)
		return false;
	*number = (unsigned)((int)*number - SHIFT);
	return true;
}

/* Makes descriptor arguments the kernel's; true when the result is a descriptor that must look high again. */
static bool enter(struct user_regs_struct *regs)
{
	switch (regs->orig_rax) {
	case SYS_dup2:
	case SYS_dup3:
		lower(&regs->rdi);
		return lower(&regs->rsi);
	case SYS_fcntl:
		lower(&regs->rdi);
		return (regs->rsi == F_DUPFD || regs->rsi == F_DUPFD_CLOEXEC) && lower(&regs->rdx);
	case SYS_mmap:
		lower(&regs->r8);
		return false;
	case SYS_prlimit64: /* the limit is high enough already: only read it */
		if (regs->rsi == RLIMIT_NOFILE)
			regs->rdx = 0;
		return false;
	case SYS_close_range:
		lower(&regs->rsi);
		lower(&regs->rdi);
		return false;
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_close:
	case SYS_fstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_lseek:
	case SYS_dup:
		lower(&regs->rdi);
		return false;
	default:
		return false;
	}
}

static void raise_limit(uintptr_t address)
{
	struct rlimit limit;
	struct iovec here = {&limit, sizeof(limit)}, there = {(void *)address, sizeof(limit)};

	if (address == 0 || process_vm_readv(child, &here, 1, &there, 1, 0) != sizeof(limit))
		return;
	limit.rlim_cur += SHIFT;
	limit.rlim_max += SHIFT;
	process_vm_writev(child, &here, 1, &there, 1, 0);
}

/* One system call of the child: entry stop, the call, exit stop. False when the child ended. */
static bool one_call(int *ret_status)
{
	struct user_regs_struct regs, before;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) < 0 ||
		    waitpid(child, ret_status, 0) != child)
			return false;
		if (!WIFSTOPPED(*ret_status))
			return false;
		if (WSTOPSIG(*ret_status) == (SIGTRAP | 0x80))
			break;
	}
	ptrace(PTRACE_GETREGS, child, NULL, &regs);
	before = regs;
	bool high = enter(&regs);
	ptrace(PTRACE_SETREGS, child, NULL, &regs);
	if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) < 0 ||
	    waitpid(child, ret_status, 0) != child || !WIFSTOPPED(*ret_status))
		return false;
	ptrace(PTRACE_GETREGS, child, NULL, &regs);
	if (regs.orig_rax == SYS_prlimit64 && before.rsi == RLIMIT_NOFILE)
		raise_limit(before.r10);
	if (high && (long long)regs.rax >= 0)
		regs.rax += SHIFT;
	regs.rdi = before.rdi;
	regs.rsi = before.rsi;
	regs.rdx = before.rdx;
	regs.r8 = before.r8;
	ptrace(PTRACE_SETREGS, child, NULL, &regs);
	return true;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc < 2)
		return 2;
	child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (one_call(&status))
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#endif
