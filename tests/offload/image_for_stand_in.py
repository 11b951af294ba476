#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Labels a program's images for the processor as images for NVIDIA's GPUs, in place, so that LLVM's plugin for CUDA takes them
and the stand-in for the driver (tests/device/fake_cuda_images.cpp) runs them.

    image_for_stand_in.py [--from N] PROGRAM

--from N: only the images from number N on, which begin with 0. A program for x86_64-pc-linux-gnu and x86_64-unknown-linux-gnu has
two images, so its regions run on processors and on the stand-in.
"""
import argparse
import struct
from pathlib import Path

MAGIC = b"\x7fELF\x02\x01"
EM_X86_64, EM_CUDA = 62, 190
ABI_VERSION_AT, MACHINE_AT, FLAGS_AT = 8, 18, 48
CUDA_ABI_VERSION = 7  # where the flags have the architecture in their lowest byte
SM_80 = 80
CUDA_64_BIT = 0x400


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("program", type=Path)
    arguments = parser.parse_args()
    program = bytearray(arguments.program.read_bytes())
    found = 0
    at = program.find(MAGIC, 1)
    while at >= 0:
        if struct.unpack_from("<H", program, at + MACHINE_AT)[0] == EM_X86_64:
            if found >= arguments.first:
                program[at + ABI_VERSION_AT] = CUDA_ABI_VERSION
                struct.pack_into("<H", program, at + MACHINE_AT, EM_CUDA)
                struct.pack_into("<I", program, at + FLAGS_AT, SM_80 | CUDA_64_BIT)
            found += 1
        at = program.find(MAGIC, at + len(MAGIC))
    if found <= arguments.first:
        parser.error(f"{found} images for the processor in {arguments.program}")
    arguments.program.write_bytes(program)


if __name__ == "__main__":
    main()
