/* SPDX-License-Identifier: Apache-2.0 */
/* headrace import: makes a job of a store from the traces of another tool. */
#include "import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "common/now.h"
#include "common/text.h"
#include "net/address.h"
#include "store/store.h"

#define PROBLEMS_SHOWN 20u
#define RANKS_MOST     (1u << 24)
#define THREADS_MOST   256u

enum { OPT_INTO = 256, OPT_RANK, OPT_RANKS, OPT_THREADS };

struct import_arguments {
	struct hr_import_options options;
	const char **files;
	size_t n;
};

#define TEXT(member) HR_OPTION_TEXT(struct import_arguments, member)

const struct hr_option hr_import_option_table[] = {
    {"output", 'o', "STORE", "the store to create, or an existing one, which gets one more job",
     NULL},
    {"into", OPT_INTO, "STORE",
     "adds the regions of the traces to a job that headrace recorded into this store", NULL},
    {"job", TEXT(options.job), "JOB",
     "id of the job (default: the name of the file, or of the folder of all files; with --into: "
     "the last job)",
     HR_VALUES_OTHER},
    {"ranks", OPT_RANKS, "N",
     "number of ranks that the job had; answers then report the missing ones", HR_VALUES_OTHER},
    {"rank", OPT_RANK, "N", "with --into: the rank of traces that name no rank and no pid",
     HR_VALUES_OTHER},
    {"node", TEXT(options.node), "NAME", "node of files that name no host (default: unknown)",
     HR_VALUES_OTHER},
    {"threads", OPT_THREADS, "N", "number of files to read at a time (default: number of CPUs)",
     HR_VALUES_OTHER},
    HR_OPTIONS_END,
};

static atomic_bool stopped;

static void stop_set(int signal_number)
{
	(void)signal_number;
	atomic_store(&stopped, true);
}

/* The first signal ends the import, which removes its streams; the second one kills. */
static void signals_catch(void)
{
	struct sigaction action = {.sa_handler = stop_set, .sa_flags = SA_RESETHAND | SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int take_argument(void *self, int id, const char *value)
{
	struct import_arguments *a = self;
	struct hr_import_options *to = &a->options;
	uint64_t n = 0;
	int r = 0;

	switch (id) {
	case 'o':
	case OPT_INTO:
		if (to->store) {
			hr_report("two stores: use --output or --into" HR_HINT
				  "headrace import --help");
			return -1;
		}
		to->store = value;
		to->into = id == OPT_INTO;
		break;
	case OPT_RANK:
		r = hr_option_number("rank", "a number", value, 0, RANKS_MOST - 1, &n);
		to->rank_plus1 = (uint32_t)n + 1;
		break;
	case OPT_RANKS:
		r = hr_option_number("ranks", "a number above 0", value, 1, RANKS_MOST, &n);
		to->ranks = (uint32_t)n;
		break;
	case OPT_THREADS:
		r = hr_option_number("threads", "a number above 0", value, 1, THREADS_MOST, &n);
		to->threads = (unsigned)n;
		break;
	default: /* an operand */
		a->files[a->n++] = value;
	}
	return r;
}

static void problems_print(const struct hr_import_result *result)
{
	for (size_t i = 0; i < result->n_problems && i < PROBLEMS_SHOWN; i++)
		hr_report("%s", result->problems[i]);
	if (result->n_problems > PROBLEMS_SHOWN)
		hr_report("and %zu more problems", result->n_problems - PROBLEMS_SHOWN);
}

static void result_print(const struct hr_import_options *o, const struct hr_import_result *r,
			 uint64_t took_ns)
{
	char *store = hr_text_quote(o->store), *job = hr_text_quote(r->job);

	for (size_t i = 0; i < r->n_clocks; i++)
		hr_report("%s", r->clocks[i]);
	if (o->into)
		hr_report("added to job %s in %s: %s file%s, %s regions; read %s in %s", r->job,
			  o->store, hr_text_count(r->files).s, r->files == 1 ? "" : "s",
			  hr_text_count(r->regions).s, hr_text_size(r->input_bytes).s,
			  hr_text_duration(took_ns).s);
	else
		hr_report("imported job %s into %s: %s file%s, %s operations, %s regions, %s of "
			  "data moved; read %s in %s",
			  r->job, o->store, hr_text_count(r->files).s, r->files == 1 ? "" : "s",
			  hr_text_count(r->operations).s, hr_text_count(r->regions).s,
			  hr_text_size(r->moved_bytes).s, hr_text_size(r->input_bytes).s,
			  hr_text_duration(took_ns).s);
	hr_report("next: headrace %s %s --job %s %s", o->into ? "export" : "query",
		  store ? store : o->store, job ? job : r->job, o->into ? "--to perfetto" : "jobs");
	free(store);
	free(job);
}

static void failure_print(const struct hr_import_options *o, int r, const char *error)
{
	char holder[256];

	if (r == -EBUSY && hr_store_holder(o->store, holder, sizeof(holder)))
		hr_report("cannot import: a collector holds the store %s: %s" HR_HINT
			  "choose another store with -o",
			  o->store, holder);
	else if (r == -EEXIST)
		hr_report("cannot import: %s" HR_HINT "choose another id with --job", error);
	else if (r == -ECANCELED)
		hr_report("stopped: nothing was imported");
	else
		hr_report("cannot import: %s", error ? error : strerrordesc_np(-r));
}

static int run_import(const struct hr_import_options *o, const char *const *files, size_t n)
{
	uint64_t began_ns = hr_now_ns(CLOCK_MONOTONIC);
	struct hr_import_result result;
	char *error;
	int r;

	signals_catch();
	r = hr_import(o, files, n, &result, &error);
	problems_print(&result);
	if (r < 0)
		failure_print(o, r, error);
	else
		result_print(o, &result, hr_now_ns(CLOCK_MONOTONIC) - began_ns);
	if (r == 0 && result.bad_files > 0) {
		hr_report("more than half of %" PRIu64 " of the files could not be read",
			  result.bad_files);
		r = -EBADMSG;
	}
	hr_import_done(&result);
	free(error);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Returns an exit status. */
static int check_and_run(const struct import_arguments *a)
{
	const struct hr_import_options *o = &a->options;

	if (!o->store || a->n == 0)
		hr_report("%s" HR_HINT "headrace import FILE... -o STORE",
			  a->n == 0 ? "no file to import" : "no store to write to");
	else if (hr_address_meant(o->store))
		hr_report("headrace import writes a folder of this machine, not to a collector: %s",
			  o->store);
	else if (o->rank_plus1 > 0 && !o->into)
		hr_report("--rank needs --into" HR_HINT "headrace import --help");
	else
		return run_import(o, a->files, a->n);
	return HR_EXIT_USAGE;
}

int hr_import_main(int argc, char **argv)
{
	struct import_arguments a = {.options.stop = &stopped,
				     .files = calloc((size_t)argc + 1, sizeof(*a.files))};
	int status = EXIT_FAILURE;

	if (a.files && hr_arguments(argc, argv, hr_import_option_table, take_argument, &a, &status))
		status = check_and_run(&a);
	free(a.files);
	return status;
}
