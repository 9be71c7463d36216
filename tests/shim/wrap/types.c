/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - the types of proto/calls.def are those of libc's headers; compiling it is the test */
#include <dlfcn.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "shim/wrap/wrap.h"

#define TYPE_LIBC(name)                                                                            \
	_Static_assert(__builtin_types_compatible_p(hr_fn_##name, __typeof__(name)), #name);
#define TYPE_HIDDEN(name)
#define HR_CALL(id, ret, name, params, args, class, api, bytes, decl, ...) TYPE_##decl(name)
#include "proto/calls.def"
