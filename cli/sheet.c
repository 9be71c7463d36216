/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sheet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/text.h"

#define COLUMNS_LEAST 40u
#define SENTENCE_MOST 120u /* maximum width of a sentence, because longer lines are hard to read */

static const char *const sheet_styles[] = {
    [HR_STYLE_BOLD] = "\033[1m",
    [HR_STYLE_GOOD] = "\033[32m",
    [HR_STYLE_WARN] = "\033[33m",
    [HR_STYLE_BAD] = "\033[31m",
};

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

void hr_sheet_init(struct hr_sheet *p, FILE *out)
{
	int fd = fileno(out);
	unsigned width;
	char *folder;

	*p = (struct hr_sheet){.out = out};
	if (fd < 0 || !isatty(fd))
		return;
	width = hr_terminal_width(fd);
	if (width == 0)
		width = HR_SHEET_COLUMNS;
	p->columns = width > COLUMNS_LEAST ? width : COLUMNS_LEAST;
	p->colour = hr_terminal_colour(fd);
	folder = getcwd(NULL, 0);
	if (folder != NULL && hr_text_escape(p->folder, sizeof(p->folder), folder,
					     strlen(folder)) >= sizeof(p->folder))
		p->folder[0] = '\0';
	free(folder);
}

static void put_text(struct hr_sheet *p, enum hr_style style, const char *text)
{
	bool styled = p->colour && style != HR_STYLE_PLAIN && text[0] != '\0';
	char *line = hr_text_line(text);

	if (line == NULL)
		return;
	if (styled)
		fputs(sheet_styles[style], p->out);
	fputs(line, p->out);
	if (styled)
		fputs("\033[0m", p->out);
	free(line);
}

void hr_sheet_vput(struct hr_sheet *p, enum hr_style style, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;
	put_text(p, style, text);
	free(text);
}

void hr_sheet_put(struct hr_sheet *p, enum hr_style style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	hr_sheet_vput(p, style, format, args);
	va_end(args);
}

void hr_sheet_end(struct hr_sheet *p)
{
	putc('\n', p->out);
}

size_t hr_sheet_words(const char *text, size_t cells)
{
	size_t end = strcspn(text, " "), next, used;
	char *line = strdup(text);

	for (; line != NULL && text[end] == ' '; end = next) {
		next = end + 1 + strcspn(text + end + 1, " ");
		line[next] = '\0';
		used = hr_text_cells(line);
		line[next] = text[next];
		if (used > cells)
			break;
	}
	free(line);
	return end;
}

void hr_sheet_say(struct hr_sheet *p, enum hr_style style, unsigned indent, const char *label,
		  const char *format, ...)
{
	unsigned columns = p->columns < SENTENCE_MOST ? p->columns : SENTENCE_MOST;
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	put_text(p, style, label);
	fprintf(p->out, "%*s", (int)(indent - hr_text_cells(label)), "");
	for (const char *rest = text;;) {
		size_t bytes =
		    columns > indent ? hr_sheet_words(rest, columns - indent) : strlen(rest);

		hr_sheet_line(p, style == HR_STYLE_BOLD ? style : HR_STYLE_PLAIN, "%.*s",
			      (int)bytes, rest);
		rest += bytes + (rest[bytes] == ' ');
		if (*rest == '\0')
			break;
		fprintf(p->out, "%*s", (int)indent, "");
	}
	free(text);
}

void hr_sheet_path(const struct hr_sheet *p, char *out, size_t out_bytes, const char *path,
		   size_t cells)
{
	if (p->columns > 0)
		hr_text_path_short(out, out_bytes, path, p->folder, cells);
	else
		snprintf(out, out_bytes, "%s", path);
}
