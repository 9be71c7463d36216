# SPDX-License-Identifier: Apache-2.0
"""Code that the package headrace and the start-up module share. Programs import `headrace` instead."""

STARTUP = 1  # version of finder.py's interface: sitecustomize.py may import a package of another version, which pip installed
