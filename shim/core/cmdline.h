/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmdline.h - the part of a command line that the shim sends: the program, and its script or module
 *
 *      python3 -u train.py --token x     python3 train.py
 *      python3 -I train.py               python3 -I train.py: it ignores PYTHONPATH
 *      python3 -m torch.run --nodes 2    python3 -m torch.run
 *      python3 -c 'code' 7               python3 -c
 *      bash -ec 'code'                   bash -ec
 *      java -Xmx1g -cp a.jar Main x      java Main
 *      rsync -a /data /backup            rsync
 *
 * Arguments may be secret, so the shim sends all of them only with HEADRACE_CMDLINE=full. It cuts
 * code, except the import with which Python's multiprocessing starts a process, because this import
 * identifies the process.
 *
 * Threads   Any: a pure function of the caller's memory, which is async-signal-safe.
 */
#ifndef HEADRACE_SHIM_CORE_CMDLINE_H
#define HEADRACE_SHIM_CORE_CMDLINE_H

#include <stddef.h>

/* Shortens a list of words in place. A NUL separates the words. Returns the new length. */
size_t hr__cmdline_cut(char *words, size_t bytes);

#endif
