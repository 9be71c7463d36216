# SPDX-License-Identifier: Apache-2.0
"""Measures what a thread uses during a range (if fast.c is absent): CPU time, major faults, reads from storage, waits for a core and other waits."""

import os
import threading

CORE_WAIT = "/proc/thread-self/schedstat"
WAITS = (b',"sleep_ns":', b',"network_ns":', b',"lock_ns":')
BLOCK_BYTES = 512  # unit of ru_inblock
APART_NS = 20000000  # shortest time between two reads of schedstat, which are slow


class _Waited(threading.local):
    """The time (at) and the result (ns) of the last read of schedstat. at 0: there was no read; ns None: the read failed."""

    at = 0
    ns = None


def _core_wait():
    try:
        fd = os.open(CORE_WAIT, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 96).split()[1])
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return None


def ways(begin, end, waited):
    """Returns begin_spent() and end_spent() for api.py. waited() calls headrace_api.waited."""
    try:
        from resource import RUSAGE_THREAD, getrusage
        from time import monotonic_ns, thread_time_ns
    except ImportError:  # before 3.7
        return begin, lambda head, _before: end(head + b"}")
    last = _Waited()

    def core_wait_since(began):
        """Returns how long the thread waited for a core since `began` or since the previous read of schedstat, whichever is later.

        Assumes that the waits are spread evenly over the time since the previous read."""
        now, since = monotonic_ns(), last.at
        if now - since < APART_NS:
            return None
        before, waited = last.ns, _core_wait()
        last.at, last.ns = now, waited
        # A smaller value is that of a forked child, whose last.ns is still the value of its parent.
        if before is None or waited is None or waited < before:
            return None
        return (waited - before) * (now - max(began, since)) // (now - since)

    def begin_spent(ref):
        begin(ref)
        core_wait_since(0)
        usage = getrusage(RUSAGE_THREAD)
        return thread_time_ns(), usage.ru_majflt, monotonic_ns(), waited(), usage.ru_inblock

    def end_spent(head, before):
        args = head
        if before is not None and thread_time_ns() >= before[0]:  # a child forked since `before` starts from 0
            usage = getrusage(RUSAGE_THREAD)
            args = b'%b,"cpu_ns":%d,"storage_bytes":%d' % (head, thread_time_ns() - before[0], BLOCK_BYTES * (usage.ru_inblock - before[4]))
            faults = usage.ru_majflt - before[1]
            if faults > 0:
                args += b',"major_faults":%d' % faults
        core_wait = core_wait_since(before[2] if before else 0)
        if core_wait is not None:
            args += b',"core_wait_ns":%d' % core_wait
        for key, now, then in zip(WAITS, waited(), before[3] if before else ()):
            if now > then:
                args += b"%b%d" % (key, now - then)
        end(args + b"}")

    return begin_spent, end_spent
