/* SPDX-License-Identifier: Apache-2.0 */
/* headrace model: how measurements grow with a parameter, and what they are at a larger one. */
#include "cli/model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/stores.h"
#include "common/array.h"
#include "common/near.h"
#include "common/outfile.h"
#include "common/text.h"
#include "model/extrap_file.h"
#include "query/ask.h"

enum { OPT_SPACE = 256, OPT_CORES, OPT_TO };

#define FILE_BYTES_MOST (UINT64_C(1) << 30)
#define READ_BYTES	65536u

#define SPACES	"default negative no-logs"
#define TARGETS "extrap-text extrap-jsonl"

struct model_arguments {
	struct hr_model_request model;
	const char *format; /* "text", "json" or "csv" */
	const char *to;	    /* a word of TARGETS; NULL: make models */
	const char *output; /* NULL: standard output */
	const char *page;   /* file of the page; NULL: none */
	const char **files;
	size_t n_files;
};

#define TEXT(member) HR_OPTION_TEXT(struct model_arguments, member)

const struct hr_option hr_model_option_table[] = {
    {"over", TEXT(model.over), "NAME[,NAME]",
     "the parameters of the formulas (default: those that have several values)", HR_VALUES_OTHER},
    {"at", TEXT(model.at), "NAME=VALUE[,...]",
     "predict the values at this point (default: four times the largest value of each parameter)",
     HR_VALUES_OTHER},
    {"region", TEXT(model.region), "GLOB", "only regions with such a name, for example 'train->*'",
     HR_VALUES_OTHER},
    {"metric", TEXT(model.metric), "GLOB", "only metrics with such a name", HR_VALUES_OTHER},
    {"space", OPT_SPACE, "SPACE",
     "the terms to try: default (42), negative (84: also terms that shrink, for strong scaling) or "
     "no-logs (19)",
     SPACES},
    {"cores", OPT_CORES, "N", "cores of each process, for the cost (default: 1)", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text json csv"),
    {"to", OPT_TO, "FORMAT",
     "write the measurements as a file for Extra-P, and make no model: extrap-text or extrap-jsonl",
     TARGETS},
    {"page", TEXT(page), "FILE", "also write an HTML page with a picture of each model", NULL},
    {"output", 'o', "FILE", "with --to: the file to write (default: standard output)", NULL},
    HR_OPTIONS_END,
};

static int argument_take(void *self, int id, const char *value)
{
	struct model_arguments *r = self;
	char *end;
	int index = 0;

	switch (id) {
	case OPT_SPACE:
		index = hr_option_word("space", SPACES, value);
		r->model.space = index > 0 ? (enum hr_space)index : HR_SPACE_DEFAULT;
		break;
	case OPT_CORES:
		r->model.cores = strtod(value, &end);
		if (end == value || *end != '\0' || !isfinite(r->model.cores) ||
		    r->model.cores <= 0)
			return hr_option_wrong("cores", "a number above 0", value);
		break;
	case HR_OPTION_FORMAT:
		r->format = value;
		break;
	case OPT_TO:
		index = hr_option_word("to", TARGETS, value);
		r->to = value;
		break;
	case 'o':
		r->output = strcmp(value, "-") == 0 ? NULL : value;
		break;
	default: /* an operand */
		r->files[r->n_files++] = value;
	}
	return index < 0 ? -1 : 0;
}

/* Reports a mistake, and returns false. */
static bool arguments_check(const struct model_arguments *r)
{
	if (r->n_files == 0)
		hr_report("no stores and no file with measurements" HR_HINT
			  "headrace model STORE... --over ranks");
	else if (r->page != NULL && r->to != NULL)
		hr_report("--page needs models, and --to makes none");
	else if (r->output != NULL && r->to == NULL)
		hr_report("--output needs --to extrap-text or --to extrap-jsonl" HR_HINT
			  "headrace model STORE... >answer.txt writes the answer to a file");
	else
		return true;
	return false;
}

/* ---- files for Extra-P ----------------------------------------------------------------------- */

static int extrap_write(const struct model_arguments *r, const struct hr_measurements *m, FILE *out,
			const char *name)
{
	enum hr_extrap_format format =
	    strcmp(r->to, "extrap-text") == 0 ? HR_EXTRAP_TEXT : HR_EXTRAP_JSONL;
	char *error = NULL;
	int result = hr_extrap_write(out, format, m, &error);

	if (result == 0 && (fflush(out) != 0 || ferror(out)))
		result = -EIO;
	if (result < 0)
		hr_report("cannot write %s: %s%s", name,
			  error != NULL ? error : strerrordesc_np(-result),
			  result == -EINVAL ? HR_HINT "--to extrap-jsonl has no such limit" : "");
	free(error);
	return result;
}

/* Moves the series that the request selects to the front, and frees the others. */
static void series_select(struct hr_measurements *m, const struct hr_model_request *r)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct hr_series kept = m->series[i];

		if (!hr_model_selects(r, &kept))
			continue;
		m->series[i] = m->series[n];
		m->series[n++] = kept;
	}
	for (size_t i = n; i < m->n; i++)
		hr_series_done(&m->series[i]);
	m->n = n;
}

