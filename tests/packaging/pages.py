#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the first example of some pages into a folder, each with a file of the text that it prints on 4 ranks; of remote
devices on 2.

    pages.py SOURCE_DIR FOLDER
"""
import re
import sys
from pathlib import Path

source, folder = map(Path, sys.argv[1:])
sys.path.insert(0, str(source / "tests" / "docs"))
import examples  # noqa: E402  the path is set above

for page, name in (("README.md", "halo"), ("docs/device-calls.md", "device"), ("docs/fortran.md", "rows")):
    text = (source / page).read_text(encoding="utf-8")
    (first, *_) = [each for each in examples.parse(page, text) if each.kind == "program"]
    (folder / f"{name}.{first.suffix}").write_text(first.source, encoding="utf-8")
    (folder / f"{name}.expected").write_text(first.prints[4], encoding="utf-8")

# With a remote device for each rank.
text = (source / "docs/remote.md").read_text(encoding="utf-8")
(first, *_) = [each for each in examples.parse("docs/remote.md", text) if each.is_remote]
(folder / "regions.c").write_text(first.source, encoding="utf-8")
(folder / "regions.expected").write_text(first.prints[2], encoding="utf-8")

# The page's program prints nothing: here each rank looks whether its left neighbour's row has come.
block = re.search(r"^```python\n(.*?)^```$", (source / "docs/python.md").read_text(encoding="utf-8"), re.M | re.S)[1]
program = block.replace("u = diomp.zeros((102, 100))", "u = diomp.full((102, 100), diomp.rank() + 1.0)", 1)
if program == block:
    sys.exit("docs/python.md: its first program does not begin as this test expects")
program += "import numpy\n" \
    "left = (diomp.rank() - 1) % diomp.num_ranks()\n" \
    "arrived = numpy.array([int((u[0] == left + 1).all() and (u[1:] == diomp.rank() + 1).all())])\n" \
    "total = numpy.zeros(1, int)\n" \
    "diomp.allreduce(total, arrived)\n" \
    "if diomp.rank() == 0:\n" \
    "    print('rows arrived:', total[0])\n"
(folder / "program.py").write_text(program, encoding="utf-8")
(folder / "program.expected").write_text("rows arrived: 4\n", encoding="utf-8")
