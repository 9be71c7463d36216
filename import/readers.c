/* SPDX-License-Identifier: Apache-2.0 */
/* The formats. The first reader whose probe accepts a file reads it. */
#include "import/reader.h"

static const struct hr_reader *const readers[] = {
#define HR_READER(name) &hr_reader_##name,
#include "import/readers.def"
#undef HR_READER
};

const struct hr_reader *hr__reader_find(const uint8_t *head, size_t bytes)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (readers[i]->probe(head, bytes))
			return readers[i];
	return NULL;
}
