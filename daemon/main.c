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
#include "daemon/manual.h"
#include "daemon/control/private.h"
#include "daemon/private/private_worker.h"
#include "daemon/service/service.h"
#include "daemon/service/worker.h"
#include "daemon/uplink/uplink_command.h"

#define EXIT_USAGE 2

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
		hr_headraced_man(stdout);
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
