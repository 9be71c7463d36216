/* SPDX-License-Identifier: Apache-2.0 */
/*
 * older_glibc.c - functions of glibc 2.30 (getdents64) and 2.32 that this libc lacks
 *
 * The build adds this file only where they are missing, as in the wheel, which runs on glibc 2.28.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Debian's static libuv addresses `environ` directly, so that the program must have it. Then libc
 * must find its other names in the program, too: the linker cannot know that they are the same
 * variable.
 */
char **environ;
extern char **__environ __attribute__((alias("environ")));
extern char **_environ __attribute__((alias("environ")));

/* Not translated in the C locale, which all of headrace's programs have. */
const char *strerrordesc_np(int error)
{
	return strerror(error);
}

#define NAME(name) [name] = #name
static const char *const error_names[] = {
    [0] = "0",
    // clang-format off
    NAME(EPERM), NAME(ENOENT), NAME(ESRCH), NAME(EINTR), NAME(EIO), NAME(ENXIO), NAME(E2BIG),
    NAME(ENOEXEC), NAME(EBADF), NAME(ECHILD), NAME(EAGAIN), NAME(ENOMEM), NAME(EACCES),
    NAME(EFAULT), NAME(ENOTBLK), NAME(EBUSY), NAME(EEXIST), NAME(EXDEV), NAME(ENODEV),
    NAME(ENOTDIR), NAME(EISDIR), NAME(EINVAL), NAME(ENFILE), NAME(EMFILE), NAME(ENOTTY),
    NAME(ETXTBSY), NAME(EFBIG), NAME(ENOSPC), NAME(ESPIPE), NAME(EROFS), NAME(EMLINK), NAME(EPIPE),
    NAME(EDOM), NAME(ERANGE), NAME(EDEADLK), NAME(ENAMETOOLONG), NAME(ENOLCK), NAME(ENOSYS),
    NAME(ENOTEMPTY), NAME(ELOOP), NAME(ENOMSG), NAME(EIDRM), NAME(ECHRNG), NAME(EL2NSYNC),
    NAME(EL3HLT), NAME(EL3RST), NAME(ELNRNG), NAME(EUNATCH), NAME(ENOCSI), NAME(EL2HLT),
    NAME(EBADE), NAME(EBADR), NAME(EXFULL), NAME(ENOANO), NAME(EBADRQC), NAME(EBADSLT),
    NAME(EBFONT), NAME(ENOSTR), NAME(ENODATA), NAME(ETIME), NAME(ENOSR), NAME(ENONET), NAME(ENOPKG),
    NAME(EREMOTE), NAME(ENOLINK), NAME(EADV), NAME(ESRMNT), NAME(ECOMM), NAME(EPROTO),
    NAME(EMULTIHOP), NAME(EDOTDOT), NAME(EBADMSG), NAME(EOVERFLOW), NAME(ENOTUNIQ), NAME(EBADFD),
    NAME(EREMCHG), NAME(ELIBACC), NAME(ELIBBAD), NAME(ELIBSCN), NAME(ELIBMAX), NAME(ELIBEXEC),
    NAME(EILSEQ), NAME(ERESTART), NAME(ESTRPIPE), NAME(EUSERS), NAME(ENOTSOCK), NAME(EDESTADDRREQ),
    NAME(EMSGSIZE), NAME(EPROTOTYPE), NAME(ENOPROTOOPT), NAME(EPROTONOSUPPORT),
    NAME(ESOCKTNOSUPPORT), NAME(EOPNOTSUPP), NAME(EPFNOSUPPORT), NAME(EAFNOSUPPORT),
    NAME(EADDRINUSE), NAME(EADDRNOTAVAIL), NAME(ENETDOWN), NAME(ENETUNREACH), NAME(ENETRESET),
    NAME(ECONNABORTED), NAME(ECONNRESET), NAME(ENOBUFS), NAME(EISCONN), NAME(ENOTCONN),
    NAME(ESHUTDOWN), NAME(ETOOMANYREFS), NAME(ETIMEDOUT), NAME(ECONNREFUSED), NAME(EHOSTDOWN),
    NAME(EHOSTUNREACH), NAME(EALREADY), NAME(EINPROGRESS), NAME(ESTALE), NAME(EUCLEAN),
    NAME(ENOTNAM), NAME(ENAVAIL), NAME(EISNAM), NAME(EREMOTEIO), NAME(EDQUOT), NAME(ENOMEDIUM),
    NAME(EMEDIUMTYPE), NAME(ECANCELED), NAME(ENOKEY), NAME(EKEYEXPIRED), NAME(EKEYREVOKED),
    NAME(EKEYREJECTED), NAME(EOWNERDEAD), NAME(ENOTRECOVERABLE), NAME(ERFKILL), NAME(EHWPOISON),
    // clang-format on
};

const char *strerrorname_np(int error)
{
	size_t n = sizeof(error_names) / sizeof(error_names[0]);

	return error >= 0 && (size_t)error < n ? error_names[error] : NULL;
}

#define SIGNAL(name) [SIG##name] = #name
const char *sigabbrev_np(int signal)
{
	static const char *const names[] = {
	    // clang-format off
	    SIGNAL(HUP), SIGNAL(INT), SIGNAL(QUIT), SIGNAL(ILL), SIGNAL(TRAP), SIGNAL(ABRT),
	    SIGNAL(BUS), SIGNAL(FPE), SIGNAL(KILL), SIGNAL(USR1), SIGNAL(SEGV), SIGNAL(USR2),
	    SIGNAL(PIPE), SIGNAL(ALRM), SIGNAL(TERM), SIGNAL(STKFLT), SIGNAL(CHLD), SIGNAL(CONT),
	    SIGNAL(STOP), SIGNAL(TSTP), SIGNAL(TTIN), SIGNAL(TTOU), SIGNAL(URG), SIGNAL(XCPU),
	    SIGNAL(XFSZ), SIGNAL(VTALRM), SIGNAL(PROF), SIGNAL(WINCH), SIGNAL(POLL), SIGNAL(PWR),
	    SIGNAL(SYS),
	    // clang-format on
	};

	return signal > 0 && (size_t)signal < sizeof(names) / sizeof(names[0]) ? names[signal]
									       : NULL;
}

ssize_t getdents64(int fd, void *buffer, size_t bytes)
{
	return syscall(SYS_getdents64, fd, buffer, bytes);
}
