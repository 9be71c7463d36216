/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - constants of live.proto, for daemon/engine and `headrace top` */
#ifndef HEADRACE_PROTO_LIVE_H
#define HEADRACE_PROTO_LIVE_H

#include <stdint.h>

/* How long pictures show an ended process: longer than a client waits between two pictures. */
#define HR_LIVE_KEPT_NS UINT64_C(40000000000)
/* Bit of LiveProcess.proc that marks a (rank, worker), not one process. */
#define HR_LIVE_GROUP (UINT64_C(1) << 63)

#endif
