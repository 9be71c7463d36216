/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - numbers that the producer of live.proto (daemon/engine) and its readers (headrace top) share
 */
#ifndef HEADRACE_PROTO_LIVE_H
#define HEADRACE_PROTO_LIVE_H

#include <stdint.h>

#define HR_LIVE_KEPT_NS                                                                            \
	UINT64_C(                                                                                  \
	    40000000000) /* an ended process stays in pictures: longer than a client waits between two */
/* bit of LiveProcess.proc: a (rank, worker), not one process */
#define HR_LIVE_GROUP (UINT64_C(1) << 63)

#endif
