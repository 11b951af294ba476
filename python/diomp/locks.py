# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locks that are acquired and released as those of threading."""
import time
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

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquires the lock; with blocking=False only if it is free, with a timeout of seconds only if it becomes free
        in time. Says whether it was acquired. A wait with a timeout has no place in the queue of waiting ranks."""
        if not blocking and timeout != -1:
            raise ValueError("a call that does not block takes no timeout")
        if timeout < 0 and timeout != -1:
            raise ValueError("a timeout is -1 or at least 0 seconds")
        if not blocking:
            return self._try_lock(self.rank)
        if timeout == -1:
            self._lock(self.rank)
            return True
        end = time.monotonic() + timeout
        pause = 1e-6
        while not self._try_lock(self.rank):
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, 1e-3)
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
