/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h - the protocol versions of another release
 *
 * Included before all else (-include) in those files that judge versions, daemon/uplink/uplink_link.c and collector/peer_hello.c,
 * with HR_SPEAKS_MIN and HR_SPEAKS_MAX: the rest of such a program is this release's.
 */
#include "net/wire.h"

#undef HR_WIRE_VERSION_MIN
#undef HR_WIRE_VERSION
#define HR_WIRE_VERSION_MIN HR_SPEAKS_MIN
#define HR_WIRE_VERSION	    HR_SPEAKS_MAX
