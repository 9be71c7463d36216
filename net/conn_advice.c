/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "net/conn.h"

#define NOT_RUNNING   "check that headrace-collector runs there"
#define NOT_COLLECTOR "check that this is the address of a headrace-collector"
#define WANTS_TLS                                                                                  \
	"the collector requires a certificate: set HEADRACE_TLS_CERT, _KEY and _CA, or put it "    \
	"into ~/.config/headrace/tls; make-ca --user or --client creates one (docs/tls.md)"
#define WANTS_PLAIN                                                                                \
	"headrace used TLS because it found a certificate: for plain TCP, set HEADRACE_TLS_CERT "  \
	"to an empty value (docs/tls.md)"

const char *hr_conn_advice(const struct hr_address *to, bool tls, int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case ETIMEDOUT:
		return NOT_RUNNING;
	case ENOENT: /* the message of the resolver is enough */
		return to->local ? NOT_RUNNING : "";
	case EPROTONOSUPPORT:
		return tls ? WANTS_PLAIN : WANTS_TLS;
	case 0: /* the peer closed the connection before it sent anything */
	case EBADMSG:
	case ECONNRESET:
		return NOT_COLLECTOR;
	default: /* for example certificates: the error text contains the advice */
		return "";
	}
}
