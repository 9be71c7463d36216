/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overhead.h - what the overhead bench measures, and how a measured program tells it
 *
 * The driver (overhead.c) starts this very program again, under whatever is to be measured; that child
 * (overhead_child.c) prints a line `MEASURE WALL CPU` per figure on its standard output.
 */
#ifndef HEADRACE_TESTS_BENCH_OVERHEAD_H
#define HEADRACE_TESTS_BENCH_OVERHEAD_H

#include <stdbool.h>

#define BENCH_BLOCK 4096
#define BENCH_SMALL 1000 /* files DIR/small/N of one block */
#define BENCH_NEW   4000 /* empty files DIR/new/N */

enum measure {
	M_PREAD,
	M_PREAD_2,
	M_READ_LSEEK,
	M_SMALL_FILES,
	M_OPEN_NEW,
	M_OPEN_KNOWN,
	M_LSEEK,
	M_LSEEK_EXCLUDED,
	M_PREAD_EXCLUDED,
	M_WHOLE, /* the driver's: of a child, from fork to wait */
	M_COUNT,
	/* one line per short process */
	M_ATTACH = M_COUNT, /* its first open, less what a later one takes */
	M_SHORT		    /* all of it, from fork to wait */
};

double bench_now_ns(void);

/* `program --child DIR OPS`: all measures but M_WHOLE. */
int bench_child(const char *dir, long ops);

/* `program --spawn DIR N`: N short processes, one after the other. */
int bench_spawn(const char *program, const char *dir, long n);

/* `program --short DIR`: one of them. */
int bench_short(const char *dir);

#endif
