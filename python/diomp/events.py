# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Events in coroutines of asyncio."""
import asyncio
from collections.abc import Generator
from typing import Any

from ._core import Event

# Transfers of a few microseconds complete within the first steps; then the event loop is asked less often.
_STEPS_WITHOUT_SLEEP = 100
_FIRST_SLEEP = 50e-6
_LONGEST_SLEEP = 1e-3


def steps_until_complete(event: Event) -> Generator[Any, None, None]:
    """Lets the other tasks of the event loop run until the event is complete."""
    delay = 0.0
    steps = 0
    while not event.test():
        steps += 1
        if steps > _STEPS_WITHOUT_SLEEP:
            delay = min(max(2 * delay, _FIRST_SLEEP), _LONGEST_SLEEP)
        yield from asyncio.sleep(delay).__await__()
