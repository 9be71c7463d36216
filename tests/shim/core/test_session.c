/* SPDX-License-Identifier: Apache-2.0 */
/* Attach and what comes of it: records, paths, refusals, rings and threads, a full ring. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/pathid.h"
#include "shim/core/clock.h"
#include "shim/core/path.h"

static const struct fake_record *nth(struct fake_daemon *d, uint16_t op, size_t n)
{
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == op && n-- == 0)
			return fake_record(d, i);
	return NULL;
}

static const char *path_of(struct fake_daemon *d, const struct fake_record *k)
{
	const struct fake_path *p = fake_path(d, k->session, k->r.file);

	return p != NULL ? p->text : "(none)";
}

CASE(records)
{
	struct fake_daemon *d = harness_start(NULL, "RANK=3", "HOME=/root", NULL);
	size_t before = unit_descriptors();
	const struct fake_record *k;
	const struct fake_path *p;
	char want[128], buf[100];
	int fd;

	harness_file("a", 60);
	CHECK(fake_sessions(d) == 0);
	errno = 77;
	fd = t_open("./a", O_RDONLY);
	CHECK(fd >= 0 && errno == 77);
	CHECK(t_read(fd, buf, 100) == 60 && errno == 77);
	CHECK(t_pread(fd, buf, 10, -1) == -1 && errno == EINVAL);
	fake_settle(d);
	CHECK(harness_fds_become(before + 1)); /* ours are gone */
	CHECK(t_close(fd) == 0);
	CHECK(t_open("missing", O_RDONLY) == -1 && errno == ENOENT);
	fake_settle(d);
	CHECK(fake_sessions(d) == 1 && fake_bad(d) == 0 && fake_total(d) == 5);
	CHECK(fake_count(d, HR_CTL_THREAD) == 1 && fake_record(d, 0)->r.op == HR_CTL_THREAD);
	CHECK(fake_record(d, 0)->r.fd == getpid());
	snprintf(want, sizeof(want), "%s/a", harness_dir);
	k = nth(d, HR_OP_open, 0);
	CHECK(k->r.ret == fd && k->r.fd == fd && k->r.flags == O_RDONLY);
	CHECK(k->r.asked == HR_ASKED_NONE && k->r.offset == HR_OFFSET_NONE);
	p = fake_path(d, 0, k->r.file);
	CHECK(p != NULL && strcmp(p->text, want) == 0 && p->id == hr_path_id(want, strlen(want)));
	CHECK(p->kind == S_IFREG && p->device != HR_OFFSET_NONE && p->mount > 0 && p->bits == 0);
	k = nth(d, HR_OP_read, 0);
	CHECK(k->r.ret == 60 && k->r.asked == 100 && k->r.fd == fd && k->r.dur_lo > 0);
	CHECK(k->r.start_ticks > nth(d, HR_OP_open, 0)->r.start_ticks);
	k = nth(d, HR_OP_pread64, 0);
	CHECK(k->r.ret == -EINVAL && k->r.offset == -1 && k->r.asked == 10);
	k = nth(d, HR_OP_open, 1);
	CHECK(k->r.ret == -ENOENT && k->r.fd == -1 && strstr(path_of(d, k), "/missing"));
	CHECK(fake_paths(d) == 2);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_ENV, 1, buf, sizeof(buf)) > 0);
	CHECK(strcmp(buf, "RANK=3") == 0);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_ENV, 2, buf, sizeof(buf)) == -1);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_CWD, 0, buf, sizeof(buf)) > 0);
	CHECK(strcmp(buf, harness_dir) == 0);
	CHECK((fake_session(d, 0)->hello.flags & HR_HELLO_FORKED) == 0);
	CHECK(fake_inflight(d, 0, 0, 0).op == 0);
}

