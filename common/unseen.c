/* SPDX-License-Identifier: Apache-2.0 */
#include "common/unseen.h"

#include <string.h>

const char *const hr_unseen_names[] = {
    "libaws-cpp-sdk-", "libaws-c-s3", "libgoogle_cloud_cpp_storage", "libazure-storage", "libdaos",
    "libdfs",	       NULL,
};

bool hr_unseen_library(const char *path, size_t bytes)
{
	const char *slash = memrchr(path, '/', bytes);
	const char *base = slash ? slash + 1 : path;
	size_t n = bytes - (size_t)(base - path);

	if (!memmem(base, n, ".so", 3))
		return false;
	for (const char *const *name = hr_unseen_names; *name; name++)
		if (n > strlen(*name) && memcmp(base, *name, strlen(*name)) == 0)
			return true;
	return false;
}
