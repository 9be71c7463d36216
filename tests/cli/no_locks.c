/* SPDX-License-Identifier: Apache-2.0 */
/* no_locks.c - a library for LD_PRELOAD: no file has locks of open file descriptions, as on Lustre without `flock` */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

typedef int control(int fd, int cmd, ...);

static int without_locks(const char *name, int fd, int cmd, void *arg)
{
	control *next = (control *)dlsym(RTLD_NEXT, name);

	if (cmd == F_OFD_GETLK || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW) {
		errno = ENOLCK;
		return -1;
	}
	return next(fd, cmd, arg);
}

#define CONTROL(name)                                                                              \
	int name(int fd, int cmd, ...)                                                             \
	{                                                                                          \
		va_list list;                                                                      \
		void *arg;                                                                         \
                                                                                                   \
		va_start(list, cmd);                                                               \
		arg = va_arg(list, void *);                                                        \
		va_end(list);                                                                      \
		return without_locks(#name, fd, cmd, arg);                                         \
	}

CONTROL(fcntl)
CONTROL(fcntl64)
