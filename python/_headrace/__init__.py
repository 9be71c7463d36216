# SPDX-License-Identifier: Apache-2.0
"""Code that the package headrace and the start-up module share. Programs import `headrace` instead."""

STARTUP = 2  # version of the interface of finder.py; pip may have installed another version than that of sitecustomize.py
