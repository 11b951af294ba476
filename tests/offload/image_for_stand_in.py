#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Labels a program's images for the processor as images for NVIDIA's GPUs, in place, so that LLVM's plugin for CUDA takes them
and the stand-in for the driver (tests/device/fake_cuda_images.cpp) runs them.

    image_for_stand_in.py PROGRAM
"""
import struct
import sys
from pathlib import Path

MAGIC = b"\x7fELF\x02\x01"
EM_X86_64, EM_CUDA = 62, 190
ABI_VERSION_AT, MACHINE_AT, FLAGS_AT = 8, 18, 48
CUDA_ABI_VERSION = 7  # where the flags have the architecture in their lowest byte
SM_80 = 80
CUDA_64_BIT = 0x400


def main():
    path = Path(sys.argv[1])
    program = bytearray(path.read_bytes())
    found = 0
    at = program.find(MAGIC, 1)
    while at >= 0:
        if struct.unpack_from("<H", program, at + MACHINE_AT)[0] == EM_X86_64:
            program[at + ABI_VERSION_AT] = CUDA_ABI_VERSION
            struct.pack_into("<H", program, at + MACHINE_AT, EM_CUDA)
            struct.pack_into("<I", program, at + FLAGS_AT, SM_80 | CUDA_64_BIT)
            found += 1
        at = program.find(MAGIC, at + len(MAGIC))
    if found == 0:
        sys.exit(f"no image for the processor in {path}")
    path.write_bytes(program)


if __name__ == "__main__":
    main()
