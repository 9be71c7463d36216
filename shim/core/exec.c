/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - notices about programs that are started without this library, or in which it cannot work
 *
 * The notice (HR_HELLO_EXEC) has its own connection and does not use a ring, because the process
 * may have no session. A vfork child cannot get a session, because it would store the session in
 * its parent's memory. A notice changes neither hr_shim_image nor hr_self.
 */
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include "shim/core/clock.h"
#include "shim/core/hello.h"
#include "shim/core/internal.h"
#include "shim/core/path.h"
#include "shim/core/sys.h"

#define LIBRARY	     "libheadrace.so"
#define NOTICE_BYTES (sizeof(struct hr_hello) + UINT64_C(2) * (HR__PATH_MAX + HR__ENV_BYTES))
#define UID_UNMAPPED 65534u /* owner of a file if this user namespace does not map its user */
#define MOUNT_NOSUID 2	    /* ST_NOSUID of statfs.f_flags */
#define HEADER_BYTES 1024u  /* the program headers follow the header of the file */

struct headers {
	union {
		ElfW(Ehdr) elf;
		char bytes[HEADER_BYTES];
	};
	size_t have;
};

extern char **environ __attribute__((weak));

static bool preloads_shim(char *const envp[])
{
	const char *preload = hr__env_value(envp, "LD_PRELOAD");

	return preload != NULL && strstr(preload, LIBRARY) != NULL;
}

void hr__exec_init(char *const envp[])
{
	hr_shim_image.by_preload = preloads_shim(envp);
	hr_shim_image.by_socket = hr__env_value(envp, "HEADRACE_SOCKET") != NULL;
}

/* Whether envp can be read, because a bad pointer must fail in exec, not here. */
static bool environment_readable(char *const envp[])
{
	if (envp == NULL || (&environ != NULL && envp == environ))
		return true;
	for (; hr_readable(envp); envp++) {
		if (*envp == NULL)
			return true;
		if (!hr_readable(*envp))
			break;
	}
	return false;
}

/* Whether the program starts without the shim. False if the user chose this (HEADRACE=off). */
static bool environment_loses_shim(char *const envp[])
{
	return !hr__env_is(envp, "HEADRACE", "off") &&
	       (!preloads_shim(envp) ||
		(hr_shim_image.by_socket && hr__env_value(envp, "HEADRACE_SOCKET") == NULL));
}

static bool is_elf(const struct headers *h)
{
	return h->have >= sizeof(h->elf) && memcmp(h->elf.e_ident, ELFMAG, SELFMAG) == 0;
}

static bool is_static(const struct headers *h)
{
	const ElfW(Ehdr) *e = &h->elf;

	if (e->e_phentsize != sizeof(ElfW(Phdr)) || e->e_phoff > h->have ||
	    e->e_phnum > (h->have - e->e_phoff) / sizeof(ElfW(Phdr)))
		return false;
	for (unsigned i = 0; i < e->e_phnum; i++) {
		ElfW(Phdr) p;

		memcpy(&p, h->bytes + e->e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_INTERP)
			return false;
	}
	return true;
}

/* The loader has no interpreter, but loads the library into the program that it runs. */
static bool is_loader(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash != NULL ? slash + 1 : path, "ld", 2) == 0;
}

