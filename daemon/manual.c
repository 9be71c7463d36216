/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/manual.h"

#include "daemon/service/config.h"
#include "daemon/uplink/uplink_options.h"

void hr_headraced_man(FILE *to)
{
	fputs(
	    ".TH HEADRACED 8 \"\" \"headrace " HEADRACE_VERSION "\" \"System Administration\"\n"
	    ".SH NAME\nheadraced \\- record the I/O of jobs on a node, send it to a collector\n"
	    ".SH SYNOPSIS\n\\fBheadraced service\\fR [\\fB\\-\\-config\\fR \\fIFILE\\fR] "
	    "[\\fB\\-\\-\\fIKEY VALUE\\fR]...\n.br\n"
	    "\\fBheadraced uplink\\fR \\fISPOOL\\fR "
	    "\\fB\\-\\-collector\\fR \\fILIST\\fR [\\fIOPTION\\fR...]\n.br\n"
	    "\\fBheadraced uplink\\fR \\fISPOOL\\fR \\fB\\-\\-discard\\fR \\fIJOB\\fR\n"
	    ".SH DESCRIPTION\n\\fBheadraced service\\fR records all jobs of a node; systemd "
	    "starts it. Prolog and epilog announce and end jobs with \\fBheadrace job\\fR, "
	    "\\fBheadrace status\\fR shows them.\n"
	    ".PP\nFor \\fBheadrace run\\fR no service is needed: it starts a headraced of its "
	    "own. What such a run has left in its spool, because no collector could be reached, "
	    "\\fBheadraced uplink\\fR sends (the next \\fBheadrace run \\-o tcp://...\\fR on the "
	    "node does so, too), or gives up, where none takes it.\n"
	    ".PP\nIt is no command on PATH but lies in \\fIlibexec/headrace\\fR beside "
	    "\\fIbin/headrace\\fR: \\fI/usr/local/libexec/headrace/headraced\\fR unless "
	    "installed elsewhere. \\fBheadrace doctor\\fR says where it is, and a run that "
	    "leaves something says the whole command.\n"
	    ".SH SERVICE\nThe configuration file has lines \\fBkey = value\\fR; \\fB#\\fR begins "
	    "a comment. Each key is also a flag, with hyphens for underscores, which wins over "
	    "the file. Unknown keys are said and passed over, but for \\-\\-check\\-config.\n"
	    ".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\nread this file instead of "
	    "" HR_SERVICE_CONFIG_FILE ".\n"
	    ".TP\n\\fB\\-\\-check\\-config\\fR\nsay what is wrong with file and flags, and end.\n",
	    to);
	hr_config_man(hr_service_keys, hr_service_n_keys, to);
	fputs(".SH UPLINK\n", to);
	hr_uplink_man(to);
	fputs(
	    ".SH ENVIRONMENT\n"
	    ".TP\n\\fBHEADRACE_TLS_CERT\\fR, \\fBHEADRACE_TLS_KEY\\fR, \\fBHEADRACE_TLS_CA\\fR\n"
	    "as the options of uplink.\n"
	    ".TP\n\\fBHEADRACE_MUNGE_SOCKET\\fR\nof a munged at an unusual place.\n"
	    ".SH SIGNALS\n\\fBSIGTERM\\fR and \\fBSIGINT\\fR end it. Jobs of a service go on "
	    "under the next one, with nothing lost when systemd restarts it; what an uplink has "
	    "not sent stays in the spool. \\fBSIGHUP\\fR has the service read its "
	    "configuration anew: it applies to jobs that start afterwards.\n"
	    ".SH EXIT STATUS\n0: all is acknowledged, or given up; 1: something is not; 2: usage; "
	    "66: there is no such spool or job.\n"
	    ".SH FILES\n"
	    ".TP\n\\fI" HR_SERVICE_CONFIG_FILE "\\fR, \\fI/run/headrace\\fR, "
	    "\\fI/var/spool/headrace\\fR\nof the service.\n"
	    ".TP\n\\fI~/.local/state/headrace/spool\\fR\nwhere \\fBheadrace run\\fR has its "
	    "spool, unless HEADRACE_SPOOL names another.\n"
	    ".TP\n\\fI~/.config/headrace/tls\\fR\ncertificate, key and authority.\n"
	    ".SH SEE ALSO\nheadrace(1), headrace\\-collector(8); sites.md, daemon.md and tls.md "
	    "in share/doc/headrace/docs.\n",
	    to);
}
