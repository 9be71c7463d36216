/* SPDX-License-Identifier: Apache-2.0 */
/* A request for metrics, as it comes: what was answered to a part of it does not change with what follows. */
#include <stdlib.h>

#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int status_of(const uint8_t *data, size_t bytes)
{
	struct hr_http_request r;
	int status = hr_http_parse((const char *)data, bytes, &r);

	return status == 200 && !hr_http_target_is(&r, "/metrics") ? 404 : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t most = bytes < HR_HTTP_REQUEST_MOST ? bytes : HR_HTTP_REQUEST_MOST, n = 0;
	int status = 0;

	while (status == 0 && n < most)
		status = status_of(data, ++n);
	if (status != 0 && n < most && status_of(data, most) != status)
		abort();
	if (status == 0 && n == HR_HTTP_REQUEST_MOST)
		abort();
	return 0;
}
