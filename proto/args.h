/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the keys of args.def as constants: HR_ARGS_LOADER is "loader" */
#ifndef HEADRACE_PROTO_ARGS_H
#define HEADRACE_PROTO_ARGS_H

#define HR_ARGS(NAME, key, type, unit, table, files, meaning)                                      \
	__attribute__((unused)) static const char HR_ARGS_##NAME[] = key;
#include "proto/args.def"
#undef HR_ARGS

#endif
