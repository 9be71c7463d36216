/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctor.c - the constructor of libheadrace.so; tests call hr__init themselves
 */
#include <stddef.h>

#include "shim/internal.h"

extern char **environ __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/*
 * glibc passes a constructor main's arguments, and has not set environ yet, because this library is
 * initialised before libc (-z initfirst). Other libcs pass nothing and have set it.
 */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	hr__real_init();
	if (gnu_get_libc_version != NULL)
		hr__init(envp);
	else
		hr__init(&environ != NULL ? environ : NULL);
}
