/* SPDX-License-Identifier: Apache-2.0 */
/* run_end.c - the end of a `headrace run`: what went wrong, the summary, the report */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run/job.h"
#include "cli/run/run.h"
#include "cli/summary/summary.h"
#include "common/loss.h"
#include "common/text.h"
#include "daemon/node/recover.h"

static void report_store_error(const Headrace__Left *left)
{
	const char *error = strerrordesc_np(-left->store_error);

	if (left->runs > 0)
		hr_report("cannot write to the store at the moment: %s", error);
	else if (left->given_up > 0 || left->unreported)
		hr_report("the store is incomplete: %s; %s of %s operations are missing%s", error,
			  hr_text_count(left->given_up).s, hr_text_count(left->events).s,
			  left->unreported ? ", and the store had no room to count them"
					   : ", its `losses` count them");
	else
		hr_report("the store is incomplete: %s; the missing data is in its journal, which "
			  "the next `headrace query` recovers",
			  error);
}

static void report_processes_left(const struct hr_run_state *run, const Headrace__Left *left)
{
	char pids[1024] = "";
	size_t used = 0;

	for (size_t i = 0; i < left->n_processes_left && used < sizeof(pids); i++)
		used += (size_t)snprintf(pids + used, sizeof(pids) - used, " %d",
					 left->processes_left[i]);
	hr_report("%u process%s outlived CMD by more than --linger %s and %s no longer recorded: "
		  "pid%s",
		  left->processes_left_total, left->processes_left_total == 1 ? "" : "es",
		  hr_text_duration(run->options.linger_ns).s,
		  left->processes_left_total == 1 ? "is" : "are", pids);
}

static void report_problems(const struct hr_run_state *run)
{
	const Headrace__Left *left = run->link.last->left;

	/* With --attach, the program and its workers continue. */
	if (left->processes_left_total > 0 && !run->options.attach)
		report_processes_left(run, left);
	if (left->store_error != 0)
		report_store_error(left);
	if (left->runs > 0 && left->print)
		hr_report("%u other run%s of this job continue%s on this node", left->runs,
			  left->runs == 1 ? "" : "s", left->runs == 1 ? "s" : "");
}

static void make_report(const struct hr_run_state *run)
{
	char *words[] = {(char *)"report",
			 (char *)run->store,
			 (char *)"--job",
			 (char *)run->job.id,
			 (char *)"-o",
			 (char *)run->options.report,
			 NULL};

	if (hr_report_main(sizeof(words) / sizeof(words[0]) - 1, words) != EXIT_SUCCESS)
		hr_report("%s was not written" HR_HINT "`headrace report` writes it later",
			  run->options.report);
}

/*
 * Finds a store that is no longer at its path, because it was moved or its file system was unmounted
 * (umount -l), and sets a path that leads to it now. False: it was removed.
 */
