/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace doctor - what works here, and how to fix what does not. Exit status 1 when something
 * fails.
 */
#include "cli/doctor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "common/text.h"

static const struct {
	const char *name;
	void (*run)(const struct hr_doctor *d, struct hr_check *c);
	const char *what;
} checks[] = {
#define HR_CHECK(name, function, what) {#name, function, what},
#include "cli/doctor_checks.def"
#undef HR_CHECK
};
#define CHECKS (sizeof(checks) / sizeof(checks[0]))

static const char *const health_names[] = {"ok", "warn", "fail"};

const struct hr_option hr_doctor_option_table[] = {
    {"json", 'j', NULL, "as JSON", NULL},
    {"help", 'h', NULL, "this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

void hr_check_set(struct hr_check *c, enum hr_health health, const char *fix, const char *format,
		  ...)
{
	va_list args;

	va_start(args, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is one line above
	vsnprintf(c->found, sizeof(c->found), format, args);
	va_end(args);
	snprintf(c->fix, sizeof(c->fix), "%s", fix != NULL ? fix : "");
	c->health = health;
}

static void print_text(const struct hr_check *results)
{
	for (size_t i = 0; i < CHECKS; i++) {
		printf("%-4s  %-10s  %s\n", health_names[results[i].health], checks[i].name,
		       results[i].found);
		if (results[i].fix[0] != '\0')
			printf("%18s%s\n", "-> ", results[i].fix);
	}
}

static void print_json(const struct hr_check *results, bool failed)
{
	struct hr_json j;

	hr_json_init(&j, stdout);
	hr_json_object(&j, NULL);
	hr_json_bool(&j, "ok", !failed);
	hr_json_array(&j, "checks");
	for (size_t i = 0; i < CHECKS; i++) {
		hr_json_object(&j, NULL);
		hr_json_string(&j, "name", checks[i].name);
		hr_json_string(&j, "what", checks[i].what);
		hr_json_string(&j, "health", health_names[results[i].health]);
		hr_json_string(&j, "found", results[i].found);
		hr_json_string(&j, "fix", results[i].fix[0] != '\0' ? results[i].fix : NULL);
		hr_json_end(&j);
	}
	hr_json_end(&j);
	hr_json_end(&j);
}

void hr_doctor_topics(hr_topic *topic)
{
	for (size_t i = 0; i < CHECKS; i++)
		topic(checks[i].name, checks[i].what, strlen(checks[i].what));
}

static int diagnose(const char *store, bool json)
{
	char *library = hr_part_find("libheadrace.so"), *headraced = hr_part_find("headraced");
	struct hr_doctor doctor = {.store = store, .library = library, .headraced = headraced};
	struct hr_check results[CHECKS] = {0};
	bool failed = false;

	for (size_t i = 0; i < CHECKS; i++) {
		checks[i].run(&doctor, &results[i]);
		failed = failed || results[i].health == HR_HEALTH_FAIL;
	}
	if (json)
		print_json(results, failed);
	else
		print_text(results);
	free(library);
	free(headraced);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int hr_doctor_main(int argc, char **argv)
{
	struct hr_options options = {
	    .table = hr_doctor_option_table, .argv = argv, .argc = argc, .next = 1};
	bool json = false;
	int id;

	while ((id = hr_option_next(&options)) != HR_OPTION_END) {
		if (id == HR_OPTION_BAD)
			return HR_EXIT_USAGE;
		if (id == 'h')
			return hr_command_help("doctor");
		json = true;
	}
	if (argc - options.next > 1) {
		hr_say("one STORE at most: headrace doctor [--json] [STORE]");
		return HR_EXIT_USAGE;
	}
	return diagnose(options.next < argc ? argv[options.next] : NULL, json);
}
