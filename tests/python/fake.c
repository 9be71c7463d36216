/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake.c - a stand-in for libheadrace.so, the witness of what Python's side says
 *
 * Each call of the table is a line of JSON in the file that FAKE_REGIONS names, appended by one write(). Preloaded, by itself:
 * no session, no daemon. Without FAKE_REGIONS the calls do nothing, which is what the bench measures against.
 */
#include "include/headrace.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int file = -2; /* -2: not asked for yet; -1: none */
static _Atomic uint64_t spans;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[8192]; /* args have up to 4,095 bytes */
	struct timespec now;
	va_list rest;

	if (file == -2) {
		const char *path = getenv("FAKE_REGIONS");

		file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	}
	if (file < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int n = snprintf(line, sizeof(line), "{\"pid\":%d,\"tid\":%ld,\"ns\":%lld,", getpid(),
			 syscall(SYS_gettid), now.tv_sec * 1000000000LL + now.tv_nsec);
	va_start(rest, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, rest);
	va_end(rest);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "}\n");
	if (write(file, line, (size_t)n) != n)
		abort();
}

static const char *quoted(const char *text, char *room, size_t size)
{
	if (!text)
		return "null";
	snprintf(room, size, "\"%s\"", text);
	return room;
}

static void named(const char *call, const struct headrace_name *name, uint64_t span,
		  const char *args)
{
	char room[3][512];

	if (file == -1)
		return;
	say("\"call\":\"%s\",\"name\":%s,\"domain\":%s,\"category\":%s,\"kind\":%u,\"span\":%llu,"
	    "\"args\":%s",
	    call, quoted(name->name, room[0], sizeof(room[0])),
	    quoted(name->domain, room[1], sizeof(room[1])),
	    quoted(name->category, room[2], sizeof(room[2])), name->kind, (unsigned long long)span,
	    args ? args : "null");
}

static void fake_begin(struct headrace_name *name)
{
	named("begin", name, 0, NULL);
}

static void fake_end(const char *args)
{
	say("\"call\":\"end\",\"args\":%s", args ? args : "null");
}

static uint64_t fake_start(struct headrace_name *name)
{
	/* Wider than an int: what is passed on must not be cut. */
	uint64_t span = (1ULL << 40) + atomic_fetch_add(&spans, 1) + 1;

	named("start", name, span, NULL);
	return span;
}

static void fake_finish(uint64_t span, const char *args)
{
	say("\"call\":\"finish\",\"span\":%llu,\"args\":%s", (unsigned long long)span,
	    args ? args : "null");
}

static void fake_mark(struct headrace_name *name, const char *args)
{
	named("mark", name, 0, args);
}

static void fake_step(int64_t step)
{
	say("\"call\":\"step\",\"number\":%lld", (long long)step);
}

static void fake_epoch(int64_t epoch)
{
	say("\"call\":\"epoch\",\"number\":%lld", (long long)epoch);
}

static uint64_t fake_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec * 1000000000LL + now.tv_nsec);
}

static void fake_step_at(int64_t step, uint64_t moment)
{
	say("\"call\":\"step\",\"number\":%lld,\"at\":%llu", (long long)step,
	    (unsigned long long)moment);
}

static void fake_epoch_at(int64_t epoch, uint64_t moment)
{
	say("\"call\":\"epoch\",\"number\":%lld,\"at\":%llu", (long long)epoch,
	    (unsigned long long)moment);
}

static void fake_step_undo(void)
{
	say("\"call\":\"step_undo\"");
}

/* 1, 2 and 3 ms more of each wait at every call. */
static void fake_waited(uint64_t ret_ns[3])
{
	static uint64_t calls;

	calls++;
	for (unsigned i = 0; i < 3; i++)
		ret_ns[i] = calls * 1000000 * (i + 1);
}

static void fake_enter(struct headrace_name *name)
{
	named("enter", name, 0, NULL);
}

static void fake_leave(void)
{
	say("\"call\":\"leave\"");
}

static void fake_passed(struct headrace_name *name, uint64_t moment)
{
	named("passed", name, moment, NULL);
}

static void fake_variable(const char *text)
{
	say("\"call\":\"variable\",\"text\":\"%s\"", text);
}

static int fake_recording(void)
{
	say("\"call\":\"recording\"");
	return 1;
}

const struct headrace_api *headrace_api(uint32_t version)
{
	static const struct headrace_api api = {
	    .version = HEADRACE_API_VERSION,
	    .bytes = sizeof(api),
	    .begin = fake_begin,
	    .end = fake_end,
	    .start = fake_start,
	    .finish = fake_finish,
	    .mark = fake_mark,
	    .step = fake_step,
	    .epoch = fake_epoch,
	    .variable = fake_variable,
	    .recording = fake_recording,
	    .now = fake_now,
	    .step_at = fake_step_at,
	    .epoch_at = fake_epoch_at,
	    .step_undo = fake_step_undo,
	    .waited = fake_waited,
	    .enter = fake_enter,
	    .leave = fake_leave,
	    .passed = fake_passed,
	};
	static bool called;

	/* The first call is that of _headrace_fast, which then cannot be loaded: ctypes is used. */
	if (!called && getenv("FAKE_CTYPES") != NULL) {
		called = true;
		return NULL;
	}
	return version == HEADRACE_API_VERSION ? &api : NULL;
}
