/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life - programs that fork, close what is not theirs, and exec, for life.sh
 *
 *      life daemon close_range|loop|proc   double fork, setsid, every descriptor closed; then reads "a" as 0, 1, 2
 *      life storm N                        N forked children that read, among threads that do
 *      life chain N                        reads "a" and execs itself N times
 *
 * Each read of "a" asks for 4 bytes. Says in the file "said" what it found.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

static int use(void)
{
	int fd = open("a", O_RDONLY | O_CLOEXEC);
	char buf[4];

	if (fd < 0 || read(fd, buf, sizeof(buf)) != sizeof(buf))
		abort();
	return fd;
}

static void say(const char *text)
{
	int fd = open("said", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
}

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 65536; fd++)
		n += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	return n;
}

static void close_all(const char *how)
{
	DIR *dir;

	if (strcmp(how, "close_range") == 0) {
		close_range(0, ~0u, 0);
	} else if (strcmp(how, "loop") == 0) {
		for (int fd = 0; fd < 4096; fd++)
			close(fd);
	} else {
		dir = opendir("/proc/self/fd");
		for (struct dirent *e; (e = readdir(dir)) != NULL;)
			if (e->d_name[0] != '.' && number(e->d_name) != dirfd(dir))
				close(number(e->d_name));
		closedir(dir);
	}
}

static int daemonise(const char *how)
{
	char text[64];
	int fds[3];

	close(use()); /* attached before */
	if (fork() > 0)
		return wait(NULL) < 0;
	setsid();
	if (fork() > 0)
		_exit(0);
	close(use()); /* and in between */
	close_all(how);
	snprintf(text, sizeof(text), "left %u\n", open_fds());
	for (int i = 0; i < 3; i++)
		fds[i] = use();
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "own %d %d %d of %u\n", fds[0],
		 fds[1], fds[2], open_fds());
	say(text);
	return 0;
}

static int stop;

static void *reads(void *arg)
{
	char buf[4];
	int fd = open("a", O_RDONLY | O_CLOEXEC);

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (pread(fd, buf, sizeof(buf), 0) != sizeof(buf))
			abort();
		++*(uint64_t *)arg;
		usleep(20);
	}
	close(fd);
	return NULL;
}

static int storm(int n)
{
	uint64_t done[3] = {0};
	int status, failed = 0;
	pthread_t t[3];
	char text[64];

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, reads, &done[i]);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			close(use());
			_exit(0);
		}
		failed += waitpid(pid, &status, 0) != pid || status != 0;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	snprintf(text, sizeof(text), "preads %lu failed %d\n",
		 (unsigned long)(done[0] + done[1] + done[2]), failed);
	say(text);
	return 0;
}

static int chain(const char *self, int n)
{
	char left[16];

	close(use());
	if (n == 0)
		return 0;
	snprintf(left, sizeof(left), "%d", n - 1);
	execl(self, self, "chain", left, (char *)NULL);
	return 127;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "daemon") == 0)
		return daemonise(argv[2]);
	if (strcmp(argv[1], "storm") == 0)
		return storm(number(argv[2]));
	return chain(argv[0], number(argv[2]));
}
