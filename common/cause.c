/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cause.h"

#include <stddef.h>

const char *hr_cause_name(unsigned cause)
{
	static const char *const names[HR_CAUSE_END] = {
	    [HR_CAUSE_NONE] = "none",	    [HR_CAUSE_SHIM] = "shim",
	    [HR_CAUSE_STDIO] = "stdio",	    [HR_CAUSE_AIO] = "aio",
	    [HR_CAUSE_SYSCALL] = "syscall", [HR_CAUSE_UNATTACHED] = "unattached",
	    [HR_CAUSE_URING] = "uring",	    [HR_CAUSE_FILL] = "fill",
	    [HR_CAUSE_FETCH] = "fetch",	    [HR_CAUSE_EXCLUDED] = "excluded",
	    [HR_CAUSE_LOST] = "lost",	    [HR_CAUSE_FAULT] = "fault",
	};

	return cause < HR_CAUSE_END ? names[cause] : NULL;
}
