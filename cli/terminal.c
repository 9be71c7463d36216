/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

unsigned hr_terminal_width(int fd)
{
	struct winsize size;

	return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool hr_terminal_colour(int fd)
{
	const char *term = hr_getenv("TERM");

	return isatty(fd) && hr_getenv("NO_COLOR") == NULL && term != NULL &&
	       strcmp(term, "dumb") != 0;
}
