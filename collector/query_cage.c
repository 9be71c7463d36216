/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/query_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sanitizers map terabytes, read /proc, and trace their process, so some limits are off. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define NICE	   10
#define FILES_MAX  256u
#define CPU_KILL_S 5u /* seconds from SIGXCPU, which the collector reports, to SIGKILL */
/* The limit of the engine is lower by this, because the engine has the better error message. */
#define SPILL_MORE (UINT64_C(64) << 20)
/* The limit of processor time is higher by this, so that the time limit applies first. */
#define CPU_MORE_S 10u

/* Measured needs of address space (docs/measurements.md). */
#define ENGINE_BYTES (UINT64_C(512) << 20)
/* per thread: stack, allocator arena, columns of a batch */
#define THREAD_BYTES (UINT64_C(160) << 20)

int hr_cage_begin(void)
{
	const struct sched_param none = {0};
	int fd;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	umask(077);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "1000", strlen("1000"));
		close(fd);
	}
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	return 0;
}

/* Sets a soft limit, at which the kernel may send a signal, and a hard limit `more` above it. */
static int limit(int what, uint64_t most, uint64_t more)
{
	struct rlimit l;

	if (getrlimit(what, &l) < 0)
		return -errno;
	if (l.rlim_max > most + more)
		l.rlim_max = most + more;
	l.rlim_cur = l.rlim_max < most ? l.rlim_max : most;
	return setrlimit(what, &l) < 0 ? -errno : 0;
}

static int limits(const struct hr_cage *c)
{
	uint64_t cpu_s = (c->time_ms / 1000 + 1) * c->threads + CPU_MORE_S;
	int r = limit(RLIMIT_NOFILE, FILES_MAX, 0);

	/* Lets a write beyond the limit fail, and so the statement, without a signal. */
	signal(SIGXFSZ, SIG_IGN);
	if (r == 0)
		r = limit(RLIMIT_CORE, 0, 0);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, c->spill != NULL ? c->spill_bytes + SPILL_MORE : 0, 0);
	if (r == 0 && c->time_ms != 0)
		r = limit(RLIMIT_CPU, cpu_s, CPU_KILL_S);
	return r;
}

int hr_cage_memory(struct hr_cage *c, uint64_t bytes)
{
	char text[64] = {0};
	unsigned long pages;
	ssize_t n = pread(c->statm, text, sizeof(text) - 1, 0);

	close(c->statm);
	c->statm = -1;
	if (SANITIZED)
		return 0;
	pages = n > 0 ? strtoul(text, NULL, 10) : 0;
	if (pages == 0)
		return -EIO;
	return limit(RLIMIT_AS,
		     pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes + ENGINE_BYTES +
			 c->threads * THREAD_BYTES,
		     0);
}

/* ---- Landlock (with numbers of the kernel that older headers lack), seccomp ---- */

#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule	     445
#define __NR_landlock_restrict_self  446
#endif

struct ruleset {
	uint64_t files;	 /* forbidden kinds of access to files */
	uint64_t net;	 /* forbidden kinds of network access; since Landlock version 4 */
	uint64_t scoped; /* forbidden access to other processes; since version 6 */
};

struct path_rule {
	uint64_t allowed;
	int32_t folder;
} __attribute__((packed));

#define RULE_PATH 1
#define VERSION	  1u /* flag: return only the version */

#define MAY_EXECUTE (UINT64_C(1) << 0)
#define MAY_WRITE   (UINT64_C(1) << 1)
#define MAY_READ    (UINT64_C(1) << 2)
#define MAY_LIST    (UINT64_C(1) << 3)
#define MAY_RMDIR   (UINT64_C(1) << 4)
#define MAY_REMOVE  (UINT64_C(1) << 5)
#define MAY_MKDIR   (UINT64_C(1) << 7)
#define MAY_CREATE  (UINT64_C(1) << 8)
#define MAY_REFER   (UINT64_C(1) << 13) /* since version 2 */
#define MAY_CUT	    (UINT64_C(1) << 14) /* since version 3 */

#define FILES_1 ((UINT64_C(1) << 13) - 1)
#define FILES_5 (UINT64_C(1) << 15) /* ioctl of devices */
#define NET_4	UINT64_C(3)	    /* bind, connect TCP */
#define SCOPE_6 UINT64_C(3)	    /* abstract sockets and signals stay inside the process */