/* Whether the program runs as another user or group. The dynamic loader then ignores LD_PRELOAD. */
static bool changes_user(const char *path, const struct stat *st)
{
	struct statfs mount = {0};
	bool user, group;

	user = (st->st_mode & S_ISUID) != 0 && st->st_uid != UID_UNMAPPED &&
	       st->st_uid != (uid_t)HR_SYS0(getuid);
	group = (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		st->st_gid != UID_UNMAPPED && st->st_gid != (gid_t)HR_SYS0(getgid);
	return (user || group) && HR_SYS5(prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 &&
	       HR_SYS2(statfs, path, &mount) == 0 && (mount.f_flags & MOUNT_NOSUID) == 0;
}

/* Whether the library is not loaded into the program with the right environment. */
static bool refuses_shim(const char *path, uint32_t *flags)
{
	struct headers h = {.have = 0};
	struct stat st = {0};
	long n;

	if (HR_SYS4(newfstatat, AT_FDCWD, path, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = hr__sys_slurp(path, h.bytes, sizeof(h.bytes));
	h.have = n > 0 ? (size_t)n : 0; /* 0: without the right to read it */
	if (h.have > 0 && !is_elf(&h))	/* a script, for which the kernel ignores the bits */
		return false;
	if (is_elf(&h) && h.elf.e_ident[EI_CLASS] == ELFCLASS32)
		*flags = HR_HELLO_32BIT;
	else if (is_elf(&h) && is_static(&h) && !is_loader(path))
		*flags = HR_HELLO_STATIC;
	return *flags != 0 || changes_user(path, &st);
}

/* Whether the program starts without the shim. *flags: why, as in hr_hello.flags; else 0. */
static bool loses_shim(const char *path, char *const envp[], uint32_t *flags)
{
	uint8_t outer;
	bool loses;

	*flags = 0;
	/* If /etc/ld.so.preload loaded this library, the environment makes no difference. */
	if (!hr_shim_image.on || hr_shim_image.quiet || !hr_shim_image.by_preload)
		return false;
	if (!hr__path_readable(path) || !environment_readable(envp))
		return false;
	/*
	 * Python's ctypes.util.find_library, which many packages call, starts this program with an
	 * environment of its own. The program prints a list of libraries, and uses no data of the
	 * job.
	 */
	if (strcmp(path, "/sbin/ldconfig") == 0)
		return false;
	if (environment_loses_shim(envp))
		return true;
	if (strchr(path, '/') == NULL)
		return false;
	outer = hr__bare_enter(HR_BARE_OWN);
	loses = refuses_shim(path, flags);
	hr__bare_leave(outer);
	return loses;
}

static size_t item(uint8_t *to, enum hr_item_kind kind, size_t bytes)
{
	const struct hr_item_hdr hdr = {.kind = (uint16_t)kind, .bytes = (uint16_t)bytes};

	memcpy(to, &hdr, sizeof(hdr));
	return sizeof(hdr) + bytes;
}

static size_t build(uint8_t *message, const char *path, uint32_t flags)
{
	struct hr_hello h = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .word_bytes = sizeof(void *),
	    .kind = HR_HELLO_EXEC,
	    .flags = flags | (hr__clock_is_tsc() ? HR_HELLO_TICKS_TSC : 0),
	    .pid = hr__sys_getpid(),
	    .ppid = (int32_t)HR_SYS0(getppid),
	    .parent_session = hr_shim_image.parent_token,
	    .start_ticks = hr_shim_ticks(),
	};
	size_t used = sizeof(h), n = strlen(path);
	uint32_t at = 0;

	n = n < HR__PATH_MAX ? n : HR__PATH_MAX;
	memcpy(message + used + sizeof(struct hr_item_hdr), path, n);
	used += item(message + used, HR_ITEM_EXE, n);
	while (used + sizeof(struct hr_item_hdr) < NOTICE_BYTES &&
	       (n = hr__env_next(&at, (char *)message + used + sizeof(struct hr_item_hdr),
				 NOTICE_BYTES - used - sizeof(struct hr_item_hdr))) > 0)
		used += item(message + used, HR_ITEM_ENV, n);
	h.bytes = (uint32_t)used;
	memcpy(message, &h, sizeof(h));
	return used;
}

/* The kernel keeps the message until the daemon accepts, so this function does not wait. */
static int connect_daemon(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = (int)HR_SYS3(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	memcpy(addr.sun_path, hr_shim_image.socket, sizeof(addr.sun_path));
	if (HR_SYS3(connect, fd, &addr, sizeof(addr)) < 0) {
		HR_SYS1(close, fd);
		return -1;
	}
	return fd;
}

/* `message` has room for NOTICE_BYTES. Returns the connection, or -1. */
static int notify_by(uint8_t *message, const char *path, uint32_t flags)
{
	int fd = -1;

	if (!hr__seccomp_forbids((char *)message, NOTICE_BYTES))
		fd = connect_daemon();
	if (fd >= 0)
		HR_SYS6(sendto, fd, message, build(message, path, flags),
			MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	return fd;
}

/* Reserves its memory, because a signal handler's stack may be too small. */
static int notify(const char *path, uint32_t flags)
{
	uint8_t *message = hr_sys_reserve(NOTICE_BYTES);
	int fd;

	if (message == NULL)
		return -1;
	fd = notify_by(message, path, flags);
	HR_SYS2(munmap, message, NOTICE_BYTES);
	return fd;
}

/*
 * Counts a program that cannot reach headraced, because this process has changed its user or root.
 * No notice could be sent, but the memory of the session is still there.
 */
static void count_out_of_reach(const char *path)
{
	const char *socket = hr_shim_image.socket;

	if (!hr_shim_image.left || hr_shim_image.quiet || socket[0] == '\0' ||
	    HR_SYS3(faccessat, AT_FDCWD, socket, W_OK) == 0 || !hr__path_readable(path))
		return;
	/* a search through PATH fails for most folders */
	if (strchr(path, '/') == NULL || HR_SYS3(faccessat, AT_FDCWD, path, X_OK) == 0)
		hr__counters_add(HR_CTL_PROGRAM, 0, HR_ASKED_NONE, 0, 0);
}

int hr_before_exec(const char *path, char *const envp[])
{
	uint32_t flags;

	hr_self.quiet_vfork = false; /* if this is a vfork child, its parent runs next */
	hr__ring_last_chance();
	count_out_of_reach(path);
	return loses_shim(path, envp, &flags) ? notify(path, flags) : -1;
}

void hr_exec_failed(int notice)
{
	if (notice < 0)
		return;
	HR_SYS6(sendto, notice, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	HR_SYS1(close, notice);
}

void hr_after_spawn(const char *path, char *const envp[])
{
	uint32_t flags;
	int fd = loses_shim(path, envp, &flags) ? notify(path, flags | HR_HELLO_SPAWNED) : -1;

	hr__announce_child(0, 0);
	count_out_of_reach(path);
	if (fd >= 0)
		HR_SYS1(close, fd);
}

/* Runs in the constructor, so no attach uses the memory for hellos. */
void hr__exec_unable(void)
{
	char path[HR__PATH_MAX];
	long n = HR_SYS4(readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1);
	int fd;

	path[n > 0 ? n : 0] = '\0';
	fd = notify_by((uint8_t *)hr__hello_scratch(), path, HR_HELLO_UNABLE);
	if (fd >= 0)
		HR_SYS1(close, fd);
}
