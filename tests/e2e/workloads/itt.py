# SPDX-License-Identifier: Apache-2.0
"""Python's ittapi, whose native part has ITT's own static part in it; says what it has said, as w_nvtx.c does."""

import os
import threading
import time

import ittapi


def said(kind, domain, name, count=1):
    print(f"{os.getpid()}\t{kind}\t{domain}\t\t{name}\t{count}\t", flush=True)


@ittapi.task("decorated", domain="py.train")
def work():
    with ittapi.task("inner", domain="py.other"):
        time.sleep(0.001)


def loop(times):
    for _ in range(times):
        work()
    said("range", "py.train", "decorated", times)
    said("range", "py.other", "inner", times)


loop(5)
thread = threading.Thread(target=loop, args=(7,))
thread.start()
thread.join()
overlapped = ittapi.task("overlapped", domain="py.train", overlapped=True)
overlapped.begin()
event = ittapi.event("an event")
event.begin()
event.end()
overlapped.end()
said("span", "py.train", "overlapped")
said("range", "", "an event")
if os.fork() == 0:
    loop(3)
    os._exit(0)
os.wait()