CASE(kinds_of_files)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int pipes[2], fd, memfd;
	char byte = 0;

	CHECK(mkfifo("fifo", 0600) == 0 && mkdir("dir", 0700) == 0);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0 && write(pipes[1], &byte, 1) == 1);
	t_read(pipes[0], &byte, 1);
	fd = t_open("fifo", O_RDONLY | O_NONBLOCK);
	t_read(fd, &byte, 1);
	t_close(fd);
	fd = t_open("/etc/passwd", O_RDONLY);
	t_read(fd, &byte, 1);
	t_close(fd);
	fd = t_open("../../etc/passwd", O_RDONLY); /* the folder of the case is /tmp/NAME */
	CHECK(fd >= 0);
	t_read(fd, &byte, 1);
	t_close(fd);
	fake_settle(d);
	CHECK(fake_total(d) == 0);
	memfd = memfd_create("cache", MFD_CLOEXEC);
	t_read(memfd, &byte, 1);
	fd = open("gone", O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* behind the shim's back */
	unlink("gone");
	t_read(fd, &byte, 1);
	fd = t_open(".", O_TMPFILE | O_RDWR);
	CHECK(fd >= 0);
	CHECK(t_open("dir", O_RDONLY) >= 0);
	fake_settle(d);
	CHECK(fake_total(d) == 4);
	CHECK(strcmp(path_of(d, nth(d, HR_OP_read, 0)), "memfd:cache") == 0);
	CHECK(strstr(path_of(d, nth(d, HR_OP_read, 1)), "/gone") != NULL);
	CHECK(strstr(path_of(d, nth(d, HR_OP_read, 1)), "deleted") == NULL);
	CHECK(strstr(path_of(d, nth(d, HR_OP_open, 0)), "/#tmpfile") != NULL);
	CHECK(fake_path(d, 0, nth(d, HR_OP_open, 1)->r.file)->kind == S_IFDIR);
	CHECK(nth(d, HR_OP_open, 1)->r.bits == HR_REC_DIR);
}

/* A path that was only looked up (os.path.exists) is sent again with its type and mount. */
CASE(looked_up_before_the_open)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	const struct fake_path *p;
	struct stat st;
	int fd;

	harness_file("a", 10);
	CHECK(mkfifo("fifo", 0600) == 0);
	CHECK(t_stat("a", &st) == 0 && t_stat("fifo", &st) == 0);
	CHECK(t_open("a", O_RDONLY) >= 0);
	fd = t_open("fifo", O_RDONLY | O_NONBLOCK);
	CHECK(fd >= 0 && hr_fd_ignored(fd));
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_stat) == 2 && fake_count(d, HR_OP_open) == 1);
	p = fake_path(d, 0, nth(d, HR_OP_open, 0)->r.file);
	CHECK(p != NULL && strstr(p->text, "/a") != NULL && p->kind == S_IFREG);
	CHECK(p->device != HR_OFFSET_NONE && p->mount > 0);
}

CASE(names)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	char want[256], long_name[256] = {0};
	struct stat st;
	int dir;

	CHECK(mkdir("sub", 0700) == 0 && mkdir("sub/deep", 0700) == 0);
	harness_file("sub/deep/f", 1);
	dir = t_open("sub", O_RDONLY | O_DIRECTORY);
	t_openat(dir, "deep//./f", O_RDONLY);
	CHECK(t_chdir("sub") == 0);
	t_open("deep/f", O_RDONLY);
	t_rename("deep/f", "deep/g");
	CHECK(t_stat((const char *)8, &st) == -1 && errno == EFAULT);
	CHECK(t_stat("", &st) == -1 && errno == ENOENT);
	fake_settle(d);
	snprintf(want, sizeof(want), "%s/sub/deep/f", harness_dir);
	CHECK(strcmp(path_of(d, nth(d, HR_OP_openat, 0)), want) == 0);
	CHECK(strcmp(path_of(d, nth(d, HR_OP_open, 1)), want) == 0);
	CHECK(strstr(path_of(d, nth(d, HR_OP_chdir, 0)), "/sub") != NULL);
	CHECK(nth(d, HR_OP_openat, 0)->r.file == nth(d, HR_OP_open, 1)->r.file);
	CHECK(nth(d, HR_OP_rename, 0)->r.bits == HR_REC_PAIR);
	CHECK(strstr(fake_path(d, 0, nth(d, HR_OP_rename, 0)->pair.file)->text, "/deep/g"));
	CHECK(fake_count(d, HR_OP_stat) == 0);
	/* Longer than a text slot of the table, than the buffer on the stack, than a page. */
	memset(long_name, 'x', 250);
	for (int i = 0; i < 15; i++)
		CHECK(mkdir(long_name, 0700) == 0 && t_chdir(long_name) == 0);
	long_name[200] = '\0';
	dir = t_open(long_name, O_CREAT | O_RDWR);
	CHECK(dir >= 0 && t_read(dir, want, 1) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(mkdir("dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
			    "dddddddddddddddd",
			    0700) == 0 &&
		      t_chdir("dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
			      "dddddddddddddddd") == 0);
	CHECK(t_open("last", O_CREAT | O_RDWR) >= 0);
	fake_settle(d);
	CHECK(fake_bad(d) == 0);
	CHECK(fake_path(d, 0, nth(d, HR_OP_open, 2)->r.file)->bytes > 3900);
	CHECK(fake_path_at(d, fake_paths(d) - 1)->bytes <= HR_PAGE_BYTES);
	CHECK(fake_count(d, HR_OP_open) == 4);
}

