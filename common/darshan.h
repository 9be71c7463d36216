/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darshan.h - the layout of a Darshan log, version 3.41
 *
 *      log    = | header 1328 | job | names | module by module, in the order of their ids |
 *      region = one or more zlib streams; the header has its offset and its compressed length
 *
 * All numbers have the byte order of the machine that wrote the log. The names of counters are
 * those of Darshan, without the prefix of the module. -1 means that a counter was not watched.
 */
#ifndef HEADRACE_COMMON_DARSHAN_H
#define HEADRACE_COMMON_DARSHAN_H

#include <stddef.h>
#include <stdint.h>

#define HR_DARSHAN_MAGIC       INT64_C(6567223)
#define HR_DARSHAN_JOB_BYTES   4096 /* largest job region, before compression */
#define HR_DARSHAN_META_BYTES  1024 /* its lines "key=value", with the NUL */
#define HR_DARSHAN_PATH_BYTES  4096
#define HR_DARSHAN_HOST_BYTES  64
#define HR_DARSHAN_ALIGN_BYTES 4096 /* FILE_ALIGNMENT */
#define HR_DARSHAN_SHARED      (-1) /* rank of a record of all ranks */
#define HR_DARSHAN_UNKNOWN     (-1) /* value of a counter that was not watched */
#define HR_DARSHAN_SIZES       10   /* buckets of a histogram of sizes */
#define HR_DARSHAN_COMMON      4    /* values of STRIDE and ACCESS */

enum hr_darshan_module {
	HR_DARSHAN_POSIX = 1,
	HR_DARSHAN_STDIO = 9,
	HR_DARSHAN_DXT_POSIX = 10,
	HR_DARSHAN_HEATMAP = 15,
	HR_DARSHAN_MODULES = 64
};

enum hr_darshan_version {
	HR_DARSHAN_POSIX_VERSION = 4,
	HR_DARSHAN_STDIO_VERSION = 2,
	/* Version 2 adds a thread to each segment; PyDarshan 3.5.0 rejects it. */
	HR_DARSHAN_DXT_VERSION = 1,
	HR_DARSHAN_HEATMAP_VERSION = 1
};

struct hr_darshan_region {
	uint64_t offset, bytes;
};

struct hr_darshan_header {
	char version[8];
	int64_t magic;
	uint8_t compression; /* 0: zlib */
	uint8_t pad[7];
	uint64_t partial; /* bit N: data of module N is missing */
	struct hr_darshan_region names;
	struct hr_darshan_region modules[HR_DARSHAN_MODULES]; /* without bytes: absent */
	uint32_t versions[HR_DARSHAN_MODULES];
};
_Static_assert(sizeof(struct hr_darshan_header) == 1328, "header of a Darshan log");

/* After it: the command, then for each mount "\n<type>\t<mount point>", then a NUL. */
struct hr_darshan_job {
	int64_t uid;
	int64_t start_s, start_ns, end_s, end_ns; /* wall clock */
	int64_t n_ranks;
	int64_t number;
	char metadata[HR_DARSHAN_META_BYTES];
};

#define HR_DARSHAN_POSIX_COUNTERS(X)                                                               \
	X(OPENS)                                                                                   \
	X(FILENOS)                                                                                 \
	X(DUPS)                                                                                    \
	X(READS)                                                                                   \
	X(WRITES)                                                                                  \
	X(SEEKS)                                                                                   \
	X(STATS)                                                                                   \
	X(MMAPS)                                                                                   \
	X(FSYNCS)                                                                                  \
	X(FDSYNCS)                                                                                 \
	X(RENAME_SOURCES)                                                                          \
	X(RENAME_TARGETS)                                                                          \
	X(RENAMED_FROM)                                                                            \
	X(MODE)                                                                                    \
	X(BYTES_READ)                                                                              \
	X(BYTES_WRITTEN)                                                                           \
	X(MAX_BYTE_READ)                                                                           \
	X(MAX_BYTE_WRITTEN)                                                                        \
	X(CONSEC_READS)                                                                            \
	X(CONSEC_WRITES)                                                                           \
	X(SEQ_READS)                                                                               \
	X(SEQ_WRITES)                                                                              \
	X(RW_SWITCHES)                                                                             \
	X(MEM_NOT_ALIGNED)                                                                         \
	X(MEM_ALIGNMENT)                                                                           \
	X(FILE_NOT_ALIGNED)                                                                        \
	X(FILE_ALIGNMENT)                                                                          \
	X(MAX_READ_TIME_SIZE)                                                                      \
	X(MAX_WRITE_TIME_SIZE)

