# SPDX-License-Identifier: Apache-2.0
"""The magics of `%load_ext headrace`."""

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display

from .answers import Error
from .sections import HOW_TO_RECORD, NOT_RECORDED, Section, recorded_store


@magics_class
class Headrace(Magics):
    """`%%headrace` runs a cell and shows what it did and waited for. `%headrace` shows what the notebook lost time to until now."""

    @cell_magic("headrace")
    def of_cell(self, _line, cell):
        """Runs the cell."""
        with Section() as section:
            result = self.shell.run_cell(cell)
        if section.store is None:
            print(f"{NOT_RECORDED}: {HOW_TO_RECORD}")
        elif result.success:
            display(section)
        result.raise_error()

    @line_magic("headrace")
    def of_notebook(self, _line):
        """Returns the verdict."""
        store = recorded_store()
        if store is None:
            raise Error(NOT_RECORDED, HOW_TO_RECORD, 66)
        return store.verdict()
