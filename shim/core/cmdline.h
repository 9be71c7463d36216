/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmdline.h - which part of a command line the shim sends: the program, and the script or module
 * that it interprets
 *
 *      python3 -u train.py --token x     python3 train.py
 *      python3 -m torch.run --nodes 2    python3 -m torch.run
 *      python3 -c 'code' 7               python3 -c
 *      bash -ec 'code'                   bash -ec
 *      java -Xmx1g -cp a.jar Main x      java Main
 *      rsync -a /data /backup            rsync
 *
 * Arguments may be secret: HEADRACE_CMDLINE=full is needed to send them all. Code is cut, except
 * the import with which Python's multiprocessing starts a process, because this import identifies
 * the process.
 *
 * Threads   A pure function over the caller's memory; async-signal-safe.
 */
#ifndef HEADRACE_SHIM_CORE_CMDLINE_H
#define HEADRACE_SHIM_CORE_CMDLINE_H

#include <stddef.h>

/* Cuts `words`, each with its NUL (except perhaps the last), in place. Returns the new length. */
size_t hr__cmdline_cut(char *words, size_t bytes);

#endif
