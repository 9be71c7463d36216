/* SPDX-License-Identifier: Apache-2.0 */
/* own_names.c - a library with functions that have names of libc, and other arguments */
#include "own_names.h"

int lockf(int a, int b, int c, int d, int e, int f, int g);

double remove(double a, double b, int c, int d, int e, int f, int g, int h)
{
	return a * b + c + 2 * d + 3 * e + 4 * f + 5 * g + 6 * h;
}

long access(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

struct own_words link(struct own_words x)
{
	x.v[0]++;
	return x;
}

int sync(int x)
{
	return x + 1;
}

int lockf(int a, int b, int c, int d, int e, int f, int g)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g;
}

/* Only this library uses its lockf. */
int own_lockf(int x)
{
	return lockf(x, 1, 2, 3, 4, 5, 6);
}
