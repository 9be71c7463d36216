/* SPDX-License-Identifier: Apache-2.0 */
/* The store of which probes tell; tests/query/test_coverage.c holds the same numbers. */
#include "tests/query/fixture_frames.h"

#include <stdlib.h>

#include "common/cause.h"
#include "common/ops.h"
#include "tests/unit.h"

/* What the kernel saw, and beside it file records: of the shim, and of what probes recorded. */
static const struct {
	uint64_t proc;
	uint32_t file, op, cause;
	uint64_t count, bytes;
} kernel_rows[] = {
    {1, 1, HR_OP_pread64, HR_CAUSE_SHIM, 6, 600}, /* two parts */
    {1, 1, HR_OP_pread64, HR_CAUSE_SHIM, 4, 400},
    {1, 1, HR_OP_read, HR_CAUSE_FETCH, 2, 8192},
    {1, 1, HR_OP_openat, HR_CAUSE_SHIM, 9, 0},
    {1, 2, HR_OP_write, HR_CAUSE_SHIM, 8, 800}, /* two of them did not fit in a ring */
    {1, 2, HR_OP_pwrite64, HR_CAUSE_SYSCALL, 5, 500},
    {2, 3, HR_OP_io_uring_read, HR_CAUSE_URING, 20, 2000},
    {2, 3, HR_OP_io_uring_read, HR_CAUSE_LOST, 4, 400},
    {2, 3, HR_OP_page_cache_fill, HR_CAUSE_FILL, 3, 12288},
    {1, 3, HR_OP_copy_file_range, HR_CAUSE_SHIM, 1, 70},
    {3, 4, HR_OP_openat, HR_CAUSE_STDIO, 1, 0},
    {3, 4, HR_OP_read, HR_CAUSE_STDIO, 3, 12288},
    {3, 4, HR_OP_write, HR_CAUSE_STDIO, 1, 10}, /* wrote the buffer */
    {2, 4, HR_OP_write, HR_CAUSE_STDIO, 2, 50}, /* of which the shim has nothing */
    {1, 5, HR_OP_read, HR_CAUSE_SYSCALL, 7, 700},
    {3, 0, HR_OP_read, HR_CAUSE_UNATTACHED, 1, 30}, /* of a file without a name: no record */
    {1, 0, HR_OP_read, HR_CAUSE_SHIM, 2, 100},	    /* of a file that has two more */
    {2, 0, HR_OP_write, HR_CAUSE_SHIM, 3, 40},	    /* there is no such file */
    {1, 0, HR_OP_page_cache_fill, HR_CAUSE_FILL, 9, 36864},
    {1, 0, HR_OP_read, HR_CAUSE_EXCLUDED, 100, 5000},
};

static const struct {
	uint64_t proc;
	uint32_t file, api;
	uint64_t reads, bytes_read, writes, bytes_written;
} recorded[] = {
    {1, 1, HR_API_POSIX, 12, 1200, 0, 0}, /* two of them before there were probes */
    {1, 2, HR_API_POSIX, 0, 0, 11, 1100}, {1, 3, HR_API_POSIX, 1, 70, 0, 0},
    {2, 3, HR_API_URING, 20, 2000, 0, 0}, {3, 4, HR_API_STDIO, 1000, 9000, 5, 10},
    {1, 5, HR_API_POSIX, 7, 700, 0, 0},
};

#define N_KERNEL_ROWS (sizeof(kernel_rows) / sizeof(kernel_rows[0]))
#define N_RECORDED    (sizeof(recorded) / sizeof(recorded[0]))

static void send_kernel_records(struct fixture__stream *s)
{
	Headrace__KernelRecord rows[N_KERNEL_ROWS];

	for (size_t i = 0; i < N_KERNEL_ROWS; i++)
		rows[i] = (Headrace__KernelRecord){.proc = kernel_rows[i].proc,
						   .file = kernel_rows[i].file,
						   .op = kernel_rows[i].op,
						   .cause = kernel_rows[i].cause,
						   .count = kernel_rows[i].count,
						   .bytes = kernel_rows[i].bytes,
						   .errors = i == 0,
						   .dur_ns = 10 * kernel_rows[i].count};
	build_kernel_records(&s->b, rows, N_KERNEL_ROWS);
}

static void send_recorded(struct fixture__stream *s)
{
	Headrace__FileRecord rows[N_RECORDED];

	for (size_t i = 0; i < N_RECORDED; i++)
		rows[i] = (Headrace__FileRecord){.proc = recorded[i].proc,
						 .file = recorded[i].file,
						 .api = recorded[i].api,
						 .reads = recorded[i].reads,
						 .bytes_read = recorded[i].bytes_read,
						 .writes = recorded[i].writes,
						 .bytes_written = recorded[i].bytes_written};
	build_file_records(&s->b, rows, N_RECORDED);
}

/* A library whose work is out of sight, in a folder that is excluded by default. */
static void send_library(struct fixture__stream *s)
{
	Headrace__Path row = {.id = 6,
			      .hash = 2000,
			      .path = BUILD_BYTES("/usr/local/lib/libaws-c-s3.so.0"),
			      .scope = 1};

	build_paths(&s->b, &row, 1, NULL, 0);
}

char *fixture_make_probed(void)
{
	static const struct {
		const char *job, *node;
		bool probed;
	} streams[] = {{"11", "n1", true}, {"12", "n1", true}, {"12", "n2", false}};
	char *store = fixture__make_folder();

	for (unsigned i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct fixture__stream s;

		fixture__open_stream(&s, store, streams[i].job, streams[i].node);
		fixture__send_job(&s, "ended", 0);
		fixture__send_processes(&s, 0);
		fixture__send_paths(&s);
		send_recorded(&s);
		if (streams[i].probed)
			send_kernel_records(&s);
		else
			send_library(&s);
		build_end(&s.b, "ended");
		build_close(&s.b);
	}
	return store;
}
