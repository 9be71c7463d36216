/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/query/query.h"
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

int hr_rows_parse(char *csv, size_t n, struct hr_answer_rows *ret)
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

/* Reads the whole file into *ret (malloc'ed), with a NUL after it. 0 or -errno. */
static int read_file(const char *path, char **ret, size_t *ret_n)
{
	FILE *from = fopen(path, "re");
	struct stat st;
	int r = 0;

	if (from == NULL)
		return -errno;
	if (fstat(fileno(from), &st) < 0)
		r = -errno;
	*ret = r == 0 ? malloc((size_t)st.st_size + 1) : NULL;
	if (r == 0 && *ret == NULL)
		r = -ENOMEM;
	if (r == 0) {
		*ret_n = fread(*ret, 1, (size_t)st.st_size, from);
		(*ret)[*ret_n] = '\0';
	}
	fclose(from);
	return r;
}

static int read_rows(const char *path, struct hr_answer_rows *ret)
{
	char *csv = NULL;
	size_t n = 0;
	int r = read_file(path, &csv, &n);

	return r == 0 ? hr_rows_parse(csv, n, ret) : r;
}

int hr_rows_read(const struct hr_query_request *r, char *const *words, size_t n_words,
		 const char *command, struct hr_answer_rows *ret)
{
	struct hr_query_request q = *r;
	char *folder = hr_temporary_folder(command), *file = NULL;
	int status = EXIT_FAILURE, err = folder == NULL ? -errno : -ENOMEM;

	*ret = (struct hr_answer_rows){0};
	q.words = malloc((n_words + 1) * sizeof(*q.words));
	if (folder != NULL && q.words != NULL && asprintf(&file, "%s/answer", folder) > 0) {
		memcpy(q.words, words, n_words * sizeof(*words));
		q.n_words = n_words;
		q.format = HR_FORMAT_CSV;
		q.output = file;
		err = 0;
		status = hr_query_answer(&q);
		if (status == EXIT_SUCCESS)
			err = read_rows(file, ret);
		unlink(file);
		free(q.folder);
		free(q.last_run != r->last_run ? q.last_run : NULL);
		hr_question_done(&q.question);
	}
	if (folder != NULL)
		rmdir(folder);
	if (err == -EINVAL)
		hr_report("%s: the answer of the query is damaged", command);
	else if (err < 0)
		hr_report("%s: cannot read the answer of the query: %s" HR_HINT
			  "set TMPDIR to a folder that you can write to",
			  command, strerrordesc_np(-err));
	free(file);
	free(folder);
	free(q.words);
	return err < 0 ? EXIT_FAILURE : status;
}
