/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_spawn DIR - every way to make a process, each doing I/O before and after
 *
 *   fork, fork in fork, fork + exec, vfork + exec, posix_spawn, system, popen, a chain of five execs;
 *   children end by _exit, exit, SIGKILL and exec
 *
 * `w_spawn leaf PATH [N]` reads PATH, then execs itself N more times.
 */
#include "tally.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *program;

static void reap(pid_t pid)
{
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

static void leaf(char *path, int more)
{
	char number[16], word[] = "leaf";

	t_slurp(path);
	tally_flush();
	if (more == 0)
		exit(0);
	snprintf(number, sizeof(number), "%d", more - 1);
	execv(program, (char *[]){program, word, path, number, NULL});
	die("exec");
}

/* Two generations of plain forks, ended by _exit and by SIGKILL. */
static void forks(const char *folder)
{
	const char *a = data_file(folder, 1), *b = data_file(folder, 2);
	pid_t child = fork();

	if (child == 0) {
		tally_child();
		t_slurp(a);
		pid_t grandchild = fork();
		if (grandchild == 0) {
			tally_child();
			t_slurp(b);
			tally_flush();
			raise(SIGKILL);
		}
		reap(grandchild);
		t_slurp(b);
		tally_flush();
		_exit(7);
	}
	t_slurp(b);
	reap(child);
}

static void execs(const char *folder)
{
	char word[] = "leaf", four[] = "4", *path = (char *)data_file(folder, 3);
	pid_t child = fork();

	if (child == 0) {
		execv(program, (char *[]){program, word, path, four, NULL});
		_exit(127);
	}
	reap(child);
	child = vfork();
	if (child == 0) {
		execv(program, (char *[]){program, word, path, NULL});
		_exit(127);
	}
	reap(child);
	CHECK(posix_spawn(&child, program, NULL, NULL, (char *[]){program, word, path, NULL},
			  environ) == 0);
	reap(child);
}

/*
 * What CPython's subprocess does between vfork and exec: closes, dup2, close_range, all on descriptors
 * that the parent goes on using.
 */
static void vfork_child_changes_nothing(const char *folder)
{
	const char *path = data_file(folder, 4), *other = data_file(folder, 5);
	char word[] = "leaf", *leaf_path = (char *)data_file(folder, 6);
	int fd = t_open(path, O_RDONLY | O_CLOEXEC), second = t_open(other, O_RDONLY | O_CLOEXEC);

	t_read(fd, 10);
	pid_t child = vfork();
	if (child == 0) {
		dup2(second, fd);
		close(second);
		tally_add("close", other, 0);
		close_range(3, ~0U, 0);
		execv(program, (char *[]){program, word, leaf_path, NULL});
		_exit(127);
	}
	reap(child);
	t_read(fd, 20);
	t_read(second, 30);
	t_close(fd);
	t_close(second);
}

/* One that has a file of its own, under a number that is another file for the parent. */
static void vfork_child_does_io(const char *folder)
{
	const char *path = data_file(folder, 8), *other = data_file(folder, 9);
	int fd = t_open(path, O_RDONLY | O_CLOEXEC);

	t_read(fd, 10);
	pid_t child = vfork();
	if (child == 0) {
		t_close(fd);
		if (t_open(other, O_RDONLY | O_CLOEXEC) != fd)
			_exit(1);
		for (int i = 0; i < 50; i++)
			t_pread(fd, 10, i);
		t_close(fd);
		_exit(0);
	}
	reap(child);
	tally_name(fd, path); /* the child has forgotten it for us both */
	t_read(fd, 20);
	t_close(fd);
}

static void shells(const char *folder)
{
	char command[2 * TALLY_PATH_BYTES], answer[64];

	snprintf(command, sizeof(command), "'%s' leaf '%s'", program, data_file(folder, 7));
	CHECK(system(command) == 0);
	FILE *pipe = popen(command, "r");
	CHECK(pipe != NULL && fgets(answer, sizeof(answer), pipe) == NULL && pclose(pipe) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	program = realpath("/proc/self/exe", NULL);
	CHECK(program != NULL);
	if (strcmp(argv[1], "leaf") == 0)
		leaf(argv[2], argc > 3 ? atoi(argv[3]) : 0);
	forks(argv[1]);
	execs(argv[1]);
	vfork_child_changes_nothing(argv[1]);
	vfork_child_does_io(argv[1]);
	shells(argv[1]);
	t_slurp(data_file(argv[1], 0));
	tally_flush();
	return 0;
}
