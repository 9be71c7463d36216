# SPDX-License-Identifier: Apache-2.0
"""What the package headrace and the start-up module share. No program imports it by itself: the names are those of `headrace`."""
