/* SPDX-License-Identifier: Apache-2.0 */
/* A request for metrics, as it comes: what was answered to a part of it does not change with what follows. */
#include <stdlib.h>

#include "net/http.h"
#include "net/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t most = bytes < HR_HTTP_REQUEST_MOST ? bytes : HR_HTTP_REQUEST_MOST, n = 0;
	int status = 0;

	while (status == 0 && n < most)
		status = hr_metrics_status((const char *)data, ++n);
	if (status != 0 && n < most && hr_metrics_status((const char *)data, most) != status)
		abort();
	if (status == 0 && n == HR_HTTP_REQUEST_MOST)
		abort();
	return 0;
}
