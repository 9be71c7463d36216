/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_names.h - functions with names of libc, and other arguments; no header of libc may be used
 * with it, because it declares these names
 */
struct own_words {
	long v[6];
};

double remove(double a, double b, int c, int d, int e, int f, int g, int h);
long access(long a, long b, long c, long d, long e, long f, long g, long h);
struct own_words link(struct own_words x);
int sync(int x);
int own_lockf(int x);
