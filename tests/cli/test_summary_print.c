/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_summary_print.c - the text of summaries that the tests fill in: waits, hints, losses,
 * names of ranks and workers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/summary/summary.h"
#include "common/loss.h"
#include "tests/unit.h"

/* The text in a file (columns 0) or on a terminal, whose working folder is /scratch. */
static char *print_at(const struct hr_summary *s, unsigned columns, bool colour)
{
	char *text = NULL;
	size_t bytes = 0;
	struct hr_sheet sheet = {
	    .out = open_memstream(&text, &bytes), .columns = columns, .colour = colour};

	if (columns > 0)
		strcpy(sheet.folder, "/scratch");
	hr_summary_print(s, &sheet);
	fclose(sheet.out);
	return text;
}

static char *print(const struct hr_summary *s)
{
	return print_at(s, 0, false);
}

#define S(n) ((uint64_t)(n)*1000000000)

/* A training of two ranks with four workers each; one worker is slow. */
static void fill(struct hr_summary *s)
{
	static char store[] = "/scratch/ddp", job[] = "ddp", ended[] = "ended";
	static char meaning[] = "the training waits for batches: its workers have too few cores";
	static char object[] = "/scratch/checkpoints/of/a/run/with/a/long/name/";
	static char place[] = "rank 1 on node7: /scratch/checkpoints/of/a/run/with/a/long/name/ "
			      "(files of the mount /nfs)";
	static char note[] = "the training itself also gets faster";
	static char action[] =
	    "request more cores (now 1), or make the transforms of the data set cheaper";
	static struct hr_summary_who who[10];
	static struct hr_summary_path folders[] = {
	    {"/scratch/images", {2000, S(5), 66 << 20, 0, 4000}, 66 << 20, 33 << 20}};
	static struct hr_summary_path files[] = {
	    {"/scratch/images/0.jpg", {1, S(1), 1 << 20, 0, 2}, 1 << 20, 1 << 19},
	    {"/scratch/checkpoints/of/a/run/with/a/long/name/epoch-0001.pt",
	     {1, S(1), 0, 1 << 20, 1},
	     0,
	     0},
	    {"/scratch/little", {1, 1000, 1, 0, 1}, 0, 0}};
	static struct hr_summary_part parts[] = {{"compute", "compute", false, S(3)},
						 {"backward", "compute", false, S(2)},
						 {"optimizer", "optimizer", false, S(1)},
						 {"own_read", "own file I/O", false, 1000},
						 {"wait_read", "reading files", true, S(1)},
						 {"wait_cpu", "computing batches", true, S(3)}};

	for (int i = 0; i < 10; i++)
		who[i] = (struct hr_summary_who){
		    .rank = i / 5,
		    .worker = i % 5 - 1,
		    .processes = 1,
		    .data = {.ops = 1000, .io_ns = i == 9 ? S(4) : S(1) / 2, .opens = 400}};
	who[0].loop = (struct hr_summary_loop){
	    .waits = 64, .wait_ns = S(1), .steps = 64, .step_ns = S(5), .loop_ns = S(5)};
	who[5].loop = (struct hr_summary_loop){
	    .waits = 64, .wait_ns = S(3), .steps = 64, .step_ns = S(5), .loop_ns = S(5)};
	*s = (struct hr_summary){
	    .store = store,
	    .job = job,
	    .state = ended,
	    .run_state = ended,
	    .command = -1,
	    .processes = 19,
	    .ranks = 2,
	    .workers = 8,
	    .runs = 1,
	    .events = 10,
	    .span_ns = S(9),
	    .run_span_ns = S(9),
	    .stored_bytes = 969 << 10,
	    .data = {.ops = 10000,
		     .errors = 267,
		     .io_ns = S(8),
		     .reads = 5000,
		     .small_reads = 5000,
		     .read_bytes = 66 << 20,
		     .written_bytes = 1 << 20,
		     .opens = 4000},
	    .runtime = {.ops = 1, .read_bytes = 10 << 20, .opens = 700, .io_ns = S(2)},
	    .mapped = {.files = 3, .files_in_memory = 1},
	    .finding = {.meaning = meaning,
			.object = object,
			.place = place,
			.gain_note = note,
			.action = action,
			.lost_ns = S(2),
			.wall_ns = S(8),
			.gain_low_ns = S(1),
			.gain_high_ns = S(3)},
	    .parts = parts,
	    .n_parts = 6,
	    .who = who,
	    .n_who = 10,
	    .folders = folders,
	    .n_folders = 1,
	    .files = files,
	    .n_files = 3};
}