static void expect_detached(struct fake_daemon *d, bool answers)
{
	double start = harness_now();
	char buf[10];
	int fd;

	harness_file("a", 10);
	if (answers)
		harness_patient();
	fd = t_open("a", O_RDONLY);
	CHECK(harness_now() - start < NO_WAIT_S);
	harness_patient();
	start = harness_now();
	for (int i = 0; i < 1000; i++)
		CHECK(t_pread(fd, buf, 10, 0) == 10);
	CHECK(harness_now() - start < NO_WAIT_S); /* nothing waits twice */
	CHECK(hr_wiped.nonce == 0);
	CHECK(hr_wiped.counters[HR_OP_open].count == 1);
	CHECK(hr_wiped.counters[HR_OP_pread64].count == 1000);
	CHECK(hr_wiped.counters[HR_OP_pread64].bytes == 10000);
	if (d != NULL) {
		fake_settle(d);
		CHECK(fake_total(d) == 0);
	}
}

CASE(daemon_absent)
{
	static const char *const env[] = {"HEADRACE_SOCKET=/nonexistent/sock", NULL};

	harness_init(env);
	expect_detached(NULL, true);
}

CASE(daemon_refuses)
{
	expect_detached(harness_start(&(struct fake_options){.status = -EACCES}, NULL), true);
}

CASE(daemon_unsealed)
{
	expect_detached(harness_start(&(struct fake_options){.unsealed = true}, NULL), true);
}

/* A full backlog of a daemon that accepts nobody. */
CASE(daemon_stopped)
{
	static const char *env[] = {NULL, NULL};
	static char socket_env[128];
	struct address {
		sa_family_t family;
		char path[108];
	} addr = {.family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(addr.path, sizeof(addr.path), "%s", harness_socket());
	CHECK(bind(listener, (void *)&addr, sizeof(addr)) == 0 && listen(listener, 0) == 0);
	for (int i = 0; i < 3; i++)
		(void)connect(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), (void *)&addr,
			      sizeof(addr));
	snprintf(socket_env, sizeof(socket_env), "HEADRACE_SOCKET=%s", harness_socket());
	env[0] = socket_env;
	harness_init(env);
	expect_detached(NULL, false);
}

/* The next attempt is after 1 s, 2 s, 4 s, ... 60 s. Success forgets the failures. */
CASE(attempts_become_rare)
{
	static const uint64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
	struct fake_daemon *d = harness_start(&(struct fake_options){.status = -EACCES}, NULL);

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		uint64_t ns = seconds[i] * 1000000000, before = hr__clock_ns();

		hr_shim_image.retry_ns = 1; /* it is due */
		CHECK(hr_ring_find(HR__SEEK_RETRY) == NULL && hr_wiped.attempts == i + 1);
		CHECK(hr_shim_image.retry_ns >= before + ns);
		CHECK(hr_shim_image.retry_ns <= hr__clock_ns() + ns);
	}
	fake_stop(d);
	d = fake_start(harness_socket(), NULL);
	hr_shim_image.retry_ns = 1;
	CHECK(hr_ring_find(HR__SEEK_RETRY) != NULL && fake_sessions(d) == 1);
	CHECK(hr_shim_image.failures == 0);
}

