/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - the shim's core inside a test process
 *
 * Purpose   A core is made ready once per process, so every case runs in a child of its own, with a fake daemon
 *           in a thread of that child. t_* are the wrappers of calls.def in miniature.
 * Threads   As the case wants.
 */
#ifndef HEADRACE_TESTS_HARNESS_H
#define HEADRACE_TESTS_HARNESS_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/internal.h"
#include "tests/shim/core/fake_daemon.h"
#include "tests/unit.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SLOWER 10 /* and no vfork: the sanitizer's runtime does not survive one */
#define TSAN   1
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWER 8 /* a fork copies the shadow's page tables */
#define TSAN   0
#else
#ifndef SLOWER /* an emulator's build says */
#define SLOWER 1
#endif
#define TSAN 0
#endif

/*
 * A shim under test waits ten minutes for its daemon, which shares the machine with it: an attach
 * and a full ring take as long as they take. What must not wait at all ends before half of it.
 */
#define PATIENT_MS 600000u
#define NO_WAIT_S  300.0
#define HANG_S	   300 /* of a case */

/* In a case: says what was wrong and ends the child. */
#define CHECK(e)                                                                                   \
	do {                                                                                       \
		if (!(e)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #e);                    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A folder for the case, removed by the parent; the current directory of the case. */
extern char harness_dir[64];

static inline const char *harness_socket(void)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/sock", harness_dir);
	return path;
}

/* Runs the case in a child of its own and asserts that it ended well. */
void harness_run(void (*body)(void));
#define CASE(name)                                                                                 \
	static void case_##name(void);                                                             \
	static void name(void **state)                                                             \
	{                                                                                          \
		harness_run(case_##name);                                                          \
	}                                                                                          \
	static void case_##name(void)

/*
 * Starts the daemon and makes the core ready with HEADRACE_SOCKET and name=value pairs
 * (NULL-terminated). Unless the daemon is silent or HEADRACE_ON_FULL is one of the pairs, the core
 * is patient.
 */
struct fake_daemon *harness_start(const struct fake_options *o, ...);
void harness_init(const char *const *env); /* the core alone */
void harness_patient(void);		   /* from now on */
/*
 * Opens "a" of 64 bytes and so attaches to a daemon that answers, however long that takes, and then
 * has the patience that the variables gave.
 */
int harness_attach(void);
/* What took its patience away from the core, for as long as the case lasts. */
void harness_spent(void);
void harness_gone(int tid); /* waits until the thread has left the process */
void harness_file(const char *name, size_t bytes);
double harness_now(void); /* seconds, monotonic */
/* The fake daemon's thread closes its ends in this process, too, and in its own time; a leak of ours stays. */
bool harness_fds_become(size_t n);

int t_open(const char *path, int flags);
int t_openat(int dirfd, const char *path, int flags);
ssize_t t_read(int fd, void *buf, size_t n);
ssize_t t_pread(int fd, void *buf, size_t n, off_t at);
int t_close(int fd);
int t_chdir(const char *path);
int t_stat(const char *path, struct stat *st);
int t_rename(const char *from, const char *to);
pid_t t_fork(void);
void t_wait(pid_t pid);			       /* a child that ends with status 0 */
void t_timer(int us);			       /* SIGALRM, again and again; 0: no more */
void t_catch(void (*handler)(int), int flags); /* of SIGALRM */

#endif
