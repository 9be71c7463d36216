/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_dl.c - hooks: libraries that a program loads itself, and functions that it takes from them
 *
 * With a handle (ctypes.CDLL("libc.so.6"), JNA, plugins), dlsym returns the function of libc and
 * not the wrapper, so these hooks return the wrapper. RTLD_DEFAULT finds the wrapper by itself.
 * RTLD_NEXT is for libraries that wrap functions themselves: they get what the loader has for them.
 */
#include <dlfcn.h>

#include "shim/wrap/wrap.h"
#include "shim/wrap/wrap_thunk.h"

/* Before glibc 2.34, a program without libdl has no dlsym, and then also no handle. */
static void *nothing(void)
{
	return NULL;
}

static void *find(void *handle, const char *name)
{
	return hr_real_wrapper(HR_REAL(dlsym)(handle, name), name);
}

static void *find_version(void *handle, const char *name, const char *version)
{
	return hr_real_wrapper(HR_REAL(dlvsym)(handle, name, version), name);
}

static void *real_or_nothing(enum hr_op_id id)
{
	return hr_real_exists((uint16_t)id) ? hr_real_get((uint16_t)id) : (void *)nothing;
}

static void *target(enum hr_op_id id, const void *handle, void *by_handle)
{
	void *real = real_or_nothing(id);

	return handle != RTLD_DEFAULT && handle != RTLD_NEXT && real != (void *)nothing ? by_handle
											: real;
}

void *hr__dlsym_target(void *handle)
{
	return target(HR_OP_dlsym, handle, (void *)find);
}

void *hr__dlvsym_target(void *handle)
{
	return target(HR_OP_dlvsym, handle, (void *)find_version);
}

/* The library's own references to libc, and those of the libraries that it needs, skip the shim. */
void *hr__dlopen_target(const char *path, int flags)
{
	if (path != NULL && (flags & RTLD_DEEPBIND) != 0)
		hr_before_unseen_library();
	return real_or_nothing(HR_OP_dlopen);
}

/* A scope of its own has a libc of its own. */
void *hr__dlmopen_target(long scope, const char *path, int flags)
{
	(void)path;
	(void)flags;
	if (scope != LM_ID_BASE)
		hr_before_unseen_library();
	return real_or_nothing(HR_OP_dlmopen);
}

HR_THUNK(dlsym)
HR_THUNK(dlvsym)
HR_THUNK(dlopen)
HR_THUNK(dlmopen)
