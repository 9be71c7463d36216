/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headraced - records the jobs of one node. `headrace run` starts a private headraced, systemd the
 * service
 *
 *      headraced private STORE JOB     the keeper of a private headraced; the arguments are for ps
 *      headraced worker STORE JOB N    its recording process; N and N + 1 are its sockets
 *      headraced service ...           the node service, for all jobs of a node (service/service.h)
 *      headraced job JOB N             the recording process of one of its jobs; sockets N, N + 1
 *      headraced uplink SPOOL ...      sends the frames of a spool to a collector
 *
 * Keeper and recording processes read their configuration (control/private.h) from standard input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/private/keeper.h"
#include "daemon/control/private.h"
#include "daemon/private/private_worker.h"
#include "daemon/service/service.h"
#include "daemon/service/worker.h"
#include "daemon/uplink/uplink_command.h"
#include "daemon/service/config.h"

#define EXIT_USAGE 2

/* Prints the man page headraced(8), from the tables of keys and options. */
static void print_man(FILE *to)
{
	fputs(".TH HEADRACED 8 \"\" \"headrace " HEADRACE_VERSION "\" \"System Administration\"\n"
	      ".SH NAME\nheadraced \\- record the I/O of jobs on a node, send it to a collector\n"
	      ".SH SYNOPSIS\n\\fBheadraced service\\fR [\\fB\\-\\-config\\fR \\fIFILE\\fR] "
	      "[\\fB\\-\\-\\fIKEY VALUE\\fR]...\n.br\n"
	      "\\fBheadraced uplink\\fR \\fISPOOL\\fR \\fB\\-\\-collector\\fR \\fILIST\\fR "
	      "[\\fIOPTION\\fR...]\n.br\n"
	      "\\fBheadraced uplink\\fR \\fISPOOL\\fR \\fB\\-\\-discard\\fR \\fIJOB\\fR\n"
	      ".SH DESCRIPTION\n\\fBheadraced service\\fR records all jobs of a node; systemd "
	      "starts it. The prolog and epilog of the scheduler register and end jobs with "
	      "\\fBheadrace job\\fR. \\fBheadrace status\\fR shows the jobs.\n"
	      ".PP\n\\fBheadrace run\\fR needs no service: it starts a headraced of its own. If no "
	      "collector was reachable, data of such a run stays in its spool. \\fBheadraced "
	      "uplink\\fR sends this data, or deletes it with \\-\\-discard. The next \\fBheadrace "
	      "run \\-o tcp://...\\fR on the node sends it, too.\n"
	      ".PP\nheadraced is not on PATH but in \\fIlibexec/headrace\\fR of the installation: "
	      "\\fI/usr/local/libexec/headrace/headraced\\fR by default. \\fBheadrace doctor\\fR "
	      "prints where it is. A run that leaves data in its spool prints the whole command.\n"
	      ".SH SERVICE\nThe configuration file has lines \\fBkey = value\\fR; \\fB#\\fR begins "
	      "a comment. Each key is also an option, with hyphens instead of underscores. An "
	      "option overrides the file. Unknown keys are reported and ignored; for "
	      "\\-\\-check\\-config they are mistakes.\n"
	      ".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\nread this file instead "
	      "of " HR_SERVICE_CONFIG_FILE ".\n"
	      ".TP\n\\fB\\-\\-check\\-config\\fR\ncheck file and options, report mistakes, and "
	      "end.\n",
	      to);
	hr_config_man(hr_service_keys, hr_service_n_keys, true, to);
	fputs(".SH UPLINK\n", to);
	hr_uplink_man(to);
	fputs(
	    ".SH ENVIRONMENT\n"
	    ".TP\n\\fBHEADRACE_TLS_CERT\\fR, \\fBHEADRACE_TLS_KEY\\fR, \\fBHEADRACE_TLS_CA\\fR\n"
	    "defaults of the options of uplink.\n"
	    ".TP\n\\fBHEADRACE_MUNGE_SOCKET\\fR\nsocket of munged, if it is not at its default "
	    "path.\n"
	    ".SH SIGNALS\n\\fBSIGTERM\\fR and \\fBSIGINT\\fR end headraced. The next service "
	    "continues the jobs of a service; if systemd restarts it, no data is lost. Data that "
	    "an uplink has not sent stays in the spool. On \\fBSIGHUP\\fR the service reads its "
	    "configuration again; it applies to jobs that start afterwards.\n"
	    ".SH EXIT STATUS\n0: everything is acknowledged, or deleted; 1: something is not; 2: "
	    "usage; 66: no such spool or job.\n"
	    ".SH FILES\n"
	    ".TP\n\\fI" HR_SERVICE_CONFIG_FILE
	    "\\fR, \\fI/run/headrace\\fR, \\fI/var/spool/headrace\\fR\nconfiguration, runtime "
	    "folder and spool of the service.\n"
	    ".TP\n\\fI~/.local/state/headrace/spool\\fR\nspool of \\fBheadrace run\\fR, unless "
	    "HEADRACE_SPOOL names another.\n"
	    ".TP\n\\fI~/.config/headrace/tls\\fR\ncertificate, key and CA certificates of a user.\n"
	    ".SH SEE ALSO\nheadrace(1), headrace\\-collector(8); sites.md, daemon.md and tls.md in "
	    "share/doc/headrace/docs.\n",
	    to);
}