CASE(deselected)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.status = -ECANCELED}, NULL);
	struct stat st;
	int fd;

	harness_file("a", 10);
	fd = t_open("a", O_RDONLY);
	CHECK(!hr_shim_image.on && hr__fdtab.limit == 0);
	CHECK(t_pread(fd, &st, 10, 0) == 10 && t_stat("a", &st) == 0);
	CHECK(hr_wiped.counters[HR_OP_pread64].count == 0);
	CHECK(fake_total(d) == 0);
}

/* What was counted alone is in the hello of the attempt that succeeds. */
CASE(late_daemon)
{
	static const char *env[] = {NULL, NULL};
	static char socket_env[128];
	struct fake_daemon *d;
	struct hr_counter c;
	char buf[4096];
	unsigned before = 7; /* reads before the session */
	int fd;

	snprintf(socket_env, sizeof(socket_env), "HEADRACE_SOCKET=%s", harness_socket());
	env[0] = socket_env;
	harness_init(env);
	harness_file("a", 10);
	fd = t_open("a", O_RDONLY);
	for (unsigned i = 0; i < before; i++)
		t_pread(fd, buf, 10, 0);
	d = fake_start(harness_socket(), NULL);
	harness_patient();
	CHECK(hr_shim_image.retry_ns != 0); /* a second after the first attempt */
	hr_shim_image.retry_ns = UINT64_MAX;
	t_close(t_open("a", O_RDONLY));
	CHECK(fake_sessions(d) == 0);
	hr_shim_image.retry_ns = 1;
	for (; fake_sessions(d) == 0 && before < 100; before++)
		t_pread(fd, buf, 10, 0);
	before--; /* the last one attached */
	CHECK(fake_sessions(d) == 1);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) == 0 && fake_count(d, HR_OP_pread64) == 1);
	CHECK(strstr(path_of(d, nth(d, HR_OP_pread64, 0)), "/a") != NULL);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_COUNTERS, 0, buf, sizeof(buf)) ==
	      3 * sizeof(c));
	for (int i = 0; i < 3; i++) {
		memcpy(&c, buf + i * sizeof(c), sizeof(c));
		if (c.op == HR_OP_pread64)
			CHECK(c.total.count == before && c.total.bytes == 10 * before &&
			      c.total.ticks > 0);
		else
			CHECK(c.total.count == (c.op == HR_OP_open ? 2 : 1));
	}
	CHECK(hr_wiped.counters[HR_OP_pread64].count == 0);
}

/* A process that never attached tries once more at its end. */
CASE(last_chance)
{
	static const char *env[] = {NULL, NULL};
	static char socket_env[128];
	struct fake_daemon *d;
	struct hr_counter c;
	char buf[4096];

	snprintf(socket_env, sizeof(socket_env), "HEADRACE_SOCKET=%s", harness_socket());
	env[0] = socket_env;
	harness_init(env);
	harness_file("a", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	d = fake_start(harness_socket(), NULL);
	hr_shim_image.retry_ns = UINT64_MAX;
	hr__ring_last_chance();
	CHECK(fake_sessions(d) == 1);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_COUNTERS, 0, buf, sizeof(buf)) == sizeof(c));
	memcpy(&c, buf, sizeof(c));
	CHECK(c.op == HR_OP_open && c.total.count == 1);
	hr__ring_last_chance();
	CHECK(fake_sessions(d) == 1);
}

/* The same before setuid, chroot and others. */
CASE(last_chance_before_leaving)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.status = -EACCES}, NULL);

	harness_file("a", 10);
	hr_before_leaving();
	CHECK(hr_wiped.attempts == 1); /* nothing was counted, but this is no slow call */
	hr_shim_image.retry_ns = UINT64_MAX;
	hr_before_leaving();
	CHECK(hr_wiped.attempts == 1);
	CHECK(t_open("a", O_RDONLY) >= 0);
	hr_before_leaving();
	CHECK(hr_wiped.attempts == 2 && hr_wiped.counters[HR_OP_open].count == 1);
	CHECK(fake_sessions(d) == 0);
}

