# SPDX-License-Identifier: Apache-2.0
"""What the package headrace and the start-up module share. No program imports it by itself: the names are those of `headrace`."""

STARTUP = 1  # what startup/sitecustomize.py asks of finder.py: one that was installed by itself (pip) may be of another time
