/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/refusal.h"

#include <errno.h>
#include <string.h>

const char *hr_refusal_reason(int error)
{
	switch (error) {
	case -ENOTEMPTY:
		return "it contains other files and is not a store";
	case -EPROTONOSUPPORT:
		return "it was written by a newer headrace";
	case -EBUSY:
		return "a collector writes to it";
	default:
		return strerrordesc_np(-error);
	}
}

const char *hr_refusal_fix(int error)
{
	switch (error) {
	case -EROFS:
		return "choose a folder on a writable file system with -o";
	case -ENOSPC:
	case -EDQUOT:
		return "free some space, or choose another file system with -o";
	case -ENOTEMPTY:
	case -ENOTDIR:
		return "choose a new folder with -o";
	case -ENAMETOOLONG:
		return "choose a shorter path with -o";
	case -EFBIG:
		return "raise the limit of file size (ulimit -f)";
	case -EBUSY:
		return "send to the collector: -o tcp://HOST:PORT";
	case -EPROTONOSUPPORT:
		return "use that version, or choose another folder with -o";
	default:
		return "choose another folder with -o";
	}
}
