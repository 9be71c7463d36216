#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""torchrun for Debian 12: its PyTorch 1.13 does not start under its Python 3.11 otherwise.

Iterating a Flag enum skips the members NONE and ALL from Python 3.11 on, and Std.from_str() then returns None.
"""

from torch.distributed.elastic.multiprocessing import api
from torch.distributed.run import main

api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))

if __name__ == "__main__":
    main()
