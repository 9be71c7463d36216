# SPDX-License-Identifier: Apache-2.0
"""The blocks of shell commands in a Markdown page.

A block is one of commands if its fence names `sh`, or if its first word is a command. An empty line ends an indented block: what
follows is the output. A comment in front of a block keeps it from being run, and gives the reason:

    <!-- not run: needs Slurm -->
    <!-- run before a release: takes half an hour -->
"""

import re
import subprocess

FENCE = re.compile(r"```(\w*)$")
MARK = re.compile(r"<!-- (not run|run before a release): (.+) -->$")
COMMAND = re.compile(r"(sudo |\w+=\S+ )*(\$ \S|(headrace|headraced|headrace-\w+|make-ca|cc|python3|cmake|cpack|ctest|curl|export|head|mkdir|mpiexec|podman|qmgr|srun|systemctl|scripts/\S+|tests/\S+|"
                     r"build-\S+)( |$))")


class Block:
    """A block of a page: `line` is the number of its first line, `mark` None or the kind and the reason of its comment."""

    def __init__(self, page, line, section, language, mark):
        self.page, self.line, self.section, self.language, self.mark = page, line, section, language, mark
        self.lines = []

    def __str__(self):
        return f"{self.page}:{self.line}"

    def has_commands(self):
        return self.language == "sh" or (not self.language and bool(COMMAND.match(self.lines[0].lstrip())))

    def commands(self):
        """The commands, each a text of one or more lines."""
        commands, part = [], []
        for line in self.lines:
            part.append(line)
            text = "\n".join(part)
            if not line.endswith("\\") and subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0:
                commands.append(text)
                part = []
        if part:
            raise ValueError(f"{self}: bash cannot read the last command: {part}")
        return [command for command in commands if re.sub(r"^\s*(#.*)?$", "", command)]


def all_blocks(page, text):
    """Every block of code of `text`, fenced or indented by four spaces after an empty line."""
    blocks, block, fenced, section, mark, previous = [], None, False, "", None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fenced:
            if fence:
                fenced, block, mark = False, None, None
            else:
                block.lines.append(line)
        elif fence:
            fenced, block = True, Block(page, number + 1, section, fence[1], mark)
            blocks.append(block)
        elif line.startswith("    ") and (block or not previous):
            if not block:
                block = Block(page, number, section, "", mark)
                blocks.append(block)
            block.lines.append(line[4:])
        elif line:
            block = None
            found = MARK.match(line.strip())
            if not found and re.match(r"<!-- (not )?run\b", line.strip()):
                raise ValueError(f"{page}:{number}: a mark is `not run: REASON` or `run before a release: REASON`: {line}")
            mark = (found[1], found[2]) if found else None
            section = line.strip("# ") if line.startswith("## ") else section
        else:
            block = None
        previous = line
    return [b for b in blocks if b.lines]


def program(page, text):
    """The first program in Python or C that the page shows, or None."""
    return next(("\n".join(b.lines) + "\n" for b in all_blocks(page, text) if b.language in ("python", "c")), None)


def command_blocks(page, text):
    return [block for block in all_blocks(page, text) if block.has_commands()]