static uint64_t hello_counts(struct fake_daemon *d, size_t session, uint16_t op)
{
	char buf[4096];
	long n = fake_item(fake_session(d, session), HR_ITEM_COUNTERS, 0, buf, sizeof(buf));
	struct hr_counter c;

	for (long at = 0; at + (long)sizeof(c) <= n; at += (long)sizeof(c)) {
		memcpy(&c, buf + at, sizeof(c));
		if (c.op == op)
			return c.total.count;
	}
	return 0;
}

/* The totals are sent before an exec, which removes them. */
CASE(last_chance_before_an_exec)
{
	static char *const no_variable[] = {NULL};
	static const char *env[] = {NULL, NULL};
	static char socket_env[128];
	struct fake_daemon *d;

	snprintf(socket_env, sizeof(socket_env), "HEADRACE_SOCKET=%s", harness_socket());
	env[0] = socket_env;
	harness_init(env);
	harness_patient();
	harness_file("a", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	d = fake_start(harness_socket(), NULL);
	hr_shim_image.retry_ns = UINT64_MAX;
	CHECK(hr_before_exec("/bin/true", no_variable) == -1);
	CHECK(fake_sessions(d) == 1 && hello_counts(d, 0, HR_OP_open) == 1);
}

/* Each hello brings the totals since the hello before, although the process gets no session. */
CASE(map_that_cannot_be_used)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.unsealed = true}, NULL);
	char buf[10];
	int fd;

	harness_file("a", 10);
	fd = t_open("a", O_RDONLY);
	hr_shim_image.retry_ns = UINT64_MAX;
	for (int i = 0; i < 7; i++)
		t_pread(fd, buf, 10, 0);
	for (int i = 0; i < 2; i++)
		hr__ring_last_chance();
	CHECK(hr_wiped.nonce == 0 && fake_sessions(d) == 2);
	CHECK(hello_counts(d, 0, HR_OP_open) == 0);
	CHECK(hello_counts(d, 1, HR_OP_open) == 1 && hello_counts(d, 1, HR_OP_pread64) == 7);
	CHECK(hr_wiped.counters[HR_OP_pread64].count == 0);
}

/* No attempt is made, and the totals stay in the process. */
CASE(socket_path_that_is_too_long)
{
	static const char *env[] = {NULL, NULL};
	char text[200] = "HEADRACE_SOCKET=/";

	memset(text + strlen(text), 'x', 120);
	env[0] = text;
	harness_init(env);
	harness_file("a", 10);
	CHECK(t_open("a", O_RDONLY) >= 0);
	hr__ring_last_chance();
	CHECK(hr_wiped.attempts == 0 && hr_wiped.counters[HR_OP_open].count == 1);
}

CASE(longest_wait)
{
	static const char *const env[] = {"HEADRACE_ON_FULL=wait:60001", NULL};

	harness_init(env);
	CHECK(hr_shim_image.on_full == HR__FULL_WAIT && hr_shim_image.wait_ms == 60000);
}

/* Another thread stopped in the middle of its attach. */
CASE(attach_lock_is_held)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=drop", NULL);

	harness_file("a", 10);
	hr_wiped.lock = 1;
	CHECK(t_open("a", O_RDONLY) >= 0);
	CHECK(fake_sessions(d) == 0 && hr_wiped.counters[HR_OP_open].count == 1);
	hr_wiped.lock = 0;
	harness_attach();
	fake_settle(d);
	CHECK(hello_counts(d, 0, HR_OP_open) == 1);
}

/* The process is recorded, without its program and command line. */
CASE(without_proc)
{
	static const char *const env[] = {"HEADRACE_SOCKET=/sock", NULL};
	struct fake_daemon *d = fake_start(harness_socket(), NULL);
	char buf[100];
	int fd;

	harness_file("a", 10);
	fd = open("a", O_RDONLY | O_CLOEXEC);
	if (chroot(harness_dir) != 0)
		return; /* not allowed here */
	CHECK(chdir("/") == 0);
	harness_init(env);
	harness_patient();
	t_close(t_open("a", O_RDONLY));
	t_pread(fd, buf, 10, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) == 1);
	CHECK(strcmp(path_of(d, nth(d, HR_OP_open, 0)), "/a") == 0);
	CHECK(strcmp(path_of(d, nth(d, HR_OP_pread64, 0)), "(unknown folder)") == 0);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_EXE, 0, buf, sizeof(buf)) == -1);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_ARGV, 0, buf, sizeof(buf)) == -1);
}

