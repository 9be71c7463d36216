/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/manual.h"

#include "daemon/service/config.h"
#include "daemon/uplink/uplink_options.h"

void hr_headraced_man(FILE *to)
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
	hr_config_man(hr_service_keys, hr_service_n_keys, to);
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