static bool find_moved(struct hr_run_state *run, char to[PATH_MAX])
{
	char link[32], name[PATH_MAX];
	struct stat st, there;
	ssize_t n;

	if (run->store_fd <= 0 || fstat(run->store_fd, &st) < 0 || st.st_nlink == 0)
		return false;
	n = snprintf(link, sizeof(link), "/proc/self/fd/%d", run->store_fd);
	memcpy(to, link, (size_t)n + 1);
	n = readlink(link, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	if (stat(name, &there) < 0 || there.st_dev != st.st_dev || there.st_ino != st.st_ino) {
		hr_report("the file system of %s was unmounted during the run: it has the "
			  "recording",
			  run->store);
		return true;
	}
	hr_report("the store was moved during the run: it is %s now", name);
	memcpy(run->store, name, strlen(name) + 1);
	return true;
}

/* Loads the summary of the store, wherever it is. */
static int load_summary(struct hr_run_state *run, struct hr_summary **ret, char **ret_error)
{
	int r = hr_summary_load(run->store, run->job.id, ret, ret_error);
	char path[PATH_MAX], *store;

	if (r != -ENOENT || !find_moved(run, path))
		return r;
	free(*ret_error);
	*ret_error = NULL;
	r = hr_summary_load(path, run->job.id, ret, ret_error);
	store = r == 0 ? strdup(run->store) : NULL;
	if (store != NULL) {
		free((*ret)->store);
		(*ret)->store = store;
	}
	return r;
}

/* `left`: the last message of headraced; NULL: not received. */
static void summarise(struct hr_run_state *run, const Headrace__Left *left)
{
	struct hr_summary *summary;
	struct hr_sheet sheet;
	char *error = NULL;
	int r = load_summary(run, &summary, &error);

	if (r < 0) {
		if (r == -ENOENT)
			hr_report("the recording is lost: %s was removed during the run",
				  run->store);
		else
			hr_report("cannot make the summary: %s",
				  error != NULL ? error : strerrordesc_np(-r));
		free(error);
		return;
	}
	summary->unreported = left != NULL && left->unreported;
	if (summary->unreported && hr_summary_add_loss(summary, hr_loss_name(HR_LOSS_STORE_FULL),
						       left->given_up, left->given_up_bytes) < 0)
		hr_report("out of memory");
	summary->command = run->child.status;
	summary->python.globs = run->options.functions;
	if (run->uplink.collectors != NULL)
		hr_run_uplink_adapt(&run->uplink, summary);
	hr_sheet_init(&sheet, stderr);
	hr_summary_print(summary, &sheet);
	if (run->options.summary != NULL) {
		r = hr_summary_write(summary, run->options.summary);
		if (r < 0)
			hr_report("cannot write the summary to %s: %s", run->options.summary,
				  strerrordesc_np(-r));
	}
	hr_summary_free(summary);
	if (run->options.report != NULL)
		make_report(run);
}

/* Reports that another run prints the summary: without ranks, the last run does this. */
static void report_other_runs(const struct hr_run_state *run)
{
	unsigned others = run->link.last->left->runs;

	if (others > 0 && run->job.rank < 0)
		hr_report("recorded into %s; %u other run%s of this job continue%s, and one of "
			  "them prints the summary of all",
			  run->uplink.collectors != NULL ? run->uplink.collectors : run->store,
			  others, others == 1 ? "" : "s", others == 1 ? "s" : "");
}

#define RECOVER_TRIES	 50
#define RECOVER_PAUSE_NS 100000000

/* Stores the data of the journal of a headraced that died and was not restarted. */
static void recover(struct hr_run_state *run)
{
	const struct timespec pause = {.tv_nsec = RECOVER_PAUSE_NS};
	char *note = NULL;
	int r;

	for (int i = 0;
	     i < RECOVER_TRIES && hr_job_is_open(run->store, run->job.id, run->job.node, NULL); i++)
		nanosleep(&pause, NULL);
	r = hr_store_recover(run->store, &note);
	if (note != NULL)
		hr_report("headraced died before the end of the job; the store now contains the "
			  "data of its journal");
	if (r < 0)
		hr_report("cannot recover the journal: %s; the next `headrace query` tries again",
			  strerrordesc_np(-r));
	free(note);
	hr_private_sweep(&run->config.names);
}

void hr_run_finish(struct hr_run_state *run)
{
	int r = hr_link_leave(&run->link, run->options.linger_ns, run->child.status,
			      run->child.signal_fd);

	if (r == 0) {
		report_problems(run);
		if (run->link.last->left->print)
			summarise(run, run->link.last->left);
		else
			report_other_runs(run);
		if (run->uplink.collectors != NULL && run->link.fd >= 0)
			hr_run_uplink_drain(&run->uplink, &run->link, run->child.signal_fd,
					    run->headraced);
		return;
	}
	if (r == -ECONNRESET) {
		recover(run);
	} else {
		hr_report(
		    "headraced does not answer (%s); the summary covers what it has stored so far",
		    strerrordesc_np(-r));
	}
	summarise(run, NULL);
	if (run->uplink.collectors != NULL)
		hr_run_uplink_report_unsent(&run->uplink, run->headraced);
}
