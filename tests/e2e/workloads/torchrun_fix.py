# SPDX-License-Identifier: Apache-2.0
"""torchrun for Debian's torch 1.13 on Python 3.11, where Std.from_str() gives None for "0" and
"3".
"""

from torch.distributed.elastic.multiprocessing import api
from torch.distributed.run import main

api.Std.from_str = classmethod(lambda cls, value: cls(int(value)))
main()
