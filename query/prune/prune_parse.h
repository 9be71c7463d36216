/* SPDX-License-Identifier: Apache-2.0 */
/* prune_parse.h - shared by prune_parse.c and prune_distinct.c */
#ifndef HEADRACE_QUERY_PRUNE_PRUNE_PARSE_H
#define HEADRACE_QUERY_PRUNE_PRUNE_PARSE_H

#include "query/prune/json_tree.h"

bool hr__prune_distinct(const struct hr_json_tree *select);

#endif
