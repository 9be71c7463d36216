/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asker.h - a server of queries (query_server.c) and clients that ask it, one call after the other
 *
 * Every call fails the test when the server says nothing for 60 s. Threads: one.
 */
#ifndef HEADRACE_TESTS_COLLECTOR_ASKER_H
#define HEADRACE_TESTS_COLLECTOR_ASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct server {
	pid_t pid;
	int input; /* its end is the server's */
	char socket[64];
};

/* `options`: words for query_server, ended by NULL. Skips the program (77) where there is no DuckDB. */
void server_start(struct server *s, const char *store, const char *const *options);
/* Ends its input, waits for it, and fails when it was not well. */
void server_stop(struct server *s);

/* A process of the server that runs a query, the `nth`; waits for it. */
pid_t server_child(const struct server *s, unsigned nth);
unsigned server_children(const struct server *s);

struct asker {
	int fd;
	FILE *to;
	char *out; /* the answer, as far as it has come; NULL: nothing yet */
	size_t n;
	char notes[8192]; /* a line each */
	char waiting[128];
	unsigned progress;
	int status;
};

struct question {
	const char *sql, *job, *format;
	uint64_t memory_bytes;
	uint32_t threads, time_ms;
};

/* `who`: "" an operator, "-" nobody, "1001" a user. */
void asker_open(struct asker *a, const struct server *s, const char *who);
void asker_close(struct asker *a);

void asker_send(struct asker *a, const struct question *q);
void asker_cancel(struct asker *a);
/* One message; false at the end of the connection. */
bool asker_step(struct asker *a);
/* Until Done: its status; -1: the connection ended. */
int asker_wait(struct asker *a);
/* As CSV: sends and waits. */
int asker_ask(struct asker *a, const char *sql);

#endif
