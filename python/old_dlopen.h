/* SPDX-License-Identifier: Apache-2.0 */
/* old_dlopen.h - dlopen and dlsym of the oldest version: since 2.34, they are in another library */
#ifndef HEADRACE_PYTHON_OLD_DLOPEN_H
#define HEADRACE_PYTHON_OLD_DLOPEN_H

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

#endif
