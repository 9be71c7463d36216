/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the keys of args.def as constants (HR_ARGS_LOADER is "loader"), and a fact of samples */
#ifndef HEADRACE_PROTO_ARGS_H
#define HEADRACE_PROTO_ARGS_H

#define HR_ARGS(NAME, key, type, unit, table, files, meaning)                                      \
	__attribute__((unused)) static const char HR_ARGS_##NAME[] = key;
#include "proto/args.def"
#undef HR_ARGS

/*
 * HR_ARGS_STACKS: the time from a sample to the next one is 0.5 to 1.5 times this one (ns), and
 * each time is as probable as any other.
 */
#define HR_ARGS_SAMPLES_EVERY_NS 30000000

#endif
