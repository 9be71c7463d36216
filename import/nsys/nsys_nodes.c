/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, processes and threads. A global id is 16 bits of the node, 24 of the pid, 24 of the
 * thread: processes of several nodes may have the same pid.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "import/nsys/nsys.h"

#define NO_NODE INT64_MIN

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The program: the process with most ranges or, without ranges, with most kernels or calls. */
static int32_t main_pid(struct nsys *n, int64_t node)
{
	static const char *const ids[] = {
	    "globalTid AS id FROM NVTX_EVENTS WHERE eventType IN (59, 60)",
	    "globalPid AS id FROM CUPTI_ACTIVITY_KIND_KERNEL", "globalTid AS id FROM OSRT_API"};
	int64_t pid = 0;
	char sql[300];

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]) && pid == 0; i++) {
		sqlite3_stmt *st;

		snprintf(sql, sizeof(sql),
			 "SELECT id >> 24 & 16777215 AS pid FROM (SELECT %s) WHERE ?1 IS NULL OR "
			 "id >> 48 = ?1 GROUP BY pid ORDER BY count(*) DESC, pid LIMIT 1",
			 ids[i]);
		st = hr__nsys_statement(n, sql);
		if (st && node != NO_NODE)
			sqlite3_bind_int64(st, 1, node);
		if (st && sqlite3_step(st) == SQLITE_ROW)
			pid = sqlite3_column_int64(st, 0);
		sqlite3_finalize(st);
	}
	return (int32_t)pid;
}

/* Opens the stream of a node, unless it is open. */
static int node_open(struct nsys *n, struct nsys_node *node)
{
	struct hr_import_origin origin = {.node = node->name, .rank = -1};
	int r;

	if (node->s)
		return 0;
	origin.pid = main_pid(n, n->n_nodes > 1 ? node->number : NO_NODE);
	r = hr_import_stream_of(n->f, &origin, &node->s);
	if (r)
		return r;
	hr_import_clock(node->s, n->epoch_ns > 0 ? n->epoch_ns - n->before_ns : 0, n->epoch_ns > 0);
	return 0;
}

/* Finds or adds a node. `number`: the upper bits of its ids. */
static int node_add(struct nsys *n, int64_t number, const char *name)
{
	uint32_t i = 0;

	while (name && i < n->n_nodes && strcmp(n->nodes[i].name, name) != 0)
		i++;
	if (i == HR_IMPORT_NODES_MOST)
		return 0;
	if (i == n->n_nodes) {
		char *copy = name ? strdup(name) : NULL;

		if ((name && !copy) || !hr_array_reserve(n->nodes, n->n_nodes, n->nodes_room)) {
			free(copy);
			return -ENOMEM;
		}
		n->nodes[n->n_nodes++] = (struct nsys_node){.name = copy, .number = number};
	}
	return hr_map64_set(&n->node_of, (uint64_t)number, i);
}

int hr__nsys_nodes_open(struct nsys *n)
{
	sqlite3_stmt *st = hr__nsys_statement(
	    n, "SELECT value, globalVid >> 48 FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'");
	int r = 0;

	if (!st)
		st = hr__nsys_statement(
		    n, "SELECT value, 0 FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'");
	while (st && !r && sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		if (name && *name)
			r = node_add(n, sqlite3_column_int64(st, 1), name);
	}
	sqlite3_finalize(st);
	if (!r && n->n_nodes == 0)
		r = node_add(n, 0, NULL);
	return r ? r : node_open(n, &n->nodes[0]);
}

void hr__nsys_nodes_done(struct nsys *n)
{
	for (uint32_t i = 0; i < n->n_nodes; i++)
		free(n->nodes[i].name);
	free(n->nodes);
	hr_map64_done(&n->node_of);
	hr_map64_done(&n->process_of);
	hr_map64_done(&n->exe_of);
	hr_map64_done(&n->own_of);
	free(n->own_processes);
}

/* Returns the node of a global id. The first one has the ids that no row names. */
static struct nsys_node *node_find(struct nsys *n, int64_t global)
{
	uint32_t i = hr_map64_get(&n->node_of, (uint64_t)global >> 48);

	return &n->nodes[i == HR_MAP64_NONE ? 0 : i];
}

/* ---- processes and threads ------------------------------------------------------------------- */

uint64_t hr__nsys_process_key(int64_t global)
{
	return (uint64_t)global >> 24;
}

/* Returns a number, or 0 if it is out of range. */
static uint32_t small_number(sqlite3_stmt *row, int column)
{
	int64_t value = sqlite3_column_int64(row, column);

	return value > 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

static int own_processes_row(struct nsys *n, sqlite3_stmt *row)
{
	uint64_t key = hr__nsys_process_key(sqlite3_column_int64(row, 0));

	if (!hr_array_reserve(n->own_processes, n->n_own, n->own_room))
		return -ENOMEM;
	n->own_processes[n->n_own] =
	    (struct nsys_own_process){.ppid = (int32_t)small_number(row, 1),
				      .cpus = small_number(row, 2),
				      .first_cpu = small_number(row, 3),
				      .cpu_quota_milli = small_number(row, 4)};
	return hr_map64_set(&n->own_of, key, n->n_own++);
}

const struct nsys_table hr__nsys_own_processes = {
    .name = "HEADRACE_PROCESSES",
    .columns = {"globalPid", "ppid", "cpus", "firstCpu", "cpuQuotaMilli"},
    .row = own_processes_row};

/* Sets what other tables have of a process. */
static void process_describe(struct nsys *n, uint64_t key, struct hr_import_process *p)
{
	uint32_t exe = hr_map64_get(&n->exe_of, key), own = hr_map64_get(&n->own_of, key);

	if (own != HR_MAP64_NONE) {
		p->ppid = n->own_processes[own].ppid;
		p->cpus = n->own_processes[own].cpus;
		p->first_cpu = n->own_processes[own].first_cpu;
		p->cpu_quota_milli = n->own_processes[own].cpu_quota_milli;
	}
	if (exe != HR_MAP64_NONE)
		p->exe = hr_import_text(n->at->s, n->names[exe], strlen(n->names[exe]));
}

int hr__nsys_thread(struct nsys *n, int64_t global, uint32_t tid, uint32_t *ret)
{
	uint64_t key = hr__nsys_process_key(global);
	uint32_t proc = hr_map64_get(&n->process_of, key);
	int r;

	n->at = node_find(n, global);
	if (proc == HR_MAP64_NONE) {
		r = node_open(n, n->at);
		if (r)
			return r;
		proc = hr_import_process(n->at->s, (int32_t)(key & 0xffffff));
		if (!proc || hr_map64_set(&n->process_of, key, proc))
			return -ENOMEM;
		process_describe(n, key, hr_import_process_at(n->at->s, proc));
	}
	*ret = hr_import_thread(n->at->s, proc, tid);
	return *ret ? 0 : -ENOMEM;
}

struct hr_import_process *hr__nsys_process(struct nsys *n, int64_t global)
{
	uint32_t proc = hr_map64_get(&n->process_of, hr__nsys_process_key(global));

	return hr_import_process_at(n->at->s, proc);
}
