/* SPDX-License-Identifier: Apache-2.0 */
/* Output of strace, or of strace -ff as files divided by NULs: its import into a store. */
#include "tests/fuzz/import_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	input_import(data, bytes, 0);
	return 0;
}
