/* SPDX-License-Identifier: Apache-2.0 */
/* ctor.c - constructor of libheadrace.so, and its exit handler; tests call hr__init themselves */
#include <stddef.h>

#include "shim/core/internal.h"

extern char **environ __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* A handler of atexit() would run too early (see below), and libc does not export atexit(). */
extern int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

/* The mark lets the probes attribute later writes to stdio. A vfork child would mark its parent. */
static void exiting(void *unused)
{
	(void)unused;
	if (hr_in_vfork_child())
		return;
	hr__ring_last_chance();
	hr__requests_cut();
	hr_self.slow.why[HR__SLOW_EXITING] = 1;
}

/*
 * glibc passes main's arguments to a constructor. It has not set environ yet, because this library
 * is initialized before libc (-z initfirst). Other libcs pass no arguments, but have set environ.
 */
__attribute__((constructor)) static void ctor_start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	if (gnu_get_libc_version == NULL)
		envp = &environ != NULL ? environ : NULL;
	hr__real_init(hr__env_value(envp, "LD_PRELOAD"));
	hr__init(envp);
	/*
	 * exit() runs handlers in reverse order of registration. libc registers the destructors of
	 * libraries after this handler, so this handler runs after them, and only stdio follows. A
	 * destructor of this library would run earlier, and so would a handler with a dso argument.
	 * This library is never unloaded (-z nodelete), so a handler without a dso argument stays
	 * valid.
	 */
	if (hr_shim_image.on)
		__cxa_atexit(exiting, NULL, NULL);
}
