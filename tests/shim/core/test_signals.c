/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that signal handlers interrupt, leave by a jump, or make themselves. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>

static char buf[64];

static int handler_fd;
static uint64_t handled;
static unsigned depth;

static void on_signal(int sig)
{
	int saved = errno;
	char local[8];

	if (depth == 4) /* on a machine that takes longer for a handler than the timer */
		return;
	depth++;
	t_pread(handler_fd, local, 8, 4096);
	t_close(t_open("h", O_RDONLY));
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	depth--;
	errno = saved;
}

/* Handlers interrupt every instruction of ours; nothing is lost, torn or mixed up, and errno is whole. */
CASE(nested_in_handlers)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	uint64_t n = 0, main_seen = 0, handler_seen = 0;
	int fd;

	alarm(0);
	harness_file("a", 64);
	harness_file("h", 8192);
	fd = t_open("a", O_RDONLY);
	handler_fd = t_open("h", O_RDONLY);
	t_catch(on_signal, SA_RESTART | SA_NODEFER);
	t_timer(60 * SLOWER);
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 10000 / SLOWER)
		for (int i = 0; i < 50; i++, n++) {
			errno = (int)(n & 127);
			CHECK(t_pread(fd, buf, 8, 0) == 8 && errno == (int)(n & 127));
		}
	t_timer(0);
	fake_settle(d);
	CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		if (r->op != HR_OP_pread64)
			continue;
		CHECK((r->fd == fd && r->offset == 0) ||
		      (r->fd == handler_fd && r->offset == 4096));
		main_seen += r->fd == fd;
		handler_seen += r->fd == handler_fd;
	}
	CHECK(main_seen + handler_seen + fake_lost(d, HR_OP_pread64).count == n + handled);
	CHECK(fake_lost(d, HR_OP_pread64).count == 0 && handler_seen == handled);
	CHECK(fake_count(d, HR_OP_open) == handled + 2);
	CHECK(fake_inflight(d, 0, 0, 0).op == 0);
}

static sigjmp_buf out;

static void jumps(int sig)
{
	hr_before_longjmp(out);
	siglongjmp(out, 1);
}

/* In a frame of its own, as a wrapper is. */
static __attribute__((noinline)) void blocks(int fd)
{
	struct hr_op op;

	hr_begin_fd(&op, HR_OP_read, fd, 77, HR_OFFSET_NONE);
	raise(SIGALRM);
	CHECK(!"left");
}

CASE(left_by_longjmp)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	t_catch(jumps, 0);
	if (sigsetjmp(out, 1) == 0)
		blocks(fd);
	CHECK(fake_inflight(d, 0, 0, 0).op == 0);
	CHECK(t_pread(fd, buf, 8, 0) == 8);
	hr_before_longjmp(out); /* nothing in flight: nothing said */
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_read) == 1 && fake_with_bits(d, HR_OP_read, HR_REC_CUT) == 1);
	CHECK(fake_count(d, HR_OP_pread64) == 1 && fake_bad(d) == 0);
}

/* A handler that jumps inside itself returns into the operation: one record, and it is not cut. */
static void hops(int sig)
{
	sigjmp_buf inside;

	if (sigsetjmp(inside, 1) == 0) {
		hr_before_longjmp(inside);
		siglongjmp(inside, 1);
	}
}

CASE(handler_hops)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_op op;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	t_catch(hops, 0);
	hr_begin_fd(&op, HR_OP_read, fd, 77, HR_OFFSET_NONE);
	raise(SIGALRM);
	CHECK(fake_inflight(d, 0, 0, 0).op == HR_OP_read);
	hr_end(&op, 64, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_read) == 1 && fake_inflight(d, 0, 0, 0).op == 0);
	CHECK(fake_with_bits(d, HR_OP_read, HR_REC_CUT) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nested_in_handlers),
	    cmocka_unit_test(left_by_longjmp),
	    cmocka_unit_test(handler_hops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
