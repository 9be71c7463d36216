/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duckdb_check.c - compares our declarations of DuckDB's API with the real duckdb.h, at compile
 * time
 *
 * Built only where scripts/install-duckdb has put a duckdb.h; nothing here runs.
 */
#include "query/duckdb/duckdb_api.h"

#define HR_DUCKDB(ret, name, params)                                                               \
	_Static_assert(__builtin_types_compatible_p(__typeof__(duckdb_##name), ret params),        \
		       "duckdb_" #name);
#include "query/duckdb/duckdb_api.def"

#define X(name, value) _Static_assert((int)(name) == (value), #name);
HR_DUCKDB_CONSTANTS(X)

int main(void)
{
	return 0;
}