static int export_run(const struct model_arguments *r, struct hr_measurements *m)
{
	struct hr_outfile o;
	FILE *out;
	int result;

	series_select(m, &r->model);
	if (r->output == NULL)
		return extrap_write(r, m, stdout, "standard output") < 0 ? EXIT_FAILURE
									 : EXIT_SUCCESS;
	out = hr_outfile_open(&o, r->output, &result);
	if (out == NULL) {
		hr_report("cannot write %s: %s", hr_near_quoted(r->output).s,
			  strerrordesc_np(-result));
		return EXIT_FAILURE;
	}
	result = extrap_write(r, m, out, hr_near_quoted(r->output).s);
	if (hr_outfile_close(&o, out, result == 0) < 0 && result == 0) {
		hr_report("cannot write %s", hr_near_quoted(r->output).s);
		result = -EIO;
	}
	return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Returns an exit status, after a report if it is not EXIT_SUCCESS. */
static int page_write(const char *path, const struct hr_model_answers *a)
{
	struct hr_outfile o;
	int err, r;
	FILE *to = hr_outfile_open(&o, path, &err);

	if (to != NULL) {
		r = hr_model_page(a, to);
		err = hr_outfile_close(&o, to, r == 0);
		err = r < 0 ? r : err;
	}
	if (err == 0)
		return EXIT_SUCCESS;
	hr_report("cannot write %s: %s", hr_near_quoted(path).s,
		  err == -EINVAL ? "a page shows models of one parameter: choose it with --over"
				 : strerrordesc_np(-err));
	return EXIT_FAILURE;
}

static int answer_run(const struct model_arguments *r, const struct hr_model_input *input)
{
	struct hr_model_answers answers;
	int status = hr_model_answer(input, &r->model, &answers);

	if (status == EXIT_SUCCESS && strcmp(r->format, "json") == 0)
		hr_model_print_json(&answers, stdout);
	else if (status == EXIT_SUCCESS && strcmp(r->format, "csv") == 0)
		hr_model_print_csv(&answers, stdout);
	else if (status == EXIT_SUCCESS)
		hr_model_print_text(&answers, stdout);
	if (status == EXIT_SUCCESS && (fflush(stdout) != 0 || ferror(stdout))) {
		hr_report("cannot write the answer: %s", strerrordesc_np(errno));
		status = EXIT_FAILURE;
	}
	if (status == EXIT_SUCCESS && r->page != NULL)
		status = page_write(r->page, &answers);
	hr_model_answers_done(&answers);
	return status;
}

/* ---- input ----------------------------------------------------------------------------------- */

struct bytes {
	char *data;
	size_t n, room;
};

/* Reads a file to its end. Returns 0 or -errno; -EFBIG: it is too large. */
static int file_load(const char *path, struct bytes *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;
	int r = 0;

	if (fd < 0)
		return -errno;
	while (got > 0 && r == 0) {
		if (!hr_array_fit(to->data, to->n + READ_BYTES, to->room)) {
			r = -ENOMEM;
			break;
		}
		got = read(fd, to->data + to->n, READ_BYTES);
		if (got > 0)
			to->n += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			r = -errno;
		if (to->n > FILE_BYTES_MOST)
			r = -EFBIG;
	}
	close(fd);
	return r;
}

static int file_read(const char *path, struct hr_measurements *to)
{
	struct bytes bytes = {0};
	char *error = NULL;
	int r = file_load(path, &bytes);

	if (r == 0)
		r = hr_extrap_read(bytes.data, bytes.n, to, &error);
	free(bytes.data);
	if (r < 0)
		hr_report("cannot read %s: %s%s", hr_near_quoted(path).s,
			  error != NULL ? error : strerrordesc_np(-r),
			  r == -EBADMSG ? HR_HINT
			      "headrace model reads Extra-P's text format and JSON lines"
					: "");
	free(error);
	return r < 0 ? -1 : 0;
}

/* Reads files of Extra-P, or stores. Returns an exit status. */
static int input_read(const struct model_arguments *r, struct hr_model_input *to)
{
	size_t stores = 0;

	for (size_t i = 0; i < r->n_files; i++) {
		enum hr_model_operand kind = hr_model_operand(r->files[i]);

		if (kind == HR_MODEL_MISSING) {
			hr_stores_report_missing(r->files[i]);
			return HR_ASK_NO_STORE;
		}
		stores += kind == HR_MODEL_STORE;
	}
	if (stores == r->n_files)
		return hr_model_stores_read(r->files, r->n_files, r->model.over, to);
	for (size_t i = 0; stores == 0 && i < r->n_files; i++)
		if (file_read(r->files[i], &to->measurements) < 0)
			return EXIT_FAILURE;
	if (stores == 0)
		return EXIT_SUCCESS;
	hr_report("files of measurements and stores cannot be modelled together" HR_HINT
		  "`headrace model STORE... --to extrap-jsonl -o FILE` writes the measurements of "
		  "stores as a file");
	return HR_EXIT_USAGE;
}

int hr_model_main(int argc, char **argv)
{
	struct model_arguments r = {.format = "text",
				    .files = calloc((size_t)argc + 1, sizeof(*r.files)),
				    .model.cores = 1};
	struct hr_model_input input = {0};
	int status = EXIT_FAILURE;

	if (r.files != NULL &&
	    hr_arguments(argc, argv, hr_model_option_table, argument_take, &r, &status)) {
		status = arguments_check(&r) ? input_read(&r, &input) : HR_EXIT_USAGE;
		if (status == EXIT_SUCCESS)
			status = r.to != NULL ? export_run(&r, &input.measurements)
					      : answer_run(&r, &input);
	}
	hr_measurements_done(&input.measurements);
	free(r.files);
	return status;
}