/* Its close was not seen, and a pipe has its number: the table cannot know. */
CASE(descriptor_made_again)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int fd = harness_attach(), pipes[2];
	char byte = 0;

	close(fd);
	CHECK(pipe2(pipes, O_CLOEXEC) == 0 && pipes[0] == fd && write(pipes[1], &byte, 1) == 1);
	CHECK(t_read(fd, &byte, 1) == 1);
	fake_settle(d);
	CHECK(strstr(path_of(d, nth(d, HR_OP_read, 0)), "/a") != NULL);
}

/* A descriptor that the table lacks, while other threads have all buffers for paths. */
CASE(no_buffer)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr__text text[17];
	int fd;
	char buf[10];

	harness_attach();
	fd = open("a", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 17; i++) {
		hr__text_init(&text[i]);
		CHECK(hr__text_grow(&text[i]) == (i < 16));
	}
	t_pread(fd, buf, 10, 0);
	fake_settle(d);
	CHECK(strcmp(path_of(d, nth(d, HR_OP_pread64, 0)), "(unknown folder)") == 0);
}

CASE(level_off)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.off = true}, NULL);
	char buf[10];
	int fd;

	harness_file("a", 10);
	fd = t_open("a", O_RDONLY);
	for (int i = 0; i < 100; i++)
		t_pread(fd, buf, 10, 0);
	fake_settle(d);
	CHECK(fake_sessions(d) == 1 && fake_total(d) == 0);
	fake_level(d, HR_LEVEL_TRACE);
	t_pread(fd, buf, 10, 0);
	fake_settle(d);
	CHECK(fake_total(d) == 1 && strstr(path_of(d, nth(d, HR_OP_pread64, 0)), "/a"));
	CHECK(hr_wiped.counters[HR_OP_pread64].count == 0);
}

CASE(monotonic_clock)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.monotonic = true}, NULL);
	uint64_t before = hr__clock_ns(), opened, after;
	const struct hr_record *r;
	char buf[10];
	int fd;

	harness_file("a", 10);
	fd = t_open("a", O_RDONLY);
	opened = hr__clock_ns();
	t_pread(fd, buf, 10, 0);
	after = hr__clock_ns();
	fake_settle(d);
	r = &nth(d, HR_OP_open, 0)->r;
	CHECK(r->start_ticks >= before && r->start_ticks <= opened);
	CHECK(r->dur_lo == 0 && r->dur_hi == 0);
	r = &nth(d, HR_OP_pread64, 0)->r;
	CHECK(r->start_ticks >= opened && r->start_ticks <= after && r->dur_lo > 0);
	CHECK(((uint64_t)r->dur_hi << 32 | r->dur_lo) <= after - opened);
}

CASE(high_descriptors)
{
	struct rlimit limit = {.rlim_cur = 200000, .rlim_max = 200000};
	struct fake_daemon *d;
	char buf[10];
	int fd, high;

	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return; /* not allowed here */
	d = harness_start(NULL, NULL);
	harness_file("a", 10);
	fd = t_open("a", O_RDONLY);
	high = dup2(fd, 150000);
	CHECK(high == 150000);
	hr_fd_set(high, hr_fd_get(fd));
	t_pread(high, buf, 10, 0);
	t_pread(high, buf, 10, 0);
	CHECK(dup2(fd, 199999) == 199999); /* unseen: resolved */
	t_pread(199999, buf, 10, 0);
	hr_fd_clear_range(100000, ~0u);
	CHECK(hr__fdtab.entries[150000] == HR_FILE_UNKNOWN);
	CHECK(hr__fdtab.entries[fd] != HR_FILE_UNKNOWN);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 3 && fake_paths(d) == 1);
	CHECK(nth(d, HR_OP_pread64, 2)->r.file == nth(d, HR_OP_open, 0)->r.file);
}

