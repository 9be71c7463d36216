/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - what a generator has done to its files, by its own count
 *
 * Purpose   One row per file and source: who records it, a shim if there is one, or probes alone. account_end() writes them as a list of
 *           {"path", "source", "opens", "reads", "bytes_read", "writes", "bytes_written", "filled", "major_faults"}, which test_probes.py holds against what
 *           was recorded. An operation that failed is one of 0 bytes, a failed open is none; a copy is a read of one file and a write of
 *           the other.
 * Threads   Any, and forked children: the rows are shared memory. All files are named by one thread.
 */
#ifndef PROBES_ACCOUNT_H
#define PROBES_ACCOUNT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ACCOUNT_PATH_BYTES 512

struct account {
	const char *source;
	char path[ACCOUNT_PATH_BYTES];
	atomic_uint_least64_t opens, reads, bytes_read, writes, bytes_written;
	/* bytes that faults of a mapping brought into the page cache */
	atomic_uint_least64_t filled;
	atomic_uint_least64_t major_faults; /* for which it waited: getrusage */
};

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			account_die(__FILE__, __LINE__, #condition);                               \
	} while (0)

/* Says what was not so, and ends the process with status 1. */
__attribute__((noreturn)) void account_die(const char *file, int line, const char *what);

#define ACCOUNT_SHIM "shim"
#define ACCOUNT_BPF  "bpf"

/* The row of FOLDER/NAME. */
struct account *account_file(const char *folder, const char *name, const char *source);

/* What a system call returned: -1 or -errno count as 0 bytes. */
void account_opened(struct account *a, long fd);
void account_read(struct account *a, long result);
void account_written(struct account *a, long result);

void account_end(const char *json);

/* Byte `i` of every file of the generators, and whether `n` bytes read from `at` on are such. */
void account_fill(void *buf, size_t n, uint64_t at);
void account_check(const void *buf, size_t n, uint64_t at);

#endif