static void test_terminal(void **state)
{
	struct hr_summary s;
	char *text;

	fill(&s);
	text = print_at(&s, 80, false);
	assert_string_equal(
	    text,
	    "headrace: ddp ended after 9.00 s; 19 processes, 2 ranks, 8 workers; nothing lost\n"
	    "\n"
	    "  loss      25 % of the time of a rank on average (2.00 s of 8.00 s): the\n"
	    "            training waits for batches: its workers have too few cores\n"
	    "  where     rank 1 on node7: checkpoints/of/a/run/with/a/long/name/ (files of\n"
	    "            the mount /nfs)\n"
	    "  do        request more cores (now 1), or make the transforms of the data set\n"
	    "            cheaper\n"
	    "  saves     1.00 s to 3.00 s (the training itself also gets faster)\n"
	    "\n"
	    "  The training loops of 2 ranks waited for data 20 to 60 % of their time (2.00 s\n"
	    "  of 5.00 s on average, most in rank 1).\n"
	    "\n"
	    "  time of the training loops, 64 steps of 78.1 ms in each rank\n"
	    "  waiting for data        40 %  ############\n"
	    "    computing batches     30 %  #########\n"
	    "    reading files         10 %  ###\n"
	    "  compute                 50 %  ###############\n"
	    "  optimizer               10 %  ###\n"
	    "\n"
	    "     read  written     opens re-read   I/O time  where the I/O went\n"
	    " 66.0 MiB 1.00 MiB     4,000             8.00 s  all, summed over threads\n"
	    " 66.0 MiB      0 B     4,000    2.0x     5.00 s  images/ (2,000 files)\n"
	    "      0 B 1.00 MiB         1             1.00 s  .../a/long/name/epoch-0001.pt\n"
	    " 10.0 MiB      0 B       700             2.00 s  Python itself, not in `all`\n"
	    "      0 B      0 B       800             1.00 s  2 ranks, without workers\n"
	    "      0 B      0 B     3,200             7.50 s  8 workers\n"
	    "      0 B      0 B       400             4.00 s  rank 1 worker 3, 8.0x the others' "
	    "mean\n"
	    "  counts    10,000 operations (267 failed); 5,000 reads, 100.0 % under 64 KiB\n"
	    "  mapped    2 files; the totals do not include bytes that page faults read\n"
	    "\n"
	    "  stored    969 KiB\n"
	    "  more      headrace diagnose ./ddp\n"
	    "            headrace query ./ddp input-wait\n"
	    "            headrace report ./ddp\n");
	free(text);
}

/* Lines have up to 120 columns, also on a wider terminal. */
static void test_wide_terminals(void **state)
{
	struct hr_summary s;
	char *text, *wide;

	fill(&s);
	text = print_at(&s, 120, false);
	assert_string_equal(
	    text,
	    "headrace: ddp ended after 9.00 s; 19 processes, 2 ranks, 8 workers; nothing lost\n"
	    "\n"
	    "  loss      25 % of the time of a rank on average (2.00 s of 8.00 s): the training "
	    "waits for batches: its workers have\n"
	    "            too few cores\n"
	    "  where     rank 1 on node7: checkpoints/of/a/run/with/a/long/name/ (files of the "
	    "mount /nfs)\n"
	    "  do        request more cores (now 1), or make the transforms of the data set "
	    "cheaper\n"
	    "  saves     1.00 s to 3.00 s (the training itself also gets faster)\n"
	    "\n"
	    "  The training loops of 2 ranks waited for data 20 to 60 % of their time (2.00 s of "
	    "5.00 s on average, most in rank 1).\n"
	    "\n"
	    "  time of the training loops, 64 steps of 78.1 ms in each rank\n"
	    "  waiting for data        40 %  ############\n"
	    "    computing batches     30 %  #########\n"
	    "    reading files         10 %  ###\n"
	    "  compute                 50 %  ###############\n"
	    "  optimizer               10 %  ###\n"
	    "\n"
	    "     read  written     opens re-read   I/O time  where the I/O went\n"
	    " 66.0 MiB 1.00 MiB     4,000             8.00 s  all, summed over threads\n"
	    " 66.0 MiB      0 B     4,000    2.0x     5.00 s  images/ (2,000 files)\n"
	    "      0 B 1.00 MiB         1             1.00 s  "
	    "checkpoints/of/a/run/with/a/long/name/epoch-0001.pt\n"
	    " 10.0 MiB      0 B       700             2.00 s  Python itself, not in `all`\n"
	    "      0 B      0 B       800             1.00 s  2 ranks, without workers\n"
	    "      0 B      0 B     3,200             7.50 s  8 workers\n"
	    "      0 B      0 B       400             4.00 s  rank 1 worker 3, 8.0x the others' "
	    "mean\n"
	    "  counts    10,000 operations (267 failed); 5,000 reads, 100.0 % under 64 KiB\n"
	    "  mapped    2 files; the totals do not include bytes that page faults read\n"
	    "\n"
	    "  stored    969 KiB\n"
	    "  more      headrace diagnose ./ddp\n"
	    "            headrace query ./ddp input-wait\n"
	    "            headrace report ./ddp\n");
	wide = print_at(&s, 200, false);
	assert_string_equal(wide, text);
	free(wide);
	free(text);
}

