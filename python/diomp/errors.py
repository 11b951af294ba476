# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Status codes and the exception of diomp."""
import enum


class Status(enum.IntEnum):
    """Result codes of diomp.h."""

    SUCCESS = 0
    ERR_ARG = -1
    ERR_RANK = -2
    ERR_ADDRESS = -3
    ERR_RANGE = -4
    ERR_NOMEM = -5
    ERR_MISMATCH = -6
    ERR_LOCK = -7
    ERR_STATE = -8
    ERR_TIMEOUT = -9
    ERR_PEER = -10
    ERR_SYSTEM = -11
    ERR_UNSUPPORTED = -12
    ERR_BUSY = -13


class Error(RuntimeError):
    """A call has failed: `status` is a Status, str() the text with rank, function, arguments and remedy."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = Status(status)

    def __reduce__(self) -> "tuple[type[Error], tuple[int, str]]":
        return type(self), (int(self.status), str(self))
