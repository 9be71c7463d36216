/* SPDX-License-Identifier: Apache-2.0 */
#include "common/host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID_NS_INIT 0xEFFFFFFCu /* inode of the initial pid namespace (linux/proc_ns.h) */

void hr_host_name(char ret[HR_HOST_NAME_BYTES])
{
	if (gethostname(ret, HR_HOST_NAME_BYTES) < 0)
		snprintf(ret, HR_HOST_NAME_BYTES, "localhost");
	ret[HR_HOST_NAME_BYTES - 1] = '\0';
}

void hr_host_boot_id(char ret[HR_HOST_BOOT_BYTES])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(ret, HR_HOST_BOOT_BYTES, f))
		snprintf(ret, HR_HOST_BOOT_BYTES, "unknown");
	if (f)
		(void)fclose(f);
	ret[strcspn(ret, "\n")] = '\0';
}

bool hr_host_has_initial_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) != 0 || st.st_ino == PID_NS_INIT;
}

unsigned hr_host_raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return UINT_MAX;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur > UINT_MAX)
		return UINT_MAX;
	return (unsigned)files.rlim_cur;
}

/* ---- programs -------------------------------------------------------------------------------- */

static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) == 0 ? 0 : -errno;
}

int hr_host_find_program(const char *name)
{
	const char *path = getenv("PATH"); // NOLINT(concurrency-mt-unsafe): constant
	char candidate[PATH_MAX];
	int r, worst = -ENOENT;

	if (strchr(name, '/') != NULL)
		return executable(name);
	if (path == NULL)
		path = "/bin:/usr/bin"; /* the default of execvp */
	for (;; path++) {
		size_t n = strcspn(path, ":");

		snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)n, path, n > 0 ? "/" : "",
			 name);
		r = name[0] != '\0' ? executable(candidate) : -ENOENT;
		if (r == 0)
			return 0;
		if (r == -EACCES)
			worst = r;
		path += n;
		if (*path == '\0')
			return worst;
	}
}
