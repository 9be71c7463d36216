/* SPDX-License-Identifier: Apache-2.0 */
/* The state is static, because a process has only one terminal. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "cli/screen.h"

/* OPEN shows the alternate screen, without cursor and line wrapping; CLOSE hides it. */
#define OPEN  "\033[?1049h\033[?25l\033[?7l\033[2J"
#define CLOSE "\033[0m\033[?7h\033[?25h\033[?1049l"

static struct {
	bool open;
	bool keys; /* standard input is a terminal; `before` are its former modes */
	struct termios before;
	sigset_t signals, blocked_before;
	int fd;
} screen = {.fd = -1};

bool hr_screen_usable(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static void screen_write(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t put = write(STDOUT_FILENO, bytes, n);

		if (put < 0) /* the terminal is gone; SIGHUP will end this process */
			return;
		bytes += put;
		n -= (size_t)put;
	}
}

static void screen_start(void)
{
	struct termios raw = screen.before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (screen.keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	screen_write(OPEN, strlen(OPEN));
	screen.open = true;
}

static void screen_restore(void)
{
	if (!screen.open)
		return;
	screen_write(CLOSE, strlen(CLOSE));
	if (screen.keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
	screen.open = false;
}

/* Stops this process by SIGTSTP, which the kernel ignores if no shell can continue the process. */
static void screen_stop(void)
{
	struct sigaction before;
	sigset_t tstp;

	sigaction(SIGTSTP, &(struct sigaction){.sa_handler = SIG_DFL}, &before);
	sigemptyset(&tstp);
	sigaddset(&tstp, SIGTSTP);
	(void)raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &tstp, NULL); /* the process stops here */
	pthread_sigmask(SIG_BLOCK, &tstp, NULL);
	sigaction(SIGTSTP, &before, NULL);
}

int hr_screen_open(int *ret_fd)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

	sigemptyset(&screen.signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&screen.signals, numbers[i]);
	screen.fd = signalfd(-1, &screen.signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (screen.fd < 0)
		return -errno;
	pthread_sigmask(SIG_BLOCK, &screen.signals, &screen.blocked_before);
	screen.keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
	screen_start();
	*ret_fd = screen.fd;
	return 0;
}

void hr_screen_close(void)
{
	screen_restore();
	if (screen.fd < 0)
		return;
	close(screen.fd);
	screen.fd = -1;
	pthread_sigmask(SIG_SETMASK, &screen.blocked_before, NULL);
}

enum hr_screen_event hr_screen_signals(int *ret_signal)
{
	enum hr_screen_event event = HR_SCREEN_NOTHING;
	struct signalfd_siginfo info;

	*ret_signal = 0;
	while (read(screen.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGTSTP:
			screen_restore();
			screen_stop();
			screen_start();
			event = HR_SCREEN_REDRAW;
			break;
		case SIGCONT:
			screen_start();
			event = HR_SCREEN_REDRAW;
			break;
		case SIGWINCH:
			event = HR_SCREEN_REDRAW;
			break;
		default:
			*ret_signal = (int)info.ssi_signo;
			return HR_SCREEN_END;
		}
	}
	return event;
}

void hr_screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize w = {0};

	*ret_columns = 80;
	*ret_rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
		return;
	*ret_columns = w.ws_col;
	*ret_rows = w.ws_row;
}

void hr_screen_put(const struct hr_screen_text *text)
{
	if (!text->failed)
		screen_write(text->s, text->bytes);
}
