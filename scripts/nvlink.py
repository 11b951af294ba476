#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nvlink for clang, over NVIDIA's linker library: links device objects to an image.

    nvlink -o IMAGE -arch sm_NN [-g] OBJECT...

scripts/gpu-toolchain.sh puts it beside ptxas. CUDA 12's own nvlink is in no package of a registry, its library is. The nvlink
of CUDA 13, which is, writes images (ELF ABI version 8) in whose header libomptarget 19 finds neither architecture nor
address size: it takes none of them, and programs run on the host without a word.
"""
import ctypes
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "lib/libnvJitLink.so.12"
INPUT_CUBIN = 1
# Options that clang passes and whose value is the next word, and those that mean nothing here.
WITH_VALUE = ("-o", "-arch", "--arch", "-L", "-l")


def fail(message):
    sys.exit(f"nvlink: {message}")


def read_words(words):
    """({option: value}, options without a value, inputs)"""
    values, switches, inputs = {}, set(), []
    words = iter(words)
    for word in words:
        if word in WITH_VALUE:
            values[word.lstrip("-")] = next(words, None)
        elif word.startswith("-"):
            switches.add(word)
        else:
            inputs.append(Path(word))
    return values, switches, inputs


class Linker:
    """One link. Every call that fails ends the program with the library's own words."""

    def __init__(self, options):
        try:
            self.library = ctypes.CDLL(str(LIBRARY))
        except OSError as error:
            fail(error)
        self.handle = ctypes.c_void_p()
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self.call("nvJitLinkCreate", ctypes.byref(self.handle), ctypes.c_uint32(len(options)), words, handle=False)

    def call(self, name, *arguments, handle=True):
        code = getattr(self.library, name)(*((self.handle,) if handle else ()), *arguments)
        if code != 0:
            fail(f"{name}: error {code}\n{self.log()}")

    def log(self):
        size = ctypes.c_size_t()
        if not self.handle or self.library.nvJitLinkGetErrorLogSize(self.handle, ctypes.byref(size)) != 0:
            return ""
        text = ctypes.create_string_buffer(size.value + 1)
        self.library.nvJitLinkGetErrorLog(self.handle, text)
        return text.value.decode(errors="replace")

    def add(self, path):
        data = path.read_bytes()
        self.call("nvJitLinkAddData", ctypes.c_int(INPUT_CUBIN), data, ctypes.c_size_t(len(data)), str(path).encode())

    def image(self):
        self.call("nvJitLinkComplete")
        size = ctypes.c_size_t()
        self.call("nvJitLinkGetLinkedCubinSize", ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        self.call("nvJitLinkGetLinkedCubin", image)
        return image.raw


def main():
    values, switches, inputs = read_words(sys.argv[1:])
    output, arch = values.get("o"), values.get("arch")
    if not output or not arch or not inputs:
        fail("needs -o IMAGE, -arch sm_NN and an object")
    linker = Linker([f"-arch={arch}"] + (["-g"] if "-g" in switches else []))
    for path in inputs:
        linker.add(path)
    Path(output).write_bytes(linker.image())


if __name__ == "__main__":
    main()
