/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace --complete COMMAND [WORD...] CURRENT: prints the operands that begin with CURRENT, one
 * per line. The completion scripts call it, so it prints no errors and ends within milliseconds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/service/runs.h"
#include "cli/service/service_link.h"
#include "cli/stores.h"
#include "query/named.h"
#include "common/text.h"

#define ANSWER_MS 1000
#define SETTINGS                                                                                   \
	"workers= prefetch= batch= persistent cores= io= mount: cached= reads= checkpoint=async"

static const char *current;

/* Prints `word` if it begins with the typed word. Shells cannot read words with line ends. */
static void offer(const char *word)
{
	if (strncmp(word, current, strlen(current)) == 0 && strchr(word, '\n') == NULL)
		hr_text_print(stdout, "%s\n", word);
}

static void offer_list(const char *words)
{
	char *list = strdup(words), *at = list, *word;

	while ((word = strsep(&at, " |")) != NULL)
		if (word[0] != '\0')
			offer(word);
	free(list);
}

/*
 * Offers the stores of the folder that the typed path names, such as "runs/" in "runs/job". The
 * offered paths begin as the user typed them.
 */
static void offer_stores(void)
{
	const char *slash = strrchr(current, '/');
	char *folder = slash != NULL ? strndup(current, (size_t)(slash - current) + 1) : NULL;
	struct hr_found_stores found = {0};

	hr_stores_find(folder != NULL ? folder : ".", false, &found);
	for (size_t i = 0; i < found.n; i++)
		offer(found.list[i].path +
		      (folder == NULL && strlen(found.list[i].path) > 1 ? 2 : 0));
	hr_stores_done(&found);
	free(folder);
}

/* Calls `take` with the name and the type of each argument of a query. */
static void each_argument(const struct hr_named *q,
			  void (*take)(const char *name, const char *type))
{
	struct hr_named_args args;

	if (hr_named_args_declare(q, &args) == 0)
		for (size_t i = 0; i < args.n; i++)
			take(args.list[i].name, args.types[i]);
	hr_named_args_done(&args);
}

/* Offers "class=". If the user has typed this, offers "class=open", "class=read"... */
static void offer_argument(const char *name, const char *type)
{
	char word[256];
	size_t n = (size_t)snprintf(word, sizeof(word), "%s=", name);

	if (strncmp(current, word, n) != 0) {
		offer(word);
		return;
	}
	for (const char *at = type; strchr(type, '|') != NULL && *at != '\0'; at += *at == '|') {
		size_t length = strcspn(at, "|");

		snprintf(word + n, sizeof(word) - n, "%.*s", (int)length, at);
		offer(word);
		at += length;
	}
}

static void offer_job(const Headrace__JobStatus *j)
{
	if (j->uid == geteuid() || geteuid() == 0)
		offer(j->id);
}

static void take_run(void *arg, const char *socket, Headrace__Control *m)
{
	(void)arg;
	(void)socket;
	offer_job(m->job_status);
}

static void take_job(void *arg, Headrace__Control *m)
{
	(void)arg;
	if (m->kind_case == HR_CONTROL(JOB_STATUS))
		offer_job(m->job_status);
}

static void offer_service_jobs(void)
{
	hr_service_status(hr_service_socket(NULL), ANSWER_MS, take_job, NULL);
}

static void offer_query(char **words, int n)
{
	const struct hr_named *q = NULL;

	for (int i = 0; i < n && q == NULL; i++)
		q = hr_named_find(words[i]);
	if (q != NULL) {
		each_argument(q, offer_argument);
		return;
	}
	for (q = hr_named_list; q->name != NULL; q++)
		offer(q->name);
	offer_stores();
}

void hr_complete(int argc, char **argv)
{
	const char *command = argv[0];

	current = argv[argc - 1];
	if (strcmp(command, "query") == 0) {
		offer_query(argv + 1, argc - 2);
	} else if (strcmp(command, "top") == 0) {
		offer_service_jobs();
		hr_runs_request_status(take_run, NULL);
	} else if (strcmp(command, "level") == 0) {
		offer_service_jobs();
		offer_list("counters trace");
	} else if (strcmp(command, "job") == 0) {
		offer_list("begin end list");
	} else if (strcmp(command, "run") != 0 && strcmp(command, "status") != 0) {
		if (strcmp(command, "what-if") == 0)
			offer_list(SETTINGS);
		offer_stores();
	}
}
