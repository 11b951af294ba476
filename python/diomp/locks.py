# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locks with the interface of threading.Lock."""
from types import TracebackType
from typing import Optional, Type

from . import _core


class Lock:
    """The lock at a rank; the calling rank holds it."""

    _lock = staticmethod(_core.lock)
    _try_lock = staticmethod(_core.try_lock)
    _unlock = staticmethod(_core.unlock)

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank

    def acquire(self, blocking: bool = True) -> bool:
        """Acquires the lock; with blocking=False only if it is free. Says whether it was acquired."""
        if not blocking:
            return self._try_lock(self.rank)
        self._lock(self.rank)
        return True

    def release(self) -> None:
        """Releases the lock; includes a fence."""
        self._unlock(self.rank)

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.release()


class ThreadLock(Lock):
    """The lock for threads at a rank; the calling thread holds it and excludes all others of all ranks."""

    _lock = staticmethod(_core.thread_lock)
    _try_lock = staticmethod(_core.thread_try_lock)
    _unlock = staticmethod(_core.thread_unlock)