CASE(counted_calls)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	const struct hr_record *r;
	char buf[10];
	int a, b;

	harness_file("a", 10);
	harness_file("b", 10);
	a = t_open("a", O_RDONLY);
	b = t_open("b", O_RDONLY);
	for (int i = 0; i < 100; i++)
		hr_count(HR_OP_fgetc, a, 1);
	hr_count(HR_OP_fgetc, a, 0);
	for (int i = 0; i < 70000; i++)
		hr_count(HR_OP_fgetc, b, 1);
	t_pread(a, buf, 10, 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_fgetc) == 3 && fake_bad(d) == 0);
	r = &nth(d, HR_OP_fgetc, 0)->r;
	CHECK(r->asked == 101 && r->ret == 100 && r->bits == HR_REC_AGGREGATE && r->fd == a);
	CHECK(nth(d, HR_OP_fgetc, 1)->r.asked + nth(d, HR_OP_fgetc, 2)->r.asked == 70000);
	CHECK(nth(d, HR_OP_fgetc, 2)->r.fd == b);
	CHECK(nth(d, HR_OP_fgetc, 1)->r.flags + 1 == nth(d, HR_OP_fgetc, 2)->r.flags);
	CHECK(fake_record(d, fake_records(d) - 1)->r.op == HR_OP_pread64);
}

CASE(counted_calls_in_a_full_ring)
{
	const struct fake_options o = {.rings = 1, .most_maps = 1, .slots_log2 = 8};
	struct fake_daemon *d = harness_start(&o, "HEADRACE_ON_FULL=drop", NULL);
	int fd = harness_attach();
	struct hr_lost lost;
	char buf[8];

	fake_pause(d, true);
	while (fake_lost(d, HR_OP_pread64).count == 0)
		t_pread(fd, buf, 8, 0);
	for (int i = 0; i < 7; i++)
		hr_count(HR_OP_fgetc, fd, 2);
	t_pread(fd, buf, 8, 0);
	lost = fake_lost(d, HR_OP_fgetc);
	CHECK(lost.count == 7 && lost.bytes == 14);
	fake_pause(d, false);
}

#define PAGE ((size_t)4096)

CASE(mappings)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr_op op;
	char *base = (char *)(uintptr_t)0x10000000;
	hr_file a = 64, b = 128;

	(void)d;
	CHECK(hr_map_find(base) == HR_FILE_IGNORED);
	hr_map_add(base, 10 * PAGE, a);
	hr_map_add(base + 20 * PAGE, 1, b);
	CHECK(hr_map_find(base) == a && hr_map_find(base + 10 * PAGE - 1) == a);
	CHECK(hr_map_find(base + 10 * PAGE) == HR_FILE_IGNORED);
	CHECK(hr_map_find(base + 20 * PAGE + PAGE - 1) == b);
	hr_map_remove(base + 20 * PAGE, 1); /* like the kernel, the whole page */
	CHECK(hr_map_find(base + 20 * PAGE + PAGE - 1) == HR_FILE_IGNORED);
	hr_map_add(base + 20 * PAGE, 1, b);
	hr_map_remove(base + 4 * PAGE, PAGE); /* a hole */
	CHECK(hr_map_find(base + 3 * PAGE) == a && hr_map_find(base + 5 * PAGE) == a);
	CHECK(hr_map_find(base + 4 * PAGE) == HR_FILE_IGNORED);
	hr_map_remove(base, 2 * PAGE); /* the head */
	CHECK(hr_map_find(base + PAGE) == HR_FILE_IGNORED && hr_map_find(base + 2 * PAGE) == a);
	hr_map_remove(base, 100 * PAGE);
	CHECK(hr_map_find(base + 5 * PAGE) == HR_FILE_IGNORED);
	CHECK(hr_map_find(base + 20 * PAGE) == HR_FILE_IGNORED);
	hr_begin_map(&op, HR_OP_munmap, base, PAGE);
	CHECK(!op.live);
	hr_map_add(base, PAGE, a);
	hr_begin_map(&op, HR_OP_munmap, base, PAGE);
	CHECK(op.live && op.file == a);
	hr_end(&op, 0, 0);
}

