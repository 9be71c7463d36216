/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace report: makes an HTML page that shows what a job waited for. The data is the answer
 * to one statement, which `headrace query` runs on stores or on a collector.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/query.h"
#include "cli/report/report_page.h"
#include "cli/report/serve.h"
#include "common/outfile.h"
#include "common/text.h"
#include "net/address.h"

enum { OPT_PORT = 256 };

struct report_request {
	struct hr_query_request query; /* stores and job; the answer is the data of the page */
	const char *output;	       /* file of -o; NULL: the name of the store */
	bool json, serve;
	uint64_t port; /* 0: any free port */
};

#define TEXT(member) HR_OPTION_TEXT(struct report_request, member)
#define FLAG(member) HR_OPTION_FLAG(struct report_request, member)

const struct hr_option hr_report_option_table[] = {
    {"job", TEXT(query.job), "JOB", "show this job (default: the newest one)", HR_VALUES_OTHER},
    {"output", 'o', "FILE",
     "write the page to FILE, - for standard output (default: STORE.html in this folder)", NULL},
    {"serve", FLAG(serve), NULL, "show the page in a browser of this machine, instead of a file",
     NULL},
    {"port", OPT_PORT, "PORT", "the port of --serve (default: any)", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("html json"),
    HR_OPTIONS_END,
};

static int take_argument(void *self, int id, const char *value)
{
	struct report_request *r = self;

	switch (id) {
	case 'o':
		r->output = value;
		return 0;
	case HR_OPTION_FORMAT:
		r->json = hr_option_is_json(value);
		return 0;
	case OPT_PORT:
		return hr_option_number("port", "a port, 0 to 65535", value, 0, UINT16_MAX,
					&r->port);
	default: /* an operand */
		r->query.stores[r->query.n_stores++] = value;
		return 0;
	}
}

/* Reads the content of the page from the stores. Returns an exit status. */
static int make_page(const struct hr_query_request *q, struct hr_report_page *ret)
{
	char *words[] = {hr_report_page_sql()};
	struct hr_answer_rows rows = {0};
	int status = EXIT_FAILURE, err = -ENOMEM;

	if (words[0] != NULL) {
		err = 0;
		status = hr_rows_read(q, words, 1, "report", &rows);
	}
	if (status == EXIT_SUCCESS)
		err = hr_report_page_init(ret, &rows);
	if (err < 0) {
		hr_report("cannot make the report: %s", strerrordesc_np(-err));
		status = EXIT_FAILURE;
	}
	hr_rows_done(&rows);
	free(words[0]);
	return status;
}

/* Returns NAME.html for a store with the path FOLDER/NAME (malloc'ed). */
static char *default_name(const char *store)
{
	size_t n = strlen(store);
	const char *name;
	char *text;

	if (hr_address_meant(store))
		return strdup("headrace-report.html");
	while (n > 1 && store[n - 1] == '/')
		n--;
	name = memrchr(store, '/', n);
	name = name != NULL ? name + 1 : store;
	if (store + n - name == 0 || strncmp(name, ".", (size_t)(store + n - name)) == 0)
		return strdup("headrace-report.html");
	return asprintf(&text, "%.*s.html", (int)(store + n - name), name) > 0 ? text : NULL;
}

static int write_page(const struct hr_report_page *page, const char *title, const char *path)
{
	struct hr_outfile file;
	int err;
	FILE *to = hr_outfile_open(&file, path, &err);
	long bytes = 0;

	if (to != NULL) {
		hr_report_page_write(page, title, false, to);
		bytes = ftell(to);
		err = hr_outfile_close(&file, to, bytes >= 0);
	}
	if (err < 0) {
		hr_report("cannot write %s: %s", path, strerrordesc_np(-err));
		return EXIT_FAILURE;
	}
	hr_report("wrote %s (%s): open it in a browser", path,
		  hr_text_size(bytes > 0 ? (uint64_t)bytes : 0).s);
	return EXIT_SUCCESS;
}

static int make_file(struct report_request *r)
{
	const char *store = r->query.stores[0], *job = r->query.job;
	struct hr_report_page page = {0};
	char *name = r->output != NULL ? strdup(r->output) : default_name(store);
	int status = name != NULL ? make_page(&r->query, &page) : EXIT_FAILURE;

	if (status == EXIT_SUCCESS && r->json)
		hr_report_page_json(&page, stdout);
	else if (status == EXIT_SUCCESS && r->output != NULL && strcmp(r->output, "-") == 0)
		hr_report_page_write(&page, job != NULL ? job : store, false, stdout);
	else if (status == EXIT_SUCCESS)
		status = write_page(&page, job != NULL ? job : store, name);
	hr_report_page_done(&page);
	free(name);
	return status;
}

static int run_report(struct report_request *r)
{
	const struct hr_query_request *q = &r->query;
	int status = hr_operands_newest(&r->query);

	if (status != 0)
		return status;
	if (!r->serve)
		return make_file(r);
	if (q->n_stores == 1)
		return hr_report_serve(q->stores[0], q->job, (unsigned)r->port, 1);
	hr_report("--serve shows one store: headrace report --serve STORE");
	return HR_EXIT_USAGE;
}

int hr_report_main(int argc, char **argv)
{
	struct report_request r = {.query.stores =
				       calloc((size_t)argc + 1, sizeof(*r.query.stores))};
	int status = EXIT_FAILURE;

	if (r.query.stores != NULL &&
	    hr_arguments(argc, argv, hr_report_option_table, take_argument, &r, &status))
		status = run_report(&r);
	hr_request_done(&r.query);
	return status;
}
