/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - constants of live.proto, for daemon/engine and `headrace top` */
#ifndef HEADRACE_PROTO_LIVE_H
#define HEADRACE_PROTO_LIVE_H

#include <stdint.h>

/* How long pictures show an ended process: longer than clients wait between two pictures. */
#define HR_LIVE_KEPT_NS UINT64_C(40000000000)
/* Bit of LiveProcess.proc: the entry stands for all earlier processes of a rank and worker. */
#define HR_LIVE_GROUP (UINT64_C(1) << 63)

#endif
