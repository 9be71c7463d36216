/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_summary_print.c - the text of summaries that the tests fill in: waits, hints, losses,
 * names of ranks and workers
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/summary/summary.h"
#include "cli/summary/summary_loops.h"
#include "common/loss.h"

static char *print(const struct hr_summary *s)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	hr_summary_print(s, out);
	fclose(out);
	return text;
}

static void test_waits_of_ranks(void **state)
{
	struct hr_summary_who who[] = {
	    {.rank = 0, .worker = -1, .loop = {1, 1000000000, 2, 2000000000, 0, 0, 4000000000}},
	    {.rank = 1, .worker = -1, .loop = {1, 2000000000, 2, 2000000000, 0, 0, 4000000000}}};
	struct hr_summary s = {
	    .who = who, .n_who = 2, .finding = {.meaning = (char[]){"waits for batches"}}};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	hr_loops_print(&s, "s", out);
	fclose(out);
	assert_string_equal(text,
			    "  waited    25.0 to 50.0 % of the training loop for data (3.00 s, "
			    "summed over ranks), highest in rank 1; 4 steps of 1.00 s\n");
	free(text);
}

/* Commands in hints work when pasted: if the job is not named like its store, they have --job. */
static void test_hints(void **state)
{
	static const char *const jobs[][2] = {{"j 1", "/a/s --job 'j 1'"}, {"s", "/a/s"}};
	struct hr_summary_who who = {.rank = -1, .worker = -1, .data.ops = 1};

	(void)state;
	who.loop.waits = 1;
	for (size_t i = 0; i < 2; i++) {
		struct hr_summary s = {.job = strdup(jobs[i][0]),
				       .store = (char[]){"/a/s"},
				       .state = (char[]){"ended"},
				       .run_state = (char[]){"ended"},
				       .command = -1,
				       .cover = {.count = 2, .missing_count = 1},
				       .who = &who,
				       .n_who = 1};
		static const char *const hints[] = {"headrace query %s coverage\n",
						    "headrace diagnose %s\n",
						    "headrace query %s files\n"};
		char *text = print(&s), hint[128];

		for (size_t k = 0; k < 3; k++) {
			snprintf(hint, sizeof(hint), hints[k], jobs[i][1]);
			if (strstr(text, hint) == NULL)
				fail_msg("no '%s' in %s", hint, text);
		}
		free(text);
		free(s.job);
	}
}

/* Each reason has the same sentence as in a query's notes. --max-size has another line. */
static void test_sentences(void **state)
{
	(void)state;
	for (int i = 0; i < HR_LOSS_REASONS; i++) {
		struct hr_summary_loss loss = {.reason =
						   strdup(hr_loss_name((enum hr_loss_reason)i)),
					       .count = 3,
					       .bytes = 4096};
		struct hr_summary s = {.job = (char[]){"j"},
				       .store = (char[]){"s"},
				       .state = (char[]){"ended"},
				       .run_state = (char[]){"ended"},
				       .command = -1,
				       .losses = &loss,
				       .n_losses = 1};
		char *text = print(&s), *line = NULL, *sentence;

		sentence = hr_loss_text(
		    &(struct hr_loss_sum){.reason = loss.reason, .count = 3, .bytes = 4096});
		if (sentence != NULL && i != HR_LOSS_MAX_SIZE) {
			assert_true(asprintf(&line, "\n  missing   %s\n", sentence) > 0);
			assert_non_null(strstr(text, line));
		} else {
			assert_null(strstr(text, "missing"));
		}
		free(sentence);
		free(line);
		free(text);
		free(loss.reason);
	}
}

/* Losses of processes are not printed as operations. A program without ranks has the part main. */
static void test_words(void **state)
{
	struct hr_summary_loss losses[] = {
	    {.reason = (char[]){"limit"}, .count = 2},
	    {.reason = (char[]){"restart"}, .count = 1},
	    {.reason = (char[]){"journal_memory"}, .count = 1},
	    {.reason = (char[]){"no_preload"}, .count = 2, .program = (char[]){"/bin/su"}}};
	struct hr_summary_who who[] = {{.rank = -1, .worker = -1, .processes = 1, .data.ops = 1},
				       {.rank = -1, .worker = 1, .processes = 1, .data.ops = 1}};
	struct hr_summary s = {.job = (char[]){"j"},
			       .store = (char[]){"s"},
			       .state = (char[]){"ended"},
			       .run_state = (char[]){"ended"},
			       .command = -1,
			       .ranks_deselected = (char[]){"2-3"},
			       .losses = losses,
			       .n_losses = 4,
			       .who = who,
			       .n_who = 2};
	char *text = print(&s);

	(void)state;
	assert_non_null(strstr(text, "  left out  ranks 2-3, by --ranks or --local-ranks\n"
				     "  missing   I/O of 2 processes or threads: "));
	assert_non_null(strstr(text, "  missing   I/O of 1 process: headraced restarted"));
	assert_non_null(strstr(text, "  missing   I/O of 2 processes (first: /bin/su): "
				     "headrace's library was not loaded there"));
	assert_non_null(strstr(
	    text, "  note      the disk was full, and headraced kept its journal in memory"));
	assert_non_null(strstr(text, "  main; "));
	assert_non_null(strstr(text, "  worker 1; "));
	assert_null(strstr(text, "Python's own"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits_of_ranks),
	    cmocka_unit_test(test_hints),
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
