/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments FOLDER - calls functions of libc with odd arguments, each in a process and a folder of its own
 *
 * Prints a line for each case: the call, then its result and errno, or the signal that ended it. The cases are
 * generated (test_arguments.py) and included: CASE(id, name, result, argument...). `result` is one of the macros
 * below; arguments are longs, made of numbers, literals and what the variables below hold.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	 4096
#define PATIENCE 5 /* s: for calls that wait for ever */
/*
 * The kernel refuses a length that reaches beyond the last address of a process. mmap chooses random addresses, a few of
 * which are less than 2 GiB below that.
 */
#define FAR_FROM_THE_END ((void *)(UINT64_C(1) << 32))

typedef long function(); /* whatever it takes: longs, all in registers or on the stack */

static struct {
	long result, error;
	int done;
} * said; /* shared with the child */

static char room[2 * PAGE] __attribute__((aligned(64))), template[32] = "tXXXXXX", far[6000];
static char *edge_name, *edge; /* at the end of the last page before one that cannot be read */
static char *line;
static int file_fd, folder_fd, pipe_fd;
static FILE *stream, *stream_in, *stream_memory;
static DIR *folder;

#define NUMBER(call) ((long)(int)(call))
#define SIZE(call)   (call)
#define POINTER(call)                                                                              \
	({                                                                                         \
		long p_ = (call);                                                                  \
		p_ == -1 ? -1 : p_ != 0;                                                           \
	})
#define NOTHING(call) ((call), 0)

#define CASE(id, name, result, ...)                                                                \
	static long case_##id(function *f)                                                         \
	{                                                                                          \
		return result(f(__VA_ARGS__));                                                     \
	}
#include CASES
#undef CASE

static const struct {
	const char *name, *arguments;
	long (*call)(function *f);
} cases[] = {
#define CASE(id, name, result, ...) {#name, #__VA_ARGS__, case_##id},
#include CASES
#undef CASE
};

static void prepare(void)
{
	char *pages = mmap(FAR_FROM_THE_END, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int null = open("/dev/null", O_RDWR), out = open("out", O_RDWR | O_CREAT, 0644), pipes[2];

	mprotect(pages + PAGE, PAGE, PROT_NONE);
	edge_name = strcpy(pages + PAGE - 2, "f");
	edge = pages + PAGE - 16;
	memset(far, 'x', sizeof(far) - 1);
	strcpy(room, "f");
	dup2(null, 0);
	dup2(out, 1);
	dup2(null, 2);
	stream = fopen("f", "w");
	fputs("hello world\nline two\n", stream);
	fclose(stream);
	mkdir("d", 0755);
	file_fd = open("f", O_RDWR);
	folder_fd = open("d", O_RDONLY | O_DIRECTORY);
	if (pipe2(pipes, O_NONBLOCK) != 0)
		_exit(9);
	pipe_fd = pipes[1];
	stream = fopen("f", "r+");
	stream_in = fopen("f", "r");
	stream_memory = fmemopen(room + PAGE, 100, "r+");
	folder = opendir("d");
}

static _Noreturn void child(size_t i, function *f)
{
	char name[32];

	setsid();
	snprintf(name, sizeof(name), "c%zu", i);
	if (mkdir(name, 0755) != 0 || chdir(name) != 0)
		_exit(9);
	prepare();
	alarm(PATIENCE);
	errno = 0;
	said->result = cases[i].call(f);
	said->error = errno;
	said->done = 1;
	_exit(0);
}

int main(int argc, char **argv)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	if (argc != 2 || chdir(argv[1]) != 0 || libc == NULL)
		return 2;
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	said = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;
		pid_t pid;

		if (dlsym(libc, cases[i].name) == NULL) /* of another glibc */
			continue;
		printf("%s(%s): ", cases[i].name, cases[i].arguments);
		fflush(stdout);
		said->done = 0;
		pid = fork();
		if (pid == 0)
			child(i, (function *)dlsym(RTLD_DEFAULT, cases[i].name));
		waitpid(pid, &status, 0);
		if (WIFSIGNALED(status))
			printf("signal %d\n", WTERMSIG(status));
		else if (!said->done)
			printf("exit status %d\n", WEXITSTATUS(status));
		else
			printf("%ld, errno %ld\n", said->result, said->error);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
