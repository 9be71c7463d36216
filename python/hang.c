/* SPDX-License-Identifier: Apache-2.0 */
#include "python/hang.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/now.h"
#include "python/spent.h"
#include "python/stack_text.h"
#include "python/unlocked.h"

#define LEAST_NS    2000000000u
#define FIRST_NS    5000000000u	 /* without an earlier work of this kind */
#define EACH_NS	    10000000000u /* from a mark to the next one, at most */
#define FACTOR	    10u		 /* times the mean of earlier works */
#define THREADS_MAX 16u

static const char *const works[HANG_WORKS] = {"step", "wait", "fetch", "group"};

/* ---- what the thread does -------------------------------------------------------------------- */

static uint64_t get(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void set(_Atomic uint64_t *value, uint64_t to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

/* Returns the mean time of earlier works of the current kind; 0: there was none. */
static uint64_t usual(const struct hang_watch *watch)
{
	unsigned work = watch->work;
	uint64_t n = get(&watch->ended[work]);

	return n > 0 ? get(&watch->sum_ns[work]) / n : 0;
}

void hang_end(struct hang_watch *watch, uint64_t at_ns)
{
	uint64_t began = get(&watch->began_ns), lasted, most;
	unsigned work = watch->work;

	if (began == 0)
		return;
	lasted = at_ns - began;
	most = FACTOR * usual(watch);
	if (most > 0 && lasted > most)
		lasted = most; /* so that a single long work does not change what is usual */
	set(&watch->sum_ns[work], get(&watch->sum_ns[work]) + lasted);
	set(&watch->ended[work], get(&watch->ended[work]) + 1);
	set(&watch->began_ns, 0);
}

void hang_begin(struct hang_watch *watch, enum hang_work work, uint64_t at_ns)
{
	hang_end(watch, at_ns);
	atomic_store_explicit(&watch->work, work, memory_order_relaxed);
	set(&watch->began_ns, at_ns);
}

/* ---- whether it lasts long ------------------------------------------------------------------- */

static uint64_t first_due(const struct hang_watch *watch)
{
	uint64_t due = FACTOR * usual(watch);

	if (due == 0)
		return FIRST_NS;
	return due > LEAST_NS ? due : LEAST_NS;
}

bool hang_is_due(struct hang_watch *watch, uint64_t now_ns)
{
	uint64_t began = get(&watch->began_ns);

	if (began == 0 || now_ns < began + LEAST_NS)
		return false;
	if (watch->watched_ns != began) {
		watch->watched_ns = began;
		watch->due_ns = first_due(watch);
	}
	return now_ns - began >= watch->due_ns;
}

/* ---- in which system call -------------------------------------------------------------------- */

enum first { FIRST_OTHER, FIRST_FD, FIRST_PID };

/* The system calls in which threads often wait. */
static const struct {
	long number;
	const char *name;
	enum first first; /* what its first argument is */
} calls[] = {
#define CALL(name, first)                                                                          \
	{                                                                                          \
		SYS_##name, #name, FIRST_##first                                                   \
	}
    CALL(futex, OTHER),	 CALL(read, FD),	 CALL(pread64, FD),
    CALL(readv, FD),	 CALL(write, FD),	 CALL(pwrite64, FD),
    CALL(writev, FD),	 CALL(recvfrom, FD),	 CALL(recvmsg, FD),
    CALL(sendto, FD),	 CALL(sendmsg, FD),	 CALL(connect, FD),
    CALL(accept, FD),	 CALL(accept4, FD),	 CALL(flock, FD),
    CALL(fcntl, FD),	 CALL(fsync, FD),	 CALL(fdatasync, FD),
    CALL(fallocate, FD), CALL(ioctl, FD),	 CALL(epoll_pwait, OTHER),
    CALL(ppoll, OTHER),	 CALL(pselect6, OTHER),	 CALL(wait4, PID),
    CALL(waitid, OTHER), CALL(nanosleep, OTHER), CALL(clock_nanosleep, OTHER),
    CALL(openat, OTHER),
#ifdef SYS_poll /* aarch64 has only the newer ones */
    CALL(poll, OTHER),	 CALL(select, OTHER),	 CALL(epoll_wait, OTHER),
    CALL(open, OTHER),	 CALL(stat, OTHER),
#endif
#undef CALL
};

struct thread_call {
	char name[32];	       /* "": none, because the thread runs */
	char target[PATH_MAX]; /* "": none, or not known */
};

static void set_call(struct thread_call *call, long number, unsigned long first)
{
	size_t i = 0;
	char link[64];
	ssize_t n;

	while (i < sizeof(calls) / sizeof(calls[0]) && calls[i].number != number)
		i++;
	if (i == sizeof(calls) / sizeof(calls[0])) {
		snprintf(call->name, sizeof(call->name), "system call %ld", number);
		return;
	}
	snprintf(call->name, sizeof(call->name), "%s", calls[i].name);
	if (calls[i].first == FIRST_PID && (int)first > 0)
		snprintf(call->target, sizeof(call->target), "process %d", (int)first);
	if (calls[i].first != FIRST_FD)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%lu", first);
	n = readlink(link, call->target, sizeof(call->target) - 1);
	call->target[n > 0 ? n : 0] = '\0';
	stack_text_plain(call->target);
}

/* Reads "running", or the number of a system call and its arguments. */
static void read_call(int tid, struct thread_call *ret)
{
	char text[256], *end;
	ssize_t n = -1;
	long number;
	int fd;

	ret->name[0] = ret->target[0] = '\0';
	snprintf(text, sizeof(text), "/proc/self/task/%d/syscall", tid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	number = strtol(text, &end, 10);
	if (end != text && number >= 0)
		set_call(ret, number, strtoul(end, NULL, 16));
}

/* ---- the mark -------------------------------------------------------------------------------- */

/* Appends the stack of a thread, if it fits with the closing brackets. Returns the new length. */
static size_t put_stack(char *room, size_t n, const PyThreadState *thread, const char *before)
{
	struct stack_text text;
	size_t all = n;

	if (!stack_text_read(thread, &text))
		return n;
	all = spent_put(room, ARGS_MAX, n, "%s\"line\":\"%s\",\"stack\":\"%s\"", before, text.line,
			text.stack);
	return all + sizeof("}]}") <= ARGS_MAX ? all : n;
}

static size_t put_others(char *room, size_t n, const PyThreadState *thread)
{
	const PyThreadState *others[THREADS_MAX];
	unsigned count = unlocked_threads(thread, others, THREADS_MAX), shown = 0;

	for (unsigned i = 0; i < count; i++) {
		size_t more = put_stack(room, n, others[i], shown > 0 ? ",{" : ",\"threads\":[{");

		if (more == n)
			continue;
		room[more] = '}';
		n = more + 1;
		shown++;
	}
	return shown > 0 ? spent_put(room, ARGS_MAX, n, "]") : n;
}

void hang_mark(struct hang_watch *watch, const struct headrace_api *api,
	       const PyThreadState *thread, int tid)
{
	static struct headrace_name mark = {
	    .name = "hang", .domain = "headrace", .kind = HEADRACE_MARK};
	struct thread_call call;
	char room[ARGS_MAX];
	uint64_t lasted = hr_now_ns(CLOCK_MONOTONIC) - watch->watched_ns;
	size_t n;

	read_call(tid, &call);
	n = spent_put(
	    room, sizeof(room), 0,
	    "{\"in\":\"%s\",\"tid\":%d,\"since_ns\":%llu,\"usual_ns\":%llu,\"call\":\"%s\"",
	    works[watch->work], tid, (unsigned long long)lasted, (unsigned long long)usual(watch),
	    call.name);
	if (call.target[0] != '\0' && strlen(call.target) < sizeof(room) / 4)
		n = spent_put(room, sizeof(room), n, ",\"target\":\"%s\"", call.target);
	n = put_stack(room, n, thread, ",");
	n = put_others(room, n, thread);
	n = spent_put(room, sizeof(room), n, "}");
	watch->due_ns = lasted + (lasted < EACH_NS ? lasted : EACH_NS);
	if (n < sizeof(room) && get(&watch->began_ns) == watch->watched_ns)
		api->mark(&mark, room);
}
