/* SPDX-License-Identifier: Apache-2.0 */
/* A .pfw file, compressed or not: its import into a store. */
#include "tests/fuzz/import_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	input_import(data, bytes, -1);
	return 0;
}