enum hr_darshan_posix_counter {
#define HR__COUNTER(name) HR_DP_##name,
	HR_DARSHAN_POSIX_COUNTERS(HR__COUNTER)
#undef HR__COUNTER
	    HR_DP_SIZE_READ,
	HR_DP_SIZE_WRITE = HR_DP_SIZE_READ + HR_DARSHAN_SIZES,
	HR_DP_STRIDE = HR_DP_SIZE_WRITE + HR_DARSHAN_SIZES, /* 4 values, then 4 counts */
	HR_DP_ACCESS = HR_DP_STRIDE + 2 * HR_DARSHAN_COMMON,
	HR_DP_FASTEST_RANK = HR_DP_ACCESS + 2 * HR_DARSHAN_COMMON,
	HR_DP_FASTEST_RANK_BYTES,
	HR_DP_SLOWEST_RANK,
	HR_DP_SLOWEST_RANK_BYTES,
	HR_DP_COUNTERS
};

/* Times are in seconds since the start of the job. */
enum hr_darshan_posix_time {
	HR_DP_OPEN_START,
	HR_DP_READ_START,
	HR_DP_WRITE_START,
	HR_DP_CLOSE_START,
	HR_DP_OPEN_END,
	HR_DP_READ_END,
	HR_DP_WRITE_END,
	HR_DP_CLOSE_END,
	HR_DP_READ_TIME,
	HR_DP_WRITE_TIME,
	HR_DP_META_TIME,
	HR_DP_MAX_READ_TIME,
	HR_DP_MAX_WRITE_TIME,
	HR_DP_FASTEST_RANK_TIME,
	HR_DP_SLOWEST_RANK_TIME,
	HR_DP_VARIANCE_RANK_TIME,
	HR_DP_VARIANCE_RANK_BYTES,
	HR_DP_TIMES
};

struct hr_darshan_posix {
	uint64_t id; /* hr_darshan_id of the path */
	int64_t rank;
	int64_t c[HR_DP_COUNTERS];
	double f[HR_DP_TIMES];
};
_Static_assert(sizeof(struct hr_darshan_posix) == 704, "POSIX record, version 4");

enum hr_darshan_stdio_counter {
	HR_DS_OPENS,
	HR_DS_FDOPENS,
	HR_DS_READS,
	HR_DS_WRITES,
	HR_DS_SEEKS,
	HR_DS_FLUSHES,
	HR_DS_BYTES_WRITTEN,
	HR_DS_BYTES_READ,
	HR_DS_MAX_BYTE_READ,
	HR_DS_MAX_BYTE_WRITTEN,
	HR_DS_FASTEST_RANK,
	HR_DS_FASTEST_RANK_BYTES,
	HR_DS_SLOWEST_RANK,
	HR_DS_SLOWEST_RANK_BYTES,
	HR_DS_COUNTERS
};

enum hr_darshan_stdio_time {
	HR_DS_META_TIME,
	HR_DS_WRITE_TIME,
	HR_DS_READ_TIME,
	HR_DS_OPEN_START,
	HR_DS_CLOSE_START,
	HR_DS_WRITE_START,
	HR_DS_READ_START,
	HR_DS_OPEN_END,
	HR_DS_CLOSE_END,
	HR_DS_WRITE_END,
	HR_DS_READ_END,
	HR_DS_FASTEST_RANK_TIME,
	HR_DS_SLOWEST_RANK_TIME,
	HR_DS_VARIANCE_RANK_TIME,
	HR_DS_VARIANCE_RANK_BYTES,
	HR_DS_TIMES
};

struct hr_darshan_stdio {
	uint64_t id;
	int64_t rank;
	int64_t c[HR_DS_COUNTERS];
	double f[HR_DS_TIMES];
};
_Static_assert(sizeof(struct hr_darshan_stdio) == 248, "STDIO record, version 2");

/* Before the segments of a file: all writes, then all reads. */
struct hr_darshan_dxt {
	uint64_t id;
	int64_t rank;
	int64_t shared; /* unused by readers */
	char host[HR_DARSHAN_HOST_BYTES];
	int64_t writes, reads;
};

struct hr_darshan_segment {
	int64_t offset, bytes;
	double start_s, end_s;
};
_Static_assert(sizeof(struct hr_darshan_segment) == 32, "DXT segment, version 1");

/* Before two arrays of `bins` numbers of bytes: written, then read. */
struct hr_darshan_heat {
	uint64_t id; /* hr_darshan_id of "heatmap:POSIX" or "heatmap:STDIO" */
	int64_t rank;
	double bin_s;
	int64_t bins;
	uint64_t pad[2];
};

#endif
