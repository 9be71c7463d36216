/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys_db.h - an SQLite database with the tables of Nsight Systems, and headrace's own tables
 *
 * nsys_tables.h has the tables. Functions return 0 or -errno. One thread.
 */
#ifndef HEADRACE_EXPORT_NSYS_DB_H
#define HEADRACE_EXPORT_NSYS_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_nsys_db;

/* X(TABLE, "the columns that headrace sets": numbers, then texts), number of numbers, of texts */
#define HR_NSYS_INSERTS(X)                                                                         \
	X(StringIds, "id, value", 1, 1)                                                            \
	X(NVTX_EVENTS,                                                                             \
	  "start, end, eventType, rangeId, category, globalTid, textId, domainId, "                \
	  "text, jsonText",                                                                        \
	  8, 2)                                                                                    \
	X(OSRT_API,                                                                                \
	  "start, end, eventClass, globalTid, correlationId, nameId, returnValue, "                \
	  "nestingLevel, callchainId",                                                             \
	  9, 0)                                                                                    \
	X(HEADRACE_OPERATIONS,                                                                     \
	  "correlationId, pathId, path2Id, offset, bytes, ret, errno, rank, "                      \
	  "worker, runtime, bpf",                                                                  \
	  11, 0)                                                                                   \
	X(HEADRACE_REGIONS,                                                                        \
	  "rangeId, step, epoch, count, open, rank, worker, depth, kind, category", 8, 2)          \
	X(HEADRACE_PROCESSES, "globalPid, ppid, cpus, firstCpu, cpuQuotaMilli", 5, 0)              \
	X(PROCESSES, "globalPid, pid, name", 2, 1)                                                 \
	X(ThreadNames, "nameId, priority, globalTid", 3, 0)                                        \
	X(TARGET_INFO_SYSTEM_ENV, "globalVid, nameEnum, devStateName, name, value", 2, 3)          \
	X(TARGET_INFO_SESSION_START_TIME, "utcEpochNs, utcTime, localTime", 1, 2)                  \
	X(ANALYSIS_DETAILS, "globalVid, duration, startTime, stopTime", 4, 0)                      \
	X(META_DATA_EXPORT, "name, value", 0, 2)

enum hr_nsys_insert {
#define HR__NSYS_INSERT(table, ...) HR_NSYS_##table,
	HR_NSYS_INSERTS(HR__NSYS_INSERT)
#undef HR__NSYS_INSERT
	    HR_NSYS_TABLES
};

#define HR_NSYS_NULL INT64_MIN

/* Bytes that are stored as hr_text_escape writes them. text NULL: NULL. */
struct hr_nsys_text {
	const void *text;
	size_t bytes;
	bool json; /* a backslash is not doubled */
};

/* Creates the tables in a file that exists and is empty, and starts a transaction. */
int hr_nsys_db_open(const char *path, struct hr_nsys_db **ret);

/* Frees the database. `commit`: ends the transaction. Accepts NULL. */
int hr_nsys_db_close(struct hr_nsys_db *db, bool commit);

int hr_nsys_insert(struct hr_nsys_db *db, enum hr_nsys_insert table, const int64_t *numbers,
		   const struct hr_nsys_text *texts);

/* Returns the id of a text in StringIds, and inserts it if it is new. */
int hr_nsys_string(struct hr_nsys_db *db, const void *text, size_t bytes, int64_t *ret_id);

/* Returns a text that ends with a NUL. */
struct hr_nsys_text hr_nsys_text(const char *text);

#endif
