/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_options.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/collector.h"
#include "cli/commands.h"
#include "common/level.h"
#include "common/text.h"
#include "common/ranks.h"
#include "proto/abi.h"

enum {
	OPT_JOB = 256,
	OPT_LABEL,
	OPT_LEVEL,
	OPT_EXCLUDE,
	OPT_INCLUDE,
	OPT_RANKS,
	OPT_LOCAL_RANKS,
	OPT_MAX_SIZE,
	OPT_LINGER,
	OPT_DRAIN,
	OPT_SUMMARY,
	OPT_REPORT,
	OPT_FUNCTIONS,
	OPT_ATTACH,
};

#define LEVELS "trace counters"
#define A_TIME "a time such as 5s, 500ms or 0"

#define FLAG(member) HR_OPTION_FLAG(struct hr_run_options, member)

const struct hr_option hr_run_option_table[] = {
    {"store", 'o', "STORE", "folder, or collectors: tcp://HOST[:PORT],...", NULL},
    {"job", OPT_JOB, "NAME", "job id (default: the scheduler's, or the store's name)",
     HR_VALUES_OTHER},
    {"label", OPT_LABEL, "K=V", "store the label K=V with the job; repeatable", HR_VALUES_OTHER},
    {"level", OPT_LEVEL, "LEVEL", "trace: every operation (default); counters: totals only",
     LEVELS},
    {"exclude", OPT_EXCLUDE, "PATHS", "skip these prefixes and globs, comma-separated; repeatable",
     NULL},
    {"include", OPT_INCLUDE, "PATHS", "record only these prefixes and globs; repeatable", NULL},
    {"ranks", OPT_RANKS, "LIST", "record only these ranks, for example 0-47,64", HR_VALUES_OTHER},
    {"local-ranks", OPT_LOCAL_RANKS, "LIST", "record only these local ranks of each node",
     HR_VALUES_OTHER},
    {"max-size", OPT_MAX_SIZE, "SIZE",
     "after SIZE per node, record only totals (default: no limit)", HR_VALUES_OTHER},
    {"linger", OPT_LINGER, "TIME", "wait at most TIME for processes that outlive CMD (default: 5s)",
     HR_VALUES_OTHER},
    {"drain", OPT_DRAIN, "TIME", "wait at most TIME until a collector has all data (default: 30s)",
     HR_VALUES_OTHER},
    {"summary", OPT_SUMMARY, "FILE", "also write the summary to FILE, as JSON", NULL},
    {"report", OPT_REPORT, "FILE", "also write a page with pictures (`headrace report`) to FILE",
     NULL},
    {"probes", FLAG(probes), NULL, "record by BPF what the preload library cannot see (needs root)",
     NULL},
    {"functions", OPT_FUNCTIONS, "[=GLOBS]",
     "record your own Python functions: all, or those that match", HR_VALUES_OTHER},
    {"no-stacks", FLAG(no_stacks), NULL, "do not sample the lines of Python code in fetches", NULL},
    {"best-effort", FLAG(best_effort), NULL, "run CMD even if it cannot be recorded", NULL},
    {"idle", FLAG(idle), NULL, "record nothing until CMD calls headrace.record()", NULL},
    {"attach", OPT_ATTACH, NULL, "without CMD: how headrace.record() records its process", NULL},
    {"full-cmdline", FLAG(full_cmdline), NULL,
     "store all arguments of commands, not only program and script", NULL},
    HR_OPTIONS_END,
};

static int add_to(const char **list, unsigned max, const char *value, const char *option)
{
	for (unsigned i = 0; i < max; i++) {
		if (list[i] == NULL) {
			list[i] = value;
			return 0;
		}
	}
	hr_report("too many %s: at most %u", option, max);
	return -1;
}

static int set_level(struct hr_run_options *o, const char *value)
{
	int level = hr_level_parse(value);

	if (level < 0)
		return hr_option_wrong_word("level", LEVELS, value);
	o->level = level;
	return 0;
}

static int set_store(struct hr_run_options *o, const char *value)
{
	struct hr_address to[HR_ADDRESSES_MAX];
	bool collectors = hr_address_meant(value);
	size_t n;

	if (value[0] == '\0')
		return hr_option_wrong("store", "a folder or the address of a collector", value);
	if (collectors && !hr_collector_parse("--store ", value, to, HR_ADDRESSES_MAX, &n))
		return -1;
	o->store = collectors ? NULL : value;
	o->collectors = collectors ? value : NULL;
	return 0;
}

