/* SPDX-License-Identifier: Apache-2.0 */
#include "account.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROWS 32

static struct account *rows;
static size_t n_rows;

void account_die(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s: %m\n", file, line, what);
	_exit(1);
}

struct account *account_file(const char *folder, const char *name, const char *source)
{
	if (rows == NULL) {
		rows = mmap(NULL, ROWS * sizeof(*rows), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		CHECK(rows != MAP_FAILED);
	}
	CHECK(n_rows < ROWS);
	struct account *a = &rows[n_rows++];
	int n = snprintf(a->path, sizeof(a->path), "%s/%s", folder, name);

	CHECK(n > 0 && (size_t)n < sizeof(a->path));
	a->source = source;
	return a;
}

void account_opened(struct account *a, long fd)
{
	CHECK(fd >= 0);
	a->opens++;
}

void account_read(struct account *a, long result)
{
	a->reads++;
	a->bytes_read += result > 0 ? (uint64_t)result : 0;
}

void account_written(struct account *a, long result)
{
	a->writes++;
	a->bytes_written += result > 0 ? (uint64_t)result : 0;
}

void account_end(const char *json)
{
	FILE *f = fopen(json, "we");

	CHECK(f != NULL);
	for (struct account *a = rows; a < rows + n_rows; a++)
		fprintf(f,
			"%s{\"path\": \"%s\", \"source\": \"%s\", \"opens\": %ju, \"reads\": %ju, "
			"\"bytes_read\": %ju, \"writes\": %ju, "
			"\"bytes_written\": %ju, \"filled\": %ju, \"major_faults\": %ju}",
			a == rows ? "[" : ",\n", a->path, a->source, (uintmax_t)a->opens,
			(uintmax_t)a->reads, (uintmax_t)a->bytes_read, (uintmax_t)a->writes,
			(uintmax_t)a->bytes_written, (uintmax_t)a->filled,
			(uintmax_t)a->major_faults);
	fputs("]\n", f);
	CHECK(fclose(f) == 0);
}

static unsigned char byte_at(uint64_t i)
{
	return (unsigned char)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

void account_fill(void *buf, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)buf)[i] = byte_at(at + i);
}

void account_check(const void *buf, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		CHECK(((const unsigned char *)buf)[i] == byte_at(at + i));
}
