/* SPDX-License-Identifier: Apache-2.0 */
#include "common/host.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
