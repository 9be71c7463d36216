/* SPDX-License-Identifier: Apache-2.0 */
/* wrap_process.c - hooks: fork and clone, environment (wrap_exec.c: start of programs) */
#include "shim/wrap/wrap.h"
#include "shim/wrap/wrap_thunk.h"

static inline pid_t forked(pid_t pid)
{
	if (pid > 0)
		hr_after_fork_parent(pid);
	else if (pid == 0)
		hr_after_fork_child();
	return pid;
}

pid_t hr_wrap_fork(void)
{
	return forked(HR_REAL(fork)());
}

pid_t hr_wrap__Fork(void)
{
	return forked(HR_REAL(_Fork)());
}

void *hr__vfork_target(void)
{
	hr_before_vfork();
	return hr_real_get(HR_OP_vfork);
}

HR_THUNK(vfork)

/* A clone with shared memory is treated like a vfork, but its child starts in fn. */
int hr_wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	void *parent_tid, *tls, *child_tid;
	va_list ap;
	int r;

	va_start(ap, arg);
	parent_tid = va_arg(ap, void *);
	tls = va_arg(ap, void *);
	child_tid = va_arg(ap, void *);
	va_end(ap);
	hr_before_clone((unsigned)flags);
	r = HR_REAL(clone)(fn, stack, flags, arg, parent_tid, tls, child_tid);
	if (r > 0 && !(flags & CLONE_VM))
		hr_after_fork_parent(r);
	return r;
}

/* daemon() forks inside libc, returns in the child, and may replace descriptors 0 to 2. */
int hr_wrap_daemon(int nochdir, int noclose)
{
	int r = HR_REAL(daemon)(nochdir, noclose);

	if (r == 0)
		hr_after_fork_child();
	for (int fd = 0; fd <= 2; fd++)
		hr_fd_clear(fd);
	hr_cwd_changed();
	return r;
}

/* prctl may set a seccomp filter, after which the shim makes no system calls. */
int hr_wrap_prctl(int option, ...)
{
	unsigned long a, b, c, d;
	va_list ap;
	bool filter;
	int r;

	va_start(ap, option);
	a = va_arg(ap, unsigned long);
	b = va_arg(ap, unsigned long);
	c = va_arg(ap, unsigned long);
	d = va_arg(ap, unsigned long);
	va_end(ap);
	filter = hr_before_prctl(option, a, b);
	r = HR_REAL(prctl)(option, a, b, c, d);
	if (filter && r < 0)
		hr_seccomp_failed();
	return r;
}

int hr_wrap_unshare(int flags)
{
	hr_before_unshare((unsigned)flags);
	return HR_REAL(unshare)(flags);
}

/* ---- environment: a rank may be set after the start (init_process_group, mp.spawn) ------------ */

int hr_wrap_setenv(const char *name, const char *value, int overwrite)
{
	int r = HR_REAL(setenv)(name, value, overwrite);

	/* Without `overwrite`, an old value stays. It is not read, because getenv takes no lock. */
	if (r == 0 && !overwrite)
		hr_env_add(name, value);
	else if (r == 0)
		hr_env_set(name, value);
	return r;
}

/* `text` is NAME=VALUE. The names in env_names.def are shorter than the buffer. */
int hr_wrap_putenv(char *text)
{
	int r = HR_REAL(putenv)(text);
	char name[64];
	size_t n = 0;

	while (r == 0 && n < sizeof(name) && text[n] != '\0' && text[n] != '=') {
		name[n] = text[n];
		n++;
	}
	if (n > 0 && n < sizeof(name) && text[n] == '=') {
		name[n] = '\0';
		hr_env_set(name, text + n + 1);
	}
	return r;
}
