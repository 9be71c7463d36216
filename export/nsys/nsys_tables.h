/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys_tables.h - SQL that creates the tables, of schema 3.16.1 of Nsight Systems
 *
 * Readers compare or join the names and numbers, so all of them are those of Nsight Systems, except
 * in tables whose names begin with HEADRACE. correlationId is the key of OSRT_API here, so that the
 * row of HEADRACE_OPERATIONS is found without an index.
 */
#ifndef HEADRACE_EXPORT_NSYS_TABLES_H
#define HEADRACE_EXPORT_NSYS_TABLES_H

#define HR_NSYS_SCHEMA_VERSION "3.16.1"

/* Of OSRT_API.eventClass and NVTX_EVENTS.eventType. */
enum { HR_NSYS_CLASS_OSRT = 27 };
enum hr_nsys_event {
	HR_NSYS_CATEGORY = 33,
	HR_NSYS_MARK = 34,
	HR_NSYS_PUSH_POP = 59,
	HR_NSYS_START_END = 60,
	HR_NSYS_DOMAIN = 75
};

/* clang-format off */
#define HR_NSYS_CREATE_NVTX \
	"CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, " \
	"rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, " \
	"endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, " \
	"int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, " \
	"floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);"

#define HR_NSYS_CREATE_OSRT \
	"CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, " \
	"eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER PRIMARY KEY, " \
	"nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, " \
	"callchainId INTEGER NOT NULL);"

/* Without operations of GPUs, but nsys-ai opens no file without this table. */
#define HR_NSYS_CREATE_KERNEL \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, " \
	"deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, " \
	"streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, " \
	"demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, " \
	"launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, " \
	"gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, " \
	"blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, " \
	"staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, " \
	"localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, " \
	"gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, " \
	"sharedMemoryLimitConfig INTEGER);"

#define HR_NSYS_CREATE_INFO \
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);" \
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);" \
	"CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);" \
	"CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, " \
	"name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL);" \
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, " \
	"localTime TEXT);" \
	"CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, " \
	"startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL);" \
	"CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);"

#define HR_NSYS_CREATE_ENUMS \
	"CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);" \
	"INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (33, 'NvtxCategory', 'NvtxCategory'), " \
	"(34, 'NvtxMark', 'NvtxMark'), (59, 'NvtxPushPopRange', 'NvtxPushPopRange'), " \
	"(60, 'NvtxStartEndRange', 'NvtxStartEndRange'), " \
	"(75, 'NvtxDomainCreate', 'NvtxDomainCreate');" \
	"CREATE TABLE ENUM_NSYS_EVENT_CLASS (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);" \
	"INSERT INTO ENUM_NSYS_EVENT_CLASS VALUES " \
	"(27, 'TRACE_PROCESS_EVENT_OS_RUNTIME', 'OS runtime libraries');"

#define HR_NSYS_CREATE_OWN \
	"CREATE TABLE HEADRACE_OPERATIONS (correlationId INTEGER PRIMARY KEY, pathId INTEGER, " \
	"path2Id INTEGER, offset INTEGER, bytes INTEGER, ret INTEGER, errno INTEGER, rank INTEGER, " \
	"worker INTEGER, runtime INTEGER NOT NULL, bpf INTEGER NOT NULL);" \
	"CREATE TABLE HEADRACE_REGIONS (rangeId INTEGER PRIMARY KEY, kind TEXT, step INTEGER, " \
	"epoch INTEGER, count INTEGER, open INTEGER, rank INTEGER, worker INTEGER, depth INTEGER, " \
	"category TEXT);" \
	"CREATE TABLE HEADRACE_PROCESSES (globalPid INTEGER, ppid INTEGER, cpus INTEGER, " \
	"firstCpu INTEGER, cpuQuotaMilli INTEGER);" \
	"CREATE VIEW HEADRACE_IO AS SELECT o.start, o.end, o.globalTid, o.nameId, p.value AS path, " \
	"p2.value AS path2, h.offset, h.bytes, h.ret, h.errno, h.rank, h.worker, " \
	"CASE h.runtime WHEN 1 THEN 'runtime' ELSE 'data' END AS scope, " \
	"CASE h.bpf WHEN 1 THEN 'bpf' ELSE 'shim' END AS source, o.correlationId " \
	"FROM OSRT_API o JOIN HEADRACE_OPERATIONS h USING (correlationId) " \
	"LEFT JOIN StringIds p ON p.id = h.pathId LEFT JOIN StringIds p2 ON p2.id = h.path2Id;"
/* clang-format on */

#define HR_NSYS_CREATE                                                                             \
	HR_NSYS_CREATE_NVTX HR_NSYS_CREATE_OSRT HR_NSYS_CREATE_KERNEL HR_NSYS_CREATE_INFO          \
	    HR_NSYS_CREATE_ENUMS HR_NSYS_CREATE_OWN

#endif