static int keeper_main(char **argv)
{
	struct hr_private_config config;
	char exe[4096];
	char *worker_argv[] = {argv[0], "worker", argv[2], argv[3], NULL};
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	struct hr_keeper_config keeper = {.exe = exe, .argv = worker_argv};
	int r = hr_private_config_read(STDIN_FILENO, &config), status;

	if (n > 0)
		exe[n] = '\0';
	else
		snprintf(exe, sizeof(exe), "/proc/self/exe");
	if (r == 0)
		r = hr_control_listen(config.names.control, &keeper.listening[0]);
	if (r == 0)
		r = hr_control_listen(config.names.shim, &keeper.listening[1]);
	if (r < 0) {
		fprintf(stderr, "headraced: cannot listen: %s\n", strerrordesc_np(-r));
		return EXIT_FAILURE;
	}
	status = hr_keeper_run(&keeper);
	if (status != EXIT_SUCCESS) /* else the recording process has removed the sockets */
		hr_private_remove(&config.names);
	close(keeper.listening[0]);
	close(keeper.listening[1]);
	hr_private_config_done(&config);
	return status;
}

int main(int argc, char **argv)
{
	uint64_t first_fd;

	umask(077);
	if (argc == 4 && strcmp(argv[1], "private") == 0)
		return keeper_main(argv);
	if (argc == 5 && strcmp(argv[1], "worker") == 0 &&
	    hr_text_parse_uint(argv[4], 1u << 20, &first_fd) == 0)
		return hr_private_worker(STDIN_FILENO, (int)first_fd, (int)first_fd + 1);
	if (argc == 4 && strcmp(argv[1], "job") == 0 &&
	    hr_text_parse_uint(argv[3], 1u << 20, &first_fd) == 0)
		return hr_service_worker(STDIN_FILENO, (int)first_fd, (int)first_fd + 1);
	if (argc >= 2 && strcmp(argv[1], "service") == 0)
		return hr_service_main(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "uplink") == 0)
		return hr_uplink_command(argc - 1, argv + 1);
	if (argc == 3 && strcmp(argv[1], "--generate") == 0 && strcmp(argv[2], "man") == 0) {
		print_man(stdout);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("headraced " HEADRACE_VERSION);
		return EXIT_SUCCESS;
	}
	fputs("headraced: no command, or an unknown one; see headraced(8)\n"
	      "headraced: hint: `headraced service --help`, `headraced uplink --help`; `headrace "
	      "run` starts headraced itself\n",
	      stderr);
	return EXIT_USAGE;
}