/* Lines are not divided, and paths are complete. */
static void test_file(void **state)
{
	struct hr_summary s;
	char *text;

	fill(&s);
	text = print(&s);
	assert_string_equal(
	    text,
	    "headrace: ddp ended after 9.00 s; 19 processes, 2 ranks, 8 workers; nothing lost\n"
	    "\n"
	    "  loss      25 % of the time of a rank on average (2.00 s of 8.00 s): the training "
	    "waits for batches: its workers have too few cores\n"
	    "  where     rank 1 on node7: /scratch/checkpoints/of/a/run/with/a/long/name/ (files "
	    "of the "
	    "mount /nfs)\n"
	    "  do        request more cores (now 1), or make the transforms of the data set "
	    "cheaper\n"
	    "  saves     1.00 s to 3.00 s (the training itself also gets faster)\n"
	    "\n"
	    "  The training loops of 2 ranks waited for data 20 to 60 % of their time (2.00 s of "
	    "5.00 s on average, most in rank 1).\n"
	    "\n"
	    "  time of the training loops, 64 steps of 78.1 ms in each rank\n"
	    "  waiting for data        40 %  ############\n"
	    "    computing batches     30 %  #########\n"
	    "    reading files         10 %  ###\n"
	    "  compute                 50 %  ###############\n"
	    "  optimizer               10 %  ###\n"
	    "\n"
	    "     read  written     opens re-read   I/O time  where the I/O went\n"
	    " 66.0 MiB 1.00 MiB     4,000             8.00 s  all, summed over threads\n"
	    " 66.0 MiB      0 B     4,000    2.0x     5.00 s  /scratch/images/ (2,000 files)\n"
	    "      0 B 1.00 MiB         1             1.00 s  "
	    "/scratch/checkpoints/of/a/run/with/a/long/name/epoch-0001.pt\n"
	    " 10.0 MiB      0 B       700             2.00 s  Python itself, not in `all`\n"
	    "      0 B      0 B       800             1.00 s  2 ranks, without workers\n"
	    "      0 B      0 B     3,200             7.50 s  8 workers\n"
	    "      0 B      0 B       400             4.00 s  rank 1 worker 3, 8.0x the others' "
	    "mean\n"
	    "  counts    10,000 operations (267 failed); 5,000 reads, 100.0 % under 64 KiB\n"
	    "  mapped    2 files; the totals do not include bytes that page faults read\n"
	    "\n"
	    "  stored    969 KiB\n"
	    "  more      headrace diagnose /scratch/ddp\n"
	    "            headrace query /scratch/ddp input-wait\n"
	    "            headrace report /scratch/ddp\n");
	free(text);
}

/* All parts after the fifth have one bar. Little waits are no 0 %, and are not divided. */
static void test_bars(void **state)
{
	struct hr_summary_part parts[] = {
	    {"a", "a", false, S(15)}, {"b", "b", false, S(10)},
	    {"c", "c", false, S(8)},  {"d", "d", false, S(6)},
	    {"e", "e", false, S(5)},  {"f", "f", false, S(4)},
	    {"g", "g", false, S(2)},  {"wait_read", "reading files", true, S(1) / 8}};
	struct hr_summary_who who = {.rank = -1, .worker = -1};
	struct hr_summary s;
	char *text;

	fill(&s);
	who.loop = (struct hr_summary_loop){
	    .waits = 1, .wait_ns = S(1) / 8, .steps = 10, .step_ns = S(50), .loop_ns = S(50)};
	s.parts = parts;
	s.n_parts = 8;
	s.who = &who;
	s.n_who = 1;
	text = print(&s);
	assert_non_null(strstr(text, " waited for data under 1 % of its time (125 ms of 50.0 s)."));
	assert_non_null(strstr(text, "\n  waiting for data        <1 %  "));
	assert_null(strstr(text, "reading files"));
	assert_non_null(strstr(text, "\n  e                       10 %  ###\n"));
	assert_null(strstr(text, "\n  f "));
	assert_non_null(strstr(text, "\n  the rest                12 %  ###"));
	free(text);
}

