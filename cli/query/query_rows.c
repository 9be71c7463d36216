/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/array.h"

/*
 * Ends the cell at *at with a NUL, and removes its quotes. Sets *at to the next cell or line, and
 * *ret_last if the cell is the last one of its line. Returns the cell; NULL: an empty one.
 */
static char *take_cell(char **at, bool *ret_last)
{
	char *from = *at, *cell = from, *to = from, mark;
	bool quoted = *from == '"', was_quoted = quoted;

	for (from += quoted; *from != '\0' && (quoted || strchr(",\r\n", *from) == NULL); from++) {
		if (quoted && *from == '"' && *++from != '"') {
			quoted = false;
			from--;
			continue;
		}
		*to++ = *from;
	}
	mark = *from;
	from += mark == '\r' && from[1] == '\n';
	*ret_last = mark != ',';
	*at = mark != '\0' ? from + 1 : from;
	*to = '\0';
	return was_quoted || *cell != '\0' ? cell : NULL;
}

/* Takes `n` bytes of CSV (malloc'ed, with a NUL after them). Returns 0, -ENOMEM or -EINVAL. */
static int rows_parse(char *csv, size_t n, struct hr_answer_rows *ret)
{
	char *at = csv, *end = csv + n;
	size_t n_cells = 0, column = 0;

	*ret = (struct hr_answer_rows){.text = csv};
	for (bool last, header = true; at < end;) {
		char *cell = take_cell(&at, &last);

		if (header) {
			ret->n_columns++;
			header = !last;
			continue;
		}
		if (!hr_array_reserve(ret->cells, n_cells, ret->room))
			return -ENOMEM;
		ret->cells[n_cells++] = cell;
		column++;
		if (last != (column == ret->n_columns))
			return -EINVAL;
		column = last ? 0 : column;
	}
	if (ret->n_columns == 0 || column > 0)
		return -EINVAL;
	ret->n_rows = n_cells / ret->n_columns;
	return 0;
}

void hr_rows_done(struct hr_answer_rows *rows)
{
	free(rows->text);
	free(rows->cells);
	*rows = (struct hr_answer_rows){0};
}

/* Reads the whole answer. Returns 0 or -errno; -EINVAL: it is damaged. */
static int read_rows(int answer, struct hr_answer_rows *ret)
{
	off_t bytes = lseek(answer, 0, SEEK_END);
	char *csv = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
	ssize_t n = 1;

	if (csv == NULL)
		return -errno;
	for (off_t at = 0; at < bytes && n > 0; at += n)
		n = pread(answer, csv + at, (size_t)(bytes - at), at);
	if (n <= 0) {
		free(csv);
		return n < 0 ? -errno : -EIO;
	}
	csv[bytes] = '\0';
	return rows_parse(csv, (size_t)bytes, ret);
}

int hr_rows_read(const struct hr_query_request *r, char *const *words, size_t n_words,
		 const char *command, struct hr_answer_rows *ret)
{
	struct hr_query_request q = *r;
	int fd = memfd_create("answer", MFD_CLOEXEC), status = EXIT_FAILURE;
	FILE *answer = fd >= 0 ? fdopen(fd, "w+") : NULL;
	int err = answer == NULL ? -errno : 0;

	*ret = (struct hr_answer_rows){0};
	q.words = malloc((n_words + 1) * sizeof(*q.words));
	if (q.words == NULL)
		err = -ENOMEM;
	if (err == 0) {
		memcpy(q.words, words, n_words * sizeof(*words));
		q.n_words = n_words;
		q.format = HR_FORMAT_CSV;
		q.output = NULL;
		q.into = answer;
		status = hr_query_answer(&q);
		if (status == EXIT_SUCCESS)
			err = read_rows(fd, ret);
		free(q.folder);
		free(q.last_run != r->last_run ? q.last_run : NULL);
		hr_question_done(&q.question);
	}
	if (answer != NULL)
		fclose(answer);
	else if (fd >= 0)
		close(fd);
	if (err == -EINVAL)
		hr_report("%s: the answer of the query is damaged", command);
	else if (err < 0)
		hr_report("%s: cannot read the answer of the query: %s", command,
			  strerrordesc_np(-err));
	free(q.words);
	return err < 0 ? EXIT_FAILURE : status;
}
