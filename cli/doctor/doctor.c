/* SPDX-License-Identifier: Apache-2.0 */
/* headrace doctor - what works here, and how to fix the rest. Exit status 1: a check failed. */
#include "cli/doctor/doctor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run/environment.h"
#include "common/text.h"

struct doctor_check {
	const char *name;
	void (*run)(const struct hr_doctor *d, struct hr_check *c);
	const char *what;
};

static const struct doctor_check checks[] = {
#define HR_CHECK(name, function, what) {#name, function, what},
#include "cli/doctor/doctor_checks.def"
#undef HR_CHECK
};
#define CHECKS (sizeof(checks) / sizeof(checks[0]))

static const struct collector_check {
	const char *name;
	void (*run)(const struct hr_reach *p, struct hr_check *c);
	const char *what;
} collector_checks[] = {
#define HR_CHECK(name, function, what) {#name, function, what},
#include "cli/doctor/doctor_collector.def"
#undef HR_CHECK
};
#define COLLECTOR_CHECKS (sizeof(collector_checks) / sizeof(collector_checks[0]))

struct report {
	struct row {
		const char *name, *what;
		char collector[HR_ADDRESS_HOST_BYTES + 32]; /* "": a check of this machine */
		struct hr_check result;
	} rows[CHECKS + COLLECTOR_CHECKS * HR_ADDRESSES_MAX];
	size_t n;
	bool failed;
};

static const char *const health_names[] = {"ok", "warn", "fail"};

const struct hr_option hr_doctor_option_table[] = {
    HR_OPTIONS_FORMAT("text json"),
    HR_OPTIONS_END,
};

static void print_text(const struct report *report)
{
	for (const struct row *row = report->rows; row < report->rows + report->n; row++) {
		hr_text_print(stdout, "%-4s  %-10s  %s\n", health_names[row->result.health],
			      row->name, row->result.found);
		if (row->result.fix[0] != '\0')
			hr_text_print(stdout, "%18s%s\n", "-> ", row->result.fix);
	}
}

static void print_json(const struct report *report)
{
	struct hr_json j;

	hr_json_init(&j, stdout);
	hr_json_document(&j, "headrace-doctor/1");
	hr_json_bool(&j, "ok", !report->failed);
	for (size_t i = 0; hr_json_row(&j, "checks", i, report->n); i++) {
		const struct row *row = &report->rows[i];
		const struct hr_check *c = &row->result;

		hr_json_string(&j, "name", row->name);
		hr_json_string(&j, "collector", hr_text_or_null(row->collector));
		hr_json_string(&j, "what", row->what);
		hr_json_string(&j, "health", health_names[c->health]);
		hr_json_string(&j, "found", c->found);
		hr_json_string(&j, "fix", hr_text_or_null(c->fix));
	}
	hr_json_end(&j);
}

void hr_doctor_topics(hr_topic *topic)
{
	for (size_t i = 0; i < CHECKS; i++)
		topic(checks[i].name, checks[i].what, strlen(checks[i].what));
	for (size_t i = 0; i < COLLECTOR_CHECKS; i++)
		topic(collector_checks[i].name, collector_checks[i].what,
		      strlen(collector_checks[i].what));
}

/* Adds a row, to be filled in before the next call. */
static struct row *doctor_add(struct report *report, const char *name, const char *what)
{
	struct row *row = &report->rows[report->n];

	*row = (struct row){.name = name, .what = what};
	return row;
}

/* Keeps the row if the check has set `found`. Otherwise, the check does not apply here. */
static void doctor_keep(struct report *report, const struct row *row)
{
	report->n += row->result.found[0] != '\0';
	report->failed |= row->result.health == HR_HEALTH_FAIL;
}

static void check_machine(const struct hr_doctor *d, struct report *report)
{
	for (const struct doctor_check *check = checks; check < checks + CHECKS; check++) {
		struct row *row = doctor_add(report, check->name, check->what);

		check->run(d, &row->result);
		doctor_keep(report, row);
	}
}

static void check_collector(const struct hr_address *to, struct report *report)
{
	struct hr_reach reach;

	hr_reach_run(to, &reach);
	for (size_t i = 0; i < COLLECTOR_CHECKS; i++) {
		struct row *row =
		    doctor_add(report, collector_checks[i].name, collector_checks[i].what);

		snprintf(row->collector, sizeof(row->collector), "%s", reach.collector.shown);
		collector_checks[i].run(&reach, &row->result);
		doctor_keep(report, row);
	}
	hr_collector_done(&reach.collector);
}

static int diagnose(const char *store, const struct hr_address *to, size_t n, bool json)
{
	static struct report report; /* too large for the stack */
	char *library = hr_library_find(), *headraced = hr_part_find("headraced");
	char *python = hr_part_find("python/startup");
	struct hr_doctor doctor = {.store = store,
				   .no_store = n > 0,
				   .library = library,
				   .headraced = headraced,
				   .python = python};

	check_machine(&doctor, &report);
	for (size_t i = 0; i < n; i++)
		check_collector(&to[i], &report);
	if (json)
		print_json(&report);
	else
		print_text(&report);
	free(library);
	free(headraced);
	free(python);
	return report.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int hr_doctor_main(int argc, char **argv)
{
	struct hr_options options = {
	    .table = hr_doctor_option_table, .argv = argv, .argc = argc, .next = 1};
	struct hr_address to[HR_ADDRESSES_MAX];
	const char *operand;
	size_t n = 0;
	bool json = false;
	int id;

	while ((id = hr_option_next(&options)) != HR_OPTION_END) {
		if (id == HR_OPTION_BAD)
			return HR_EXIT_USAGE;
		if (id == 'h')
			return hr_command_help("doctor");
		json = hr_option_is_json(options.value);
	}
	if (argc - options.next > 1) {
		hr_report("too many operands: at most one STORE" HR_HINT "headrace doctor "
			  "[--json] [STORE|COLLECTOR,...]");
		return HR_EXIT_USAGE;
	}
	operand = options.next < argc ? argv[options.next] : NULL;
	if (operand != NULL && hr_address_meant(operand) &&
	    !hr_collector_parse("", operand, to, HR_ADDRESSES_MAX, &n))
		return HR_EXIT_USAGE;
	return diagnose(n > 0 ? NULL : operand, to, n, json);
}
