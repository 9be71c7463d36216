/* SPDX-License-Identifier: Apache-2.0 */
#include "common/ops.h"

#include <stddef.h>
#include <string.h>

#define HR_KERNEL(id, name, class, api, bytes_rule)                                                \
	[id] = {#name, HR_CLASS_##class, HR_API_##api, HR_BYTES_##bytes_rule},
#define HR_CALL(id, ret, name, params, args, class, api, bytes_rule, ...)                          \
	HR_KERNEL(id, name, class, api, bytes_rule)
static const struct hr_op_info ops[HR_OP_MAX] = {
#include "proto/calls.def"
#include "proto/kernel.def"
};
#undef HR_CALL
#undef HR_KERNEL

/* Fails to compile if an id is out of range or is used twice. */
#define HR_KERNEL(id, name, ...)    _Static_assert((id) >= HR_OP_FIRST && (id) < HR_OP_MAX, #name);
#define HR_CALL(id, ret, name, ...) HR_KERNEL(id, name)
#include "proto/calls.def"
#include "proto/kernel.def"
#undef HR_CALL
#undef HR_KERNEL
#define HR_KERNEL(id, ...) case id:
#define HR_CALL(id, ...)   HR_KERNEL(id)
static inline __attribute__((unused)) void ids_are_distinct(unsigned id)
{
	switch (id) {
#include "proto/calls.def"
#include "proto/kernel.def"
	default:
		return;
	}
}
#undef HR_CALL
#undef HR_KERNEL

const struct hr_op_info *hr_op_info(uint16_t op)
{
	return &ops[op < HR_OP_MAX ? op : HR_OP_NONE];
}

bool hr_op_copies(uint16_t op)
{
	return op == HR_OP_copy_file_range || op == HR_OP_splice || op == HR_OP_sendfile ||
	       op == HR_OP_sendfile64;
}

uint16_t hr_op_by_name(const char *name)
{
	for (uint16_t op = HR_OP_FIRST; op < HR_OP_MAX; op++) {
		if (ops[op].name != NULL && strcmp(ops[op].name, name) == 0)
			return op;
	}
	return HR_OP_NONE;
}

const char *hr_class_name(unsigned class)
{
	static const char *const names[] = {
	    [HR_CLASS_NONE] = "none",	[HR_CLASS_OPEN] = "open",   [HR_CLASS_READ] = "read",
	    [HR_CLASS_WRITE] = "write", [HR_CLASS_SEEK] = "seek",   [HR_CLASS_STAT] = "stat",
	    [HR_CLASS_SYNC] = "sync",	[HR_CLASS_CLOSE] = "close", [HR_CLASS_DIR] = "dir",
	    [HR_CLASS_META] = "meta",	[HR_CLASS_MAP] = "map",	    [HR_CLASS_HOOK] = "hook",
	};

	return class < sizeof(names) / sizeof(names[0]) ? names[class] : NULL;
}

const char *hr_api_name(unsigned api)
{
	static const char *const names[] = {
	    [HR_API_NONE] = "none", [HR_API_POSIX] = "posix", [HR_API_STDIO] = "stdio",
	    [HR_API_AIO] = "aio",   [HR_API_MMAP] = "mmap",   [HR_API_URING] = "uring",
	};

	return api < sizeof(names) / sizeof(names[0]) ? names[api] : NULL;
}
