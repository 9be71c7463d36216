/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace report: one HTML file that shows what a job waited for. `headrace query` answers one
 * statement for it, from stores or from a collector.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/stores.h"
#include "cli/report/report_page.h"
#include "cli/report/serve.h"
#include "query/ask.h"
#include "common/outfile.h"
#include "common/text.h"

enum { OPT_JOB = 256, OPT_JSON, OPT_SERVE, OPT_PORT };

const struct hr_option hr_report_option_table[] = {
    {"job", OPT_JOB, "JOB", "show this job (default: the newest one)", HR_VALUES_OTHER},
    {"output", 'o', "FILE", "write the page to FILE (default: STORE.html in this folder)", NULL},
    {"serve", OPT_SERVE, NULL, "show the page in a browser of this machine, instead of a file",
     NULL},
    {"port", OPT_PORT, "PORT", "the port of --serve (default: any)", HR_VALUES_OTHER},
    {"json", OPT_JSON, NULL, "print the content of the page as JSON, and write no file", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

struct report_request {
	const char *job;    /* NULL: the newest */
	const char *output; /* NULL: named after the store */
	bool json, serve;
	unsigned port; /* 0: any */
	char **stores;
	int n_stores;
	char *newest; /* the store that was taken because none was given; NULL: none */
};

static bool set_port(struct report_request *r, const char *value)
{
	char *end;
	unsigned long port = strtoul(value, &end, 10);

	r->port = (unsigned)port;
	if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && port < 65536)
		return true;
	hr_option_wrong("port", "a port, 0 to 65535", value);
	return false;
}

/* 0: continue; 1: *ret_status is the result. */
static int take_arguments(struct hr_options *o, struct report_request *r, int *ret_status)
{
	*ret_status = HR_EXIT_USAGE;
	for (;;) {
		switch (hr_option_next(o)) {
		case HR_OPTION_END:
			if (o->next < o->argc) {
				r->stores[r->n_stores++] = o->argv[o->next++];
				continue;
			}
			if (r->n_stores == 0 && (r->newest = hr_stores_take_newest()) != NULL)
				r->stores[r->n_stores++] = r->newest;
			*ret_status = HR_ASK_NO_STORE;
			return r->n_stores > 0 ? 0 : 1;
		case OPT_JOB:
			r->job = o->value;
			break;
		case 'o':
			r->output = o->value;
			break;
		case OPT_JSON:
			r->json = true;
			break;
		case OPT_SERVE:
			r->serve = true;
			break;
		case OPT_PORT:
			if (!set_port(r, o->value))
				return 1;
			break;
		case 'h':
			*ret_status = hr_command_help("report");
			return 1;
		default:
			return 1;
		}
	}
}

/* Reads the whole file into *ret (malloc'ed). 0 or -errno. */
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
	if (r == 0)
		*ret_n = fread(*ret, 1, (size_t)st.st_size, from);
	fclose(from);
	return r;
}

/* `headrace query` writes its answer to `file`. Returns its exit status. */
static int ask(const struct report_request *r, char *sql, char *file)
{
	char **words = calloc((size_t)r->n_stores + 9, sizeof(*words));
	int n = 0, status;

	if (words == NULL)
		return EXIT_FAILURE;
	words[n++] = (char *)"query";
	if (r->job != NULL) {
		words[n++] = (char *)"--job";
		words[n++] = (char *)r->job;
	}
	words[n++] = (char *)"--format";
	words[n++] = (char *)"csv";
	words[n++] = (char *)"-o";
	words[n++] = file;
	for (int i = 0; i < r->n_stores; i++)
		words[n++] = r->stores[i];
	words[n++] = sql;
	status = hr_query_main(n, words);
	free(words);
	return status;
}

/* Makes the page's content in a private folder for the answer. Returns an exit status. */
static int make_page(const struct report_request *r, struct hr_report_page *ret)
{
	const char *tmp = hr_getenv("TMPDIR");
	char *folder = NULL, *file = NULL, *sql = hr_report_page_sql(), *csv = NULL;
	int status = EXIT_FAILURE, err = -ENOMEM;
	size_t n = 0;

	if (sql != NULL &&
	    asprintf(&folder, "%s/headrace-report-XXXXXX", tmp != NULL ? tmp : "/tmp") > 0 &&
	    asprintf(&file, "%s/headrace-report-XXXXXX/answer", tmp != NULL ? tmp : "/tmp") > 0)
		err = mkdtemp(folder) != NULL ? 0 : -errno;
	if (err == 0) {
		memcpy(file, folder, strlen(folder));
		status = ask(r, sql, file);
		if (status == EXIT_SUCCESS && (err = read_file(file, &csv, &n)) == 0)
			err = hr_report_page_init(ret, csv, n);
		unlink(file);
		rmdir(folder);
	}
	if (err < 0) {
		hr_report("cannot make the report: %s" HR_HINT
			  "set TMPDIR to a folder that you can write to",
			  strerrordesc_np(-err));
		status = EXIT_FAILURE;
	}
	free(csv);
	free(folder);
	free(file);
	free(sql);
	return status;
}

/* "STORE.html" for the last part of STORE (malloc'ed). */
static char *default_name(const char *store)
{
	size_t n = strlen(store);
	const char *name;
	char *text;

	if (strstr(store, "://") != NULL)
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
	int err = hr_outfile_init(&file, path);
	FILE *to = err == 0 ? fopen(hr_outfile_name(&file), "we") : NULL;
	long bytes = 0;

	if (err == 0 && to == NULL)
		err = -errno;
	if (to != NULL) {
		hr_report_page_write(page, title, false, to);
		bytes = ftell(to);
		if (ferror(to) || bytes < 0)
			err = -EIO;
		if (fclose(to) != 0)
			err = -errno;
		if (err == 0)
			err = hr_outfile_end(&file, true);
		else
			hr_outfile_end(&file, false);
	}
	hr_outfile_done(&file);
	if (err < 0) {
		hr_report("cannot write %s: %s", path, strerrordesc_np(-err));
		return EXIT_FAILURE;
	}
	hr_report("wrote %s (%s): open it in a browser", path,
		  hr_text_size(bytes > 0 ? (uint64_t)bytes : 0).s);
	return EXIT_SUCCESS;
}

static int make_file(const struct report_request *r)
{
	struct hr_report_page page = {0};
	char *name = r->output != NULL ? strdup(r->output) : default_name(r->stores[0]);
	int status = name != NULL ? make_page(r, &page) : EXIT_FAILURE;

	if (status == EXIT_SUCCESS && r->json)
		hr_report_page_json(&page, stdout);
	else if (status == EXIT_SUCCESS)
		status = write_page(&page, r->job != NULL ? r->job : r->stores[0], name);
	hr_report_page_done(&page);
	free(name);
	return status;
}

int hr_report_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_report_option_table, .argv = argv, .argc = argc, .next = 1};
	struct report_request r = {.stores = calloc((size_t)argc + 1, sizeof(*r.stores))};
	int status = EXIT_FAILURE;

	if (r.stores != NULL && take_arguments(&o, &r, &status) == 0) {
		if (r.serve && r.n_stores > 1) {
			hr_report("--serve shows one store: headrace report --serve STORE");
			status = HR_EXIT_USAGE;
		} else {
			status = r.serve ? hr_report_serve(r.stores[0], r.job, r.port, 1)
					 : make_file(&r);
		}
	}
	free(r.newest);
	free(r.stores);
	return status;
}
