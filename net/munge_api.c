/* SPDX-License-Identifier: Apache-2.0 */
#include "net/munge_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "common/text.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct hr_munge hr_munge;

static const struct {
	size_t slot;
	const char *name;
} symbols[] = {
#define HR_MUNGE(ret, name, params) {offsetof(struct hr_munge, name), "munge_" #name},
#include "net/munge_api.def"
#undef HR_MUNGE
};

static int munge_api_load(const char *library, char **ret_error)
{
	struct hr_munge table = {.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)};

	if (!table.handle)
		return hr_text_fail(-ENOENT, ret_error,
				    "cannot load the MUNGE library %s (Debian: libmunge2)",
				    library);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *fn = dlsym(table.handle, symbols[i].name);

		if (!fn) {
			dlclose(table.handle);
			return hr_text_fail(-ELIBACC, ret_error, "%s lacks %s", library,
					    symbols[i].name);
		}
		memcpy((char *)&table + symbols[i].slot, &fn, sizeof(fn));
	}
	hr_munge = table;
	return 0;
}

int hr_munge_load(const char *library, char **ret_error)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!hr_munge.handle)
		r = munge_api_load(library, ret_error);
	pthread_mutex_unlock(&lock);
	return r;
}