/* Styles repeat what the words say, and there are none in a file. */
static void test_colour(void **state)
{
	struct hr_summary s;
	char *plain, *text, *to;

	fill(&s);
	s.losses = (struct hr_summary_loss[]){{.reason = (char[]){"ring_full"}, .count = 3}};
	s.n_losses = 1;
	plain = print_at(&s, 80, false);
	text = to = print_at(&s, 80, true);
	assert_non_null(strstr(text, "\n\033[31m  missing\033[0m   3 operations: "));
	assert_non_null(
	    strstr(text, "  waiting for data        40 %  \033[33m############\033[0m\n"));
	for (const char *from = text; *from != '\0'; from++) {
		if (*from == '\033')
			from = strchr(from, 'm');
		else
			*to++ = *from;
	}
	*to = '\0';
	assert_string_equal(text, plain);
	free(text);
	free(plain);
}

/* The next question: waits, else steps, else times of operations, else files. */
static void next_queries(void)
{
	static const char *const queries[] = {"input-wait", "steps", "io-time", "files"};

	for (int i = 0; i < 4; i++) {
		struct hr_summary_who who = {.rank = -1, .worker = -1};
		struct hr_summary s = {.job = (char[]){"s"},
				       .store = (char[]){"s"},
				       .state = (char[]){"ended"},
				       .run_state = (char[]){"ended"},
				       .command = -1,
				       .events = i <= 2,
				       .who = &who,
				       .n_who = 1};
		char *text, hint[64];

		who.loop.waits = i == 0;
		who.loop.steps = i <= 1;
		text = print(&s);
		snprintf(hint, sizeof(hint), "headrace query s %s\n", queries[i]);
		assert_non_null(strstr(text, hint));
		assert_int_equal(strstr(text, "headrace diagnose s\n") != NULL, i <= 1);
		assert_int_equal(strstr(text, "it reported no waits for data") != NULL, i == 1);
		free(text);
	}
}

/* Commands in hints work when pasted: if the job is not named like its store, they have --job. */
static void test_hints(void **state)
{
	static const char *const jobs[][2] = {{"j 1", "/a/s --job 'j 1'"}, {"s", "/a/s"}};
	struct hr_summary_who who = {.rank = -1, .worker = -1, .data.ops = 1};

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
						    "headrace query %s input-wait\n"};
		char *text = print(&s), hint[128];

		for (size_t k = 0; k < 3; k++) {
			snprintf(hint, sizeof(hint), hints[k], jobs[i][1]);
			if (strstr(text, hint) == NULL)
				fail_msg("no '%s' in %s", hint, text);
		}
		free(text);
		free(s.job);
	}
	next_queries();
}

/* Each reason has the same sentence as in a query's notes. --max-size has another line. */
static void test_sentences(void **state)
{
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

/* What is known of Python: a note only if it is missing, and only if nothing else says why. */
static void notes_of_python(void)
{
	struct hr_summary_who who = {.rank = -1, .worker = -1, .loop.steps = 1};
	char reason[] = "another profiler", framework[] = "torch";

	for (int i = 0; i < 4; i++) {
		struct hr_summary s = {
		    .job = (char[]){"j"},
		    .store = (char[]){"s"},
		    .state = (char[]){"ended"},
		    .run_state = (char[]){"ended"},
		    .command = -1,
		    .python = {.framework = framework, .globs = "load*", .functions = i == 1},
		    .who = &who,
		    .n_who = i == 3};
		char *text;

		s.python.reasons[HR_SUMMARY_FUNCTIONS] = i == 2 ? reason : NULL;
		text = print(&s);
		assert_int_equal(strstr(text, "trains with torch in a loop of its own") != NULL,
				 i != 3);
		assert_int_equal(strstr(text, "no function was recorded") != NULL,
				 i == 0 || i == 3);
		assert_int_equal(strstr(text, "functions are missing, of all processes or of "
					      "some: another profiler") != NULL,
				 i == 2);
		free(text);
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
			       .processes = 2,
			       .data.ops = 2,
			       .who = who,
			       .n_who = 2};
	char *text = print(&s);

	assert_non_null(strstr(text, "  left out  ranks 2-3, by --ranks or --local-ranks\n"
				     "  missing   I/O of 2 processes or threads: "));
	assert_non_null(strstr(text, "  missing   I/O of 1 process: headraced restarted"));
	assert_non_null(strstr(text, "  missing   I/O of 2 processes (first: /bin/su): "
				     "headrace's library was not loaded there"));
	assert_non_null(strstr(
	    text, "  note      the disk was full, and headraced kept its journal in memory"));
	assert_non_null(strstr(text, "  main\n"));
	assert_non_null(strstr(text, "  worker 1\n"));
	assert_null(strstr(text, "Python itself"));
	free(text);
	notes_of_python();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_terminal),  cmocka_unit_test(test_wide_terminals),
	    cmocka_unit_test(test_file),      cmocka_unit_test(test_colour),
	    cmocka_unit_test(test_hints),     cmocka_unit_test(test_words),
	    cmocka_unit_test(test_sentences), cmocka_unit_test(test_bars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