static int set_option(struct hr_run_options *o, int id, const char *value)
{
	switch (id) {
	case 'o':
		return set_store(o, value);
	case OPT_JOB:
		o->job = value;
		return value[0] != '\0' && strlen(value) < 200
			   ? 0
			   : hr_option_wrong("job", "1 to 199 characters", value);
	case OPT_LABEL:
		if (strchr(value, '=') == NULL || value[0] == '=')
			return hr_option_wrong("label", "K=V", value);
		return add_to(o->labels, HR_PRIVATE_LABELS, value, "labels");
	case OPT_LEVEL:
		return set_level(o, value);
	case OPT_EXCLUDE:
		return add_to(o->exclude, HR_RUN_FILTERS, value, "--exclude");
	case OPT_INCLUDE:
		return add_to(o->include, HR_RUN_FILTERS, value, "--include");
	case OPT_RANKS:
		o->ranks = value;
		return hr_ranks_valid(value)
			   ? 0
			   : hr_option_wrong("ranks", "ranks and ranges such as 0-47,64", value);
	case OPT_LOCAL_RANKS:
		o->local_ranks = value;
		return hr_ranks_valid(value)
			   ? 0
			   : hr_option_wrong("local-ranks", "ranks and ranges such as 0-3", value);
	case OPT_MAX_SIZE:
		return hr_text_parse_size(value, &o->max_bytes) == 0 && o->max_bytes > 0
			   ? 0
			   : hr_option_wrong("max-size", "a size such as 10GiB or 500M", value);
	case OPT_LINGER:
		return hr_option_time("linger", A_TIME, value, &o->linger_ns);
	case OPT_DRAIN:
		return hr_option_time("drain", A_TIME, value, &o->drain_ns);
	case OPT_SUMMARY:
		o->summary = value;
		return value[0] != '\0' && strcmp(value, "-") != 0
			   ? 0
			   : hr_option_wrong("summary",
					     "a file; standard output is CMD's (for a file named "
					     "`-`, write ./-)",
					     value);
	case OPT_REPORT:
		o->report = value;
		return value[0] != '\0' ? 0 : hr_option_wrong("report", "a file", value);
	case OPT_FUNCTIONS:
		o->functions = value != NULL ? value : "*";
		return o->functions[0] != '\0'
			   ? 0
			   : hr_option_wrong("functions", "names such as train.*", value);
	default:
		o->attach = true;
		o->linger_ns = 0;
		return 0;
	}
}

static int check_together(const struct hr_run_options *o)
{
	if (o->attach && (o->idle || o->command[0] != NULL)) {
		hr_report("--attach takes neither CMD nor --idle" HR_HINT
			  "it is for headrace.record(); `headrace run -- CMD` records CMD");
		return -1;
	}
	if (o->idle && (o->store != NULL || o->collectors != NULL || o->job != NULL)) {
		hr_report("--idle records nothing, so it takes neither --store nor --job" HR_HINT
			  "headrace.record(\"STORE\") in CMD names the store");
		return -1;
	}
	if (!o->attach && o->command[0] == NULL) {
		hr_report("no command given: headrace run [OPTION...] -- CMD [ARG...]");
		return -1;
	}
	return 0;
}

int hr_run_options_parse(int argc, char **argv, struct hr_run_options *ret)
{
	struct hr_options options = {
	    .table = hr_run_option_table, .argv = argv, .argc = argc, .next = 1};
	int id, r = 0;

	*ret = (struct hr_run_options){.level = HR_LEVEL_TRACE,
				       .linger_ns = UINT64_C(5000000000),
				       .drain_ns = UINT64_C(30000000000)};
	while (r == 0 && (id = hr_option_next(&options)) != HR_OPTION_END) {
		if (id == 'h') {
			hr_command_help("run");
			return 1;
		}
		if (id == HR_OPTION_BAD)
			r = -1;
		else if (!hr_option_store(ret, id, options.value))
			r = set_option(ret, id, options.value);
	}
	ret->command = argv + options.next;
	return r == 0 ? check_together(ret) : r;
}
