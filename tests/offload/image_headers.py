#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Are there images for the GPUs in a program whose headers libomptarget 19 accepts?

    image_headers.py PROGRAM ARCH...        (sm_NN, gfxNN; others are passed over)

NVIDIA's images since CUDA 13 (ELF ABI version 8) keep the architecture elsewhere, and libomptarget takes none of them.
"""
import struct
import sys
from pathlib import Path

EM_AMDGPU, EM_CUDA = 224, 190
CUDA_64_BIT = 0x400
GFX_NUMBERS = {"gfx908": 0x30, "gfx90a": 0x3F, "gfx942": 0x4C}


def headers(program):
    """(machine, flags) of every 64-bit ELF image inside."""
    at = program.find(b"\x7fELF\x02\x01", 1)
    while at >= 0:
        yield struct.unpack_from("<H", program, at + 18)[0], struct.unpack_from("<I", program, at + 48)[0]
        at = program.find(b"\x7fELF\x02\x01", at + 4)


def main():
    program, *archs = sys.argv[1:]
    accepted = set()
    for machine, flags in headers(Path(program).read_bytes()):
        if machine == EM_CUDA and flags & CUDA_64_BIT:
            accepted.add(f"sm_{flags & 0xFF}")
        if machine == EM_AMDGPU:
            accepted.update(name for name, number in GFX_NUMBERS.items() if flags & 0xFF == number)
    missing = [arch for arch in archs if arch.startswith(("sm_", "gfx")) and arch not in accepted]
    if missing:
        sys.exit(f"no image that libomptarget accepts for {', '.join(missing)}; found {', '.join(sorted(accepted)) or 'none'}")


if __name__ == "__main__":
    main()
