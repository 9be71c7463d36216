# SPDX-License-Identifier: Apache-2.0
"""Code that the package headrace and the start-up module share. Programs import `headrace` instead."""

STARTUP = 1  # the interface of finder.py for startup/sitecustomize.py: an installed package (pip) may be of another version
