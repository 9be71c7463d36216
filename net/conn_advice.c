/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "net/conn.h"

#define NOBODY	 "is headrace-collector running there?"
#define SOMEBODY "is it a headrace-collector?"
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
		return NOBODY;
	case ENOENT: /* of a name the resolver has said all */
		return to->local ? NOBODY : "";
	case EPROTONOSUPPORT:
		return tls ? WANTS_PLAIN : WANTS_TLS;
	case 0: /* ended by the other side before it said anything */
	case EBADMSG:
	case ECONNRESET:
		return SOMEBODY;
	default: /* as of certificates: the text says what to do */
		return "";
	}
}
