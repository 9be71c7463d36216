/* SPDX-License-Identifier: Apache-2.0 */
#include "net/curl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "common/text.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct hr_curl hr_curl;

static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static const struct {
	size_t slot;
	const char *name;
} symbols[] = {
#define HR_CURL(ret, name, params) {offsetof(struct hr_curl, name), "curl_" #name},
#include "net/curl_api.def"
#undef HR_CURL
};

static int curl_api_load(char **ret_error)
{
	struct hr_curl table = {0};

	for (size_t i = 0; !table.handle && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		table.handle = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!table.handle)
		return hr_text_fail(-ENOENT, ret_error,
				    "cannot load libcurl (%s): install it (Debian: libcurl4)",
				    libraries[0]);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *fn = dlsym(table.handle, symbols[i].name);

		if (!fn) {
			dlclose(table.handle);
			return hr_text_fail(-ELIBACC, ret_error, "libcurl lacks %s: 7.66 is needed",
					    symbols[i].name);
		}
		memcpy((char *)&table + symbols[i].slot, &fn, sizeof(fn));
	}
	if (table.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return hr_text_fail(-ELIBACC, ret_error, "libcurl cannot start");
	hr_curl = table;
	return 0;
}

int hr_curl_load(char **ret_error)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!hr_curl.handle)
		r = curl_api_load(ret_error);
	pthread_mutex_unlock(&lock);
	return r;
}
