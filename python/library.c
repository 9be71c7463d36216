/* SPDX-License-Identifier: Apache-2.0 */
#include "python/library.h"

/* Uses the oldest versions: since glibc 2.34, newer ones are in another library. */
#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

bool library_functions(const char *library, int flags, const struct library_function *list,
		       size_t n, void *table)
{
	void *handle = dlopen(library, flags);

	for (size_t i = 0; handle && i < n; i++) {
		void *function = dlsym(handle, list[i].name);

		if (!function)
			return false;
		*(void **)((char *)table + list[i].at) = function;
	}
	return handle != NULL;
}
