# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DiOMP: one program, many ranks, one address space.

    import diomp
    u = diomp.zeros((102, 100))                          # collective: the same array on all ranks
    right = (diomp.rank() + 1) % diomp.num_ranks()
    diomp.put(right, u[0], u[100])                       # my last row into the neighbour's halo
    diomp.barrier()

    diomp-run -n 4 python3 program.py

The import starts the runtime or joins the job; without diomp-run it is a world of one rank. A call that
fails raises diomp.Error. The conventions are those of diomp.h (docs/api.md); docs/python.md lists the
differences.
"""
import atexit as _atexit
import os as _os
import sys as _sys

# Errors are exceptions here unless the user wants them to end the job. The variable is read when the
# library is loaded; programs that this one starts must not inherit it.
_chosen = _os.environ.get("DIOMP_ERRORS")
if _chosen is None:
    _os.environ["DIOMP_ERRORS"] = "return"
try:
    from . import _core
except ImportError as _missing:
    if "libdiomp" not in str(_missing):
        raise
    if "static TLS" in str(_missing):
        raise ImportError(f"{_missing}: packages that were imported before have used the space that the system keeps "
                          "for thread-local data of libraries. Start the program with "
                          "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096.") from _missing
    raise ImportError(f"{_missing}: this package was built with a libdiomp that is no longer there. Build it "
                      "again (DIOMP_DIR=PREFIX pip install ./python), or set LD_LIBRARY_PATH to the library's "
                      "folder.") from _missing
finally:
    if _chosen is None:
        del _os.environ["DIOMP_ERRORS"]

if _chosen is None:
    _core.return_errors()  # if a library of target regions has loaded libdiomp before

# The runtime's end, after the interpreter's, completes collectives, and these may call functions of UserOps. An exception
# that ends the program ends the job, so it must not wait for other ranks.
_atexit.register(lambda: _core.stop_operators(not hasattr(_sys, "last_value")))

from ._core import (  # noqa: E402
    WORLD, Event, Group, UserOp, abort, atomic_add, atomic_and, atomic_compare_swap, atomic_fetch,
    atomic_fetch_add, atomic_fetch_and, atomic_fetch_max, atomic_fetch_min, atomic_fetch_or,
    atomic_fetch_xor, atomic_max, atomic_min, atomic_or, atomic_set, atomic_swap, atomic_xor, barrier,
    barrier_nb, fence, finalize, free, get, get_nb, is_initialized, local_rank, num_local_ranks,
    num_rank_devices, num_ranks, path_info, put, put_nb, put_signal, rank, rank_device, remote_view,
    signal_wait, status_string, wait_rma, wait_until)
from ._core import (  # noqa: E402
    allgather, allgather_nb, allgatherv, allgatherv_nb, allreduce, allreduce_nb, alltoall, alltoall_nb,
    alltoallv, alltoallv_nb, bcast, bcast_nb, exscan, exscan_nb, gather, gather_nb, gatherv, gatherv_nb,
    reduce, reduce_nb, reduce_scatter, reduce_scatter_nb, scan, scan_nb, scatter, scatter_nb, scatterv,
    scatterv_nb)
from .constants import (  # noqa: E402
    AVG, BAND, BOR, BXOR, CMP_EQ, CMP_GE, CMP_GT, CMP_LE, CMP_LT, CMP_NE, LAND, LOR, MAX, MIN, PROD,
    RMA_ALL, RMA_ATOMIC, RMA_GET, RMA_PUT, SIGNAL_ADD, SIGNAL_SET, SUM, Cmp, MemKind, Op, Rma, Signal)
from .devices import DeviceArray, device_array, device_empty, device_full, device_zeros  # noqa: E402
from .errors import Error, Status  # noqa: E402
from .locks import Lock, ThreadLock  # noqa: E402
from .memory import (  # noqa: E402
    AddressInfo, SegmentInfo, address_info, array, collect, empty, full, register, segment_info,
    unregister, zeros)

__version__ = "1.0.0"
__all__ = [_name for _name in dir() if not _name.startswith("_") and _name not in ("constants", "devices", "errors", "events",
                                                                                  "locks", "memory")]
