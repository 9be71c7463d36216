/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/procfs.h"

#define CHECK_NS 20000000L
/* CMD only pauses if it stops for fewer checks: cpulimit stops it ten times per second. */
#define PAUSE_CHECKS 10

static const int forwarded[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
				SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};

static mode_t command_umask;
static struct sigaction command_sigxfsz;

void hr_child_prepare(void)
{
	command_umask = umask(077);
	umask(command_umask & ~(mode_t)S_IRWXU);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, &command_sigxfsz);
}

static void command_settings(void)
{
	umask(command_umask);
	sigaction(SIGXFSZ, &command_sigxfsz, NULL);
}

int hr_child_init(struct hr_child *child)
{
	sigset_t set;

	*child = (struct hr_child){.signal_fd = -1};
	/* If the parent ignores SIGCHLD, waitid cannot return CMD's exit status. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &child->sigchld);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	pthread_sigmask(SIG_BLOCK, &set, &child->before);
	child->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return child->signal_fd < 0 ? -errno : 0;
}

int hr_child_start(struct hr_child *child, char *const argv[], char *const environment[])
{
	int report[2], error = 0;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) != 0)
		return -errno;
	child->pid = fork();
	if (child->pid < 0) {
		error = errno;
		close(report[0]);
		close(report[1]);
		return -error;
	}
	if (child->pid == 0) {
		sigaction(SIGCHLD, &child->sigchld, NULL);
		pthread_sigmask(SIG_SETMASK, &child->before, NULL);
		command_settings();
		execvpe(argv[0], argv, environment);
		error = errno;
		n = write(report[1], &error, sizeof(error));
		_exit(n < 0 ? HR_EXIT_NOT_EXECUTABLE : HR_EXIT_NOT_FOUND);
	}
	close(report[1]);
	n = read(report[0], &error, sizeof(error));
	close(report[0]);
	if (n <= 0)
		return 0;
	waitpid(child->pid, &child->status, 0);
	child->ended = true;
	return -error;
}

/* Makes signal_fd readable only for signals that end a wait of `headrace run`. */
static void watch_interrupts(struct hr_child *child)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	signalfd(child->signal_fd, &set, 0);
}

static int wait_status(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

static bool wait_for(pid_t pid, int what, siginfo_t *ret)
{
	*ret = (siginfo_t){0};
	return waitid(P_PID, (id_t)pid, ret, what | WNOHANG) == 0 && ret->si_pid == pid;
}

static void sleep_a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = CHECK_NS}, NULL);
}

/* Call it when CMD has stopped. Returns whether CMD continues or ends within 0.2 s. */
static bool only_paused(pid_t pid)
{
	siginfo_t info;

	for (int i = 0; i < PAUSE_CHECKS; i++) {
		sleep_a_moment();
		if (wait_for(pid, WCONTINUED | WSTOPPED | WEXITED | WNOWAIT, &info))
			return true;
	}
	return false;
}

/*
 * Runs in a child process while `headrace run` is stopped. Sends SIGCONT to `headrace run` when CMD
 * continues, and repeats the signal, because the first one can arrive before the stop. Ends when
 * `headrace run` kills it.
 */
static void guard(pid_t run, pid_t pid)
{
	struct hr_procstat stat;

	/* signals to the process group of `headrace run` must not stop this process */
	setpgid(0, 0);
	while (getppid() == run) {
		if (hr_procstat_read(pid, &stat) != 0 || stat.state != 'T')
			kill(run, SIGCONT);
		sleep_a_moment();
	}
	_exit(0);
}

/* Stops `headrace run`, until the shell or guard() continues it. Then continues CMD. */
static void stop_with(pid_t pid)
{
	pid_t run = getpid(), guarding = fork();

	if (guarding == 0)
		guard(run, pid);
	raise(SIGSTOP);
	if (guarding > 0) {
		kill(guarding, SIGKILL);
		waitpid(guarding, NULL, 0);
	}
	kill(pid, SIGCONT);
}

/* Handles the end or a stop of CMD. Leaves a zombie, whose exit status headraced can read. */
static void child_check(struct hr_child *child)
{
	siginfo_t info;

	while (!wait_for(child->pid, WEXITED | WNOWAIT, &info)) {
		if (!wait_for(child->pid, WSTOPPED, &info))
			return;
		if (!only_paused(child->pid))
			stop_with(child->pid);
	}
	child->status = wait_status(&info);
	child->ended = true;
	watch_interrupts(child);
}

void hr_child_signals(struct hr_child *child)
{
	struct signalfd_siginfo info;

	while (read(child->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int signum = (int)info.ssi_signo;

		if (signum == SIGCHLD)
			continue;
		/* Forwards neither signals of the terminal, nor those that CMD has sent. */
		if (info.ssi_code != SI_KERNEL && (pid_t)info.ssi_pid != child->pid)
			kill(child->pid, signum);
	}
	if (!child->ended)
		child_check(child);
}

int hr_child_exit_status(const struct hr_child *child)
{
	if (WIFSIGNALED(child->status))
		return HR_EXIT_SIGNAL + WTERMSIG(child->status);
	return WEXITSTATUS(child->status);
}

int hr_child_exec_status(const char *name, int error)
{
	hr_report("%s: %s", name, error == ENOENT ? "command not found" : strerrordesc_np(error));
	return error == ENOENT || error == ENOTDIR ? HR_EXIT_NOT_FOUND : HR_EXIT_NOT_EXECUTABLE;
}

int hr_child_exec(char *const argv[], char *const environment[])
{
	command_settings();
	execvpe(argv[0], argv, environment);
	return hr_child_exec_status(argv[0], errno);
}

void hr_child_done(struct hr_child *child)
{
	if (child->ended)
		waitpid(child->pid, NULL, WNOHANG);
	if (child->signal_fd >= 0)
		close(child->signal_fd);
}
