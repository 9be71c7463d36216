/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfw.h - traces of DFTracer, of the DLIO profiler before it, and of `headrace export --to pfw`
 *
 * One JSON object per line, in four dialects (docs/import.md), which may be mixed in a file.
 */
#ifndef HEADRACE_IMPORT_PFW_PFW_H
#define HEADRACE_IMPORT_PFW_PFW_H

#include "import/reader.h"

extern const struct hr_reader hr_reader_pfw;

#endif
