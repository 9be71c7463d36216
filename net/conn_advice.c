/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "net/conn.h"

#define NOT_RUNNING   "is headrace-collector running there?"
#define OTHER_SERVICE "is it a headrace-collector?"
#define WANTS_TLS                                                                                  \
	"it wants a certificate, and there is none here: HEADRACE_TLS_CERT, _KEY and _CA name "    \
	"one, or ~/.config/headrace/tls has it; make-ca makes one with --user or --client "        \
	"(docs/tls.md)"
#define WANTS_PLAIN                                                                                \
	"there is a certificate here, so TLS was tried: where plain TCP is meant, set "            \
	"HEADRACE_TLS_CERT to nothing (docs/tls.md)"

const char *hr_conn_advice(const struct hr_address *to, bool tls, int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case ETIMEDOUT:
		return NOT_RUNNING;
	case ENOENT: /* the resolver's message is enough */
		return to->local ? NOT_RUNNING : "";
	case EPROTONOSUPPORT:
		return tls ? WANTS_PLAIN : WANTS_TLS;
	case 0: /* the peer closed without an answer */
	case EBADMSG:
	case ECONNRESET:
		return OTHER_SERVICE;
	default: /* as for certificates: the message contains the advice */
		return "";
	}
}