/* Sets all that this version of Landlock can forbid. Returns the size of its structure. */
static size_t everything(long version, struct ruleset *ret)
{
	*ret = (struct ruleset){.files = FILES_1};
	if (version >= 2)
		ret->files |= MAY_REFER;
	if (version >= 3)
		ret->files |= MAY_CUT;
	if (version >= 5)
		ret->files |= FILES_5;
	if (version >= 4)
		ret->net = NET_4;
	if (version >= 6)
		ret->scoped = SCOPE_6;
	return version >= 6   ? sizeof(*ret)
	       : version >= 4 ? offsetof(struct ruleset, scoped)
			      : offsetof(struct ruleset, net);
}

static int allow(int ruleset, const char *folder, uint64_t what)
{
	struct path_rule rule = {.allowed = what,
				 .folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	int r = 0;

	if (rule.folder < 0)
		return -errno;
	if (syscall(__NR_landlock_add_rule, ruleset, RULE_PATH, &rule, 0) < 0)
		r = -errno;
	close(rule.folder);
	return r;
}

static int lock_land(const struct hr_cage *c)
{
	long version = syscall(__NR_landlock_create_ruleset, NULL, 0, VERSION);
	struct ruleset all;
	size_t bytes;
	int fd, r;

	if (version < 1)
		return 0; /* there is no Landlock, or it is switched off */
	bytes = everything(version, &all);
	fd = (int)syscall(__NR_landlock_create_ruleset, &all, bytes, 0);
	if (fd < 0)
		return -errno;
	r = allow(fd, c->store, MAY_READ | MAY_LIST);
	if (r == 0 && c->spill != NULL)
		r = allow(fd, c->spill,
			  all.files & (MAY_READ | MAY_LIST | MAY_WRITE | MAY_CUT | MAY_CREATE |
				       MAY_MKDIR | MAY_REMOVE | MAY_RMDIR));
	if (r == 0 && SANITIZED)
		r = allow(fd, "/proc", MAY_READ | MAY_LIST);
	if (r == 0 && syscall(__NR_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	close(fd);
	return r;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define NO(error)    (SECCOMP_RET_ERRNO | (error))
#define DENY(call)   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), ANSWER(NO(EPERM))

/*
 * Forbids calls by which a compromised engine could reach processes or the network. (A list of
 * allowed calls would depend on the C library.)
 */
static int filter_calls(void)
{
#ifdef ARCH
	static const struct sock_filter program[] = {
	    LOAD(arch),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	    ANSWER(SECCOMP_RET_KILL_PROCESS),
	    LOAD(nr),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0,
		     1), /* x32 calls have other numbers */
	    ANSWER(NO(EPERM)),
	    DENY(socket),
	    DENY(socketpair),
	    DENY(connect),
	    DENY(bind),
	    DENY(listen),
	    DENY(execve),
	    DENY(execveat),
	    DENY(ptrace),
	    DENY(process_vm_readv),
	    DENY(process_vm_writev),
	    DENY(kill),
	    DENY(tkill),
	    DENY(pidfd_open),
	    DENY(pidfd_send_signal),
	    DENY(mount),
	    DENY(unshare),
	    DENY(setns),
	    DENY(bpf),
	    DENY(perf_event_open),
	    DENY(userfaultfd),
	    DENY(io_uring_setup),
	    DENY(keyctl),
	    DENY(add_key),
	    DENY(request_key),
	    DENY(memfd_create),
	    /* If clone3 fails, libc uses clone, whose flags the filter can check. */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
	    ANSWER(NO(ENOSYS)),
#ifdef __NR_fork
	    DENY(fork),
	    DENY(vfork),
#endif
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 1, 0),
	    ANSWER(SECCOMP_RET_ALLOW),
	    LOAD(args[0]),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
	    ANSWER(NO(EPERM)),
	    ANSWER(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog all = {.len = sizeof(program) / sizeof(program[0]),
				       .filter = (struct sock_filter *)program};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) < 0 && errno != EINVAL)
		return -errno; /* EINVAL: no seccomp in this kernel */
#endif
	return 0;
}

int hr_cage_enter(struct hr_cage *c)
{
	int r = limits(c);

	c->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (r == 0)
		r = lock_land(c);
	if (r == 0 && !SANITIZED)
		r = filter_calls();
	return r;
}
