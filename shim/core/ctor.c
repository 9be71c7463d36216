/* SPDX-License-Identifier: Apache-2.0 */
/* ctor.c - the constructor of libheadrace.so, and what runs last; tests call hr__init themselves */
#include <stddef.h>

#include "shim/core/internal.h"

extern char **environ __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* atexit() is no symbol of libc: it passes the dso of the library that it is linked into. */
extern int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

/*
 * For probes: from now on only stdio writes, from its buffers. A vfork child that exits runs this
 * in its parent's memory, and the parent continues.
 */
static void exiting(void *unused)
{
	(void)unused;
	if (hr__in_vfork_child())
		return;
	hr__requests_cut();
	hr__self.slow.why[HR__SLOW_EXITING] = 1;
}

/*
 * glibc passes main's arguments to a constructor. It has not set environ yet, because this library
 * is initialised before libc (-z initfirst). Other libcs pass nothing and have set it.
 */
__attribute__((constructor)) static void ctor_start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	hr__real_init();
	if (gnu_get_libc_version != NULL)
		hr__init(envp);
	else
		hr__init(&environ != NULL ? environ : NULL);
	/*
	 * A destructor of this library would run before those of later libraries. exit() runs
	 * handlers in reverse order of registration, and this one is registered before libc
	 * registers the destructors: only stdio is left when it runs. A dso argument would make it
	 * a destructor; this library is never unloaded (-z nodelete).
	 */
	if (hr__image.on)
		__cxa_atexit(exiting, NULL, NULL);
}
