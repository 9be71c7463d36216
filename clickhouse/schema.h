/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the tables and views of headrace in ClickHouse, as SQL
 *
 * Made of tables.def and views.sql. The statements create missing tables, add missing columns, and
 * replace views, so they can be run again, also those of a later release. On a cluster, run them on
 * each server. Any thread.
 */
#ifndef HEADRACE_CLICKHOUSE_SCHEMA_H
#define HEADRACE_CLICKHOUSE_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct hr_ch_schema {
	const char *database;
	const char
	    *cluster;	 /* name of a cluster with several shards or replicas; NULL: one server */
	bool replicated; /* ReplicatedMergeTree, which needs the macros {shard} and {replica} */
	/*
	 * Tables without codecs and TTL, for ClickHouse before 20.1. It stores what collectors
	 * insert, but cannot answer questions (HR_CH_ANSWERS_FROM of client.h).
	 */
	bool old;
	uint64_t keep_days; /* 0: keep all data */
};

/* views.sql as a text in the program (cmake/embed.cmake); the last row has no name. */
struct hr_ch_text {
	const char *name, *text;
};
extern const struct hr_ch_text hr_ch_views[];

/* Writes the statements, each with a `;` at its end. */
void hr_ch_schema_print(const struct hr_ch_schema *schema, FILE *to);

#endif
