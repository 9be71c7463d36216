/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/seccomp.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct needed {
	long number;
	const char *name;
	/* With ENOSYS, libc uses an older call; futex itself returns ENOSYS for invalid arguments. */
	bool enosys;
};

#define NEEDED(call)                                                                               \
	{                                                                                          \
		SYS_##call, #call, false                                                           \
	}
#define NEEDED_NEW(call)                                                                           \
	{                                                                                          \
		SYS_##call, #call, true                                                            \
	}

/* tests/cli/test_seccomp.py refuses each call of a run, and fails if one is missing here. */
static const struct needed needed[] = {
#ifdef SYS_poll /* architectures since then have only the newer calls */
    NEEDED(access),	  NEEDED(dup2),		  NEEDED(epoll_wait),	 NEEDED(mkdir),
    NEEDED(poll),	  NEEDED(readlink),
#else
    NEEDED(dup3),	  NEEDED(epoll_pwait),	  NEEDED(faccessat),	 NEEDED(ppoll),
    NEEDED(readlinkat),
#endif
    NEEDED(accept4),	  NEEDED(bind),		  NEEDED(chdir),	 NEEDED(clone),
    NEEDED_NEW(clone3),	  NEEDED(connect),	  NEEDED(epoll_create1), NEEDED(epoll_ctl),
    NEEDED(eventfd2),	  NEEDED_NEW(faccessat2), NEEDED(fallocate),	 NEEDED(fchmod),
    NEEDED(fcntl),	  NEEDED(flock),	  NEEDED(ftruncate),	 NEEDED_NEW(futex),
    NEEDED(getdents64),	  NEEDED(geteuid),	  NEEDED(getrandom),	 NEEDED(getsockname),
    NEEDED(getsockopt),	  NEEDED(ioctl),	  NEEDED(listen),	 NEEDED(madvise),
    NEEDED(memfd_create), NEEDED(mkdirat),	  NEEDED(pidfd_open),	 NEEDED(pipe2),
    NEEDED(pwrite64),	  NEEDED(recvfrom),	  NEEDED(recvmsg),	 NEEDED(rt_sigprocmask),
    NEEDED(sendmsg),	  NEEDED(sendto),	  NEEDED(setsockopt),	 NEEDED(signalfd4),
    NEEDED(socket),	  NEEDED(sysinfo),	  NEEDED(wait4),	 NEEDED(waitid),
};

const char *hr_seccomp_forbidden(int *ret_error)
{
	if (prctl(PR_GET_SECCOMP) == 0)
		return NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		/* These arguments are invalid, so an allowed call fails with another error. */
		if (syscall(needed[i].number, -1L, -1L, -1L, -1L, -1L, -1L) >= 0 ||
		    (errno != EPERM && errno != EACCES && (errno != ENOSYS || needed[i].enosys)))
			continue;
		*ret_error = errno;
		return needed[i].name;
	}
	return NULL;
}
