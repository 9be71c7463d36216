/* SPDX-License-Identifier: Apache-2.0 */
/* A library behind the shim, whose destructor runs after the shim's would. */
#include <stddef.h>

void (*exit_library_last)(char who);

__attribute__((destructor)) static void last(void)
{
	if (exit_library_last != NULL)
		exit_library_last('l');
}
