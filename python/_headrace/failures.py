# SPDX-License-Identifier: Apache-2.0
"""Marks the exception that ends the making of a batch."""

from . import api
from .stacks import place

MARK = api.name("exception", "headrace", None, api.MARK)

_left = 3  # marks of this process


def failed(error):
    """Marks the type and the line of an exception. Its message stays out, because it can contain data of the program."""
    global _left
    if _left == 0 or isinstance(error, StopIteration) or not isinstance(error, Exception):
        return
    _left -= 1
    try:
        text = '{"type":"%s","line":"%s"}' % (api.class_name(error), _line(error.__traceback__))
        api.mark(MARK, text.encode("utf-8", "replace"))
    except Exception:  # a name of a file or function that is not Unicode
        pass


def _line(traceback):
    """Returns `file:line function` of the innermost frame of the user's own code; if there is none, of the innermost frame."""
    own = last = None
    while traceback is not None:
        last = (traceback.tb_frame.f_code, traceback.tb_lineno)
        own = place(*last) or own
        traceback = traceback.tb_next
    return own or (last and place(*last, foreign=True)) or ""
