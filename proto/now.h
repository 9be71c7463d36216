/* SPDX-License-Identifier: Apache-2.0 */
/* now.h - limits of the messages Now and Fleet (wire.proto), for headraced, collector and client */
#ifndef HEADRACE_PROTO_NOW_H
#define HEADRACE_PROTO_NOW_H

#include <stdint.h>

#define HR_NOW_MOUNTS	16u
#define HR_NOW_RANKS	1024u
#define HR_NOW_FOLDERS	4u
#define HR_NOW_STUCK	64u
#define HR_NOW_STUCK_NS UINT64_C(5000000000) /* an operation that takes longer is `stuck` */
#define HR_NOW_EVERY_MS 1000u
#define HR_NOW_FRESH_MS 5000u /* a node without a Now for longer is silent, and has no rates */

/* X(NAME): which jobs of a Fleet come first (Look.by) */
#define HR_FLEET_ORDERS(X) X(metadata) X(bytes) X(ops) X(waiting) X(stuck)

/* These keep a Fleet below HR_WIRE_MAX_BYTES. */
#define HR_FLEET_JOBS	    250u
#define HR_FLEET_MOUNTS	    64u
#define HR_FLEET_JOB_MOUNTS 4u
#define HR_FLEET_STUCK	    8u	 /* of a job */
#define HR_FLEET_PATH	    512u /* bytes of a path; a longer one is cut */

#endif