/* Each range without a place counts as one lost munmap. */
CASE(more_mappings_than_places)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	char *base = (char *)(uintptr_t)0x10000000;

	harness_attach();
	for (size_t i = 0; i < 4096; i++)
		hr_map_add(base + 4 * i * PAGE, 3 * PAGE, 64);
	CHECK(fake_lost(d, HR_OP_munmap).count == 0);
	hr_map_add(base - PAGE, PAGE, 64);
	hr_map_remove(base + PAGE, PAGE); /* two ranges remain of one */
	CHECK(hr_map_find(base - PAGE) == HR_FILE_IGNORED);
	CHECK(hr_map_find(base) == 64 && hr_map_find(base + 2 * PAGE) == HR_FILE_IGNORED);
	CHECK(fake_lost(d, HR_OP_munmap).count == 2);
}

/* close_range() closes both ends, too. */
CASE(ranges_of_descriptors)
{
	int fd[3];

	harness_start(NULL, NULL);
	harness_file("a", 10);
	for (int i = 0; i < 3; i++)
		fd[i] = t_open("a", O_RDONLY);
	hr_fd_clear_range((unsigned)fd[1], (unsigned)fd[1]);
	for (int i = 0; i < 3; i++)
		CHECK((hr__fdtab.entries[fd[i]] == HR_FILE_UNKNOWN) == (i == 1));
	hr_fd_clear_range(3, ~0u);
	for (int i = 0; i < 3; i++)
		CHECK(hr__fdtab.entries[fd[i]] == HR_FILE_UNKNOWN);
}

static void *opens(void *arg)
{
	t_open("a", O_RDONLY);
	return NULL;
}

/* A close-all in another thread takes the numbers that an attach in progress holds. */
CASE(descriptors_taken)
{
	struct fake_daemon *d;
	pthread_t t;
	int last;

#ifdef __SANITIZE_THREAD__
	return; /* it rightly calls this a race of the program's */
#endif
	d = harness_start(&(struct fake_options){.silent = true}, NULL);
	harness_patient();
	harness_file("a", 10);
	CHECK(pthread_create(&t, NULL, opens, NULL) == 0);
	while (fake_waiting(d) == 0) /* then it waits for an answer, until its descriptors go */
		usleep(100);
	last = open("a", O_RDONLY | O_CLOEXEC);
	CHECK(last > 3);
	hr_fd_clear_range(3, ~0u);
	for (int fd = 3; fd < last; fd++)
		close(fd);
	for (int fd = 3; fd < last; fd++)
		CHECK(fcntl(last, F_DUPFD_CLOEXEC, 3) >= 3); /* the program's now */
	pthread_join(t, NULL);
	for (int fd = 3; fd < last; fd++)
		CHECK(fcntl(fd, F_GETFD) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(records),
	    cmocka_unit_test(kinds_of_files),
	    cmocka_unit_test(looked_up_before_the_open),
	    cmocka_unit_test(names),
	    cmocka_unit_test(daemon_absent),
	    cmocka_unit_test(daemon_refuses),
	    cmocka_unit_test(daemon_unsealed),
	    cmocka_unit_test(daemon_stopped),
	    cmocka_unit_test(attempts_become_rare),
	    cmocka_unit_test(deselected),
	    cmocka_unit_test(late_daemon),
	    cmocka_unit_test(last_chance),
	    cmocka_unit_test(last_chance_before_leaving),
	    cmocka_unit_test(last_chance_before_an_exec),
	    cmocka_unit_test(map_that_cannot_be_used),
	    cmocka_unit_test(socket_path_that_is_too_long),
	    cmocka_unit_test(longest_wait),
	    cmocka_unit_test(attach_lock_is_held),
	    cmocka_unit_test(without_proc),
	    cmocka_unit_test(no_buffer),
	    cmocka_unit_test(descriptor_made_again),
	    cmocka_unit_test(level_off),
	    cmocka_unit_test(monotonic_clock),
	    cmocka_unit_test(high_descriptors),
	    cmocka_unit_test(counted_calls),
	    cmocka_unit_test(counted_calls_in_a_full_ring),
	    cmocka_unit_test(mappings),
	    cmocka_unit_test(more_mappings_than_places),
	    cmocka_unit_test(ranges_of_descriptors),
	    cmocka_unit_test(descriptors_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
