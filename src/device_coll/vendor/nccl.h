// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of NCCL's interface that DiOMP calls; RCCL has the same interface. Types and numbers are
// declared here, after nccl.h of NCCL 2.32.3, so that the build needs neither library; they are
// part of the binary interface. All functions exist since NCCL 2.14 (RCCL of ROCm 5.5), which
// introduced nonblocking communicators.
//
// Gather, scatter and alltoall are not called, though newer versions have them: the two libraries
// name them differently, and sends and receives in a group do the same.
#pragma once

#include "device_coll/vendor/vendor_library.h"

#include <climits>

#include <cstddef>

namespace diomp::device_coll::vendor {

using communicator = void *; ///< ncclComm_t
using stream = void *;       ///< cudaStream_t, hipStream_t

inline constexpr code success = 0;
inline constexpr code unhandled_device_error = 1;
inline constexpr code invalid_argument = 4;
inline constexpr code invalid_usage = 5;
inline constexpr code remote_error = 6;
inline constexpr code in_progress = 7; ///< not an error: query again

/// ncclDataType_t.
enum class element : int {
    int8 = 0,
    uint8 = 1,
    int32 = 2,
    uint32 = 3,
    int64 = 4,
    uint64 = 5,
    float16 = 6,
    float32 = 7,
    float64 = 8,
    bfloat16 = 9
};

/// ncclRedOp_t.
enum class reduction : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

/// First fields of ncclConfig_t. Later versions append fields; a library reads `size` bytes and the
/// fields that `version` had. The last field is padding in 2.14 and a field with the value "not
/// set" later.
struct communicator_config {
    std::size_t size = sizeof(communicator_config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 0;
    int not_set = INT_MIN;
};
static_assert(sizeof(communicator_config) == 24);

// each(our name, name in the library, parameters); all return a code
#define DIOMP_NCCL_FUNCTIONS(each)                                                                 \
    each(get_version, ncclGetVersion, (int *version));                                             \
    each(get_unique_id, ncclGetUniqueId, (unique_id * into));                                      \
    each(init_rank, ncclCommInitRankConfig,                                                        \
         (communicator * into, int count, unique_id id, int rank, communicator_config *config));   \
    each(destroy, ncclCommDestroy, (communicator of));                                             \
    each(abort, ncclCommAbort, (communicator of));                                                 \
    each(get_async_error, ncclCommGetAsyncError, (communicator of, code * state));                 \
    each(group_start, ncclGroupStart, ());                                                         \
    each(group_end, ncclGroupEnd, ());                                                             \
    each(broadcast, ncclBroadcast,                                                                 \
         (const void *from, void *to, std::size_t count, element type, int root, communicator in,  \
          stream on));                                                                             \
    each(reduce, ncclReduce,                                                                       \
         (const void *from, void *to, std::size_t count, element type, reduction op, int root,     \
          communicator in, stream on));                                                            \
    each(all_reduce, ncclAllReduce,                                                                \
         (const void *from, void *to, std::size_t count, element type, reduction op,               \
          communicator in, stream on));                                                            \
    each(all_gather, ncclAllGather,                                                                \
         (const void *from, void *to, std::size_t count, element type, communicator in,            \
          stream on));                                                                             \
    each(reduce_scatter, ncclReduceScatter,                                                        \
         (const void *from, void *to, std::size_t count, element type, reduction op,               \
          communicator in, stream on));                                                            \
    each(send, ncclSend,                                                                           \
         (const void *from, std::size_t count, element type, int peer, communicator in,            \
          stream on));                                                                             \
    each(receive, ncclRecv,                                                                        \
         (void *to, std::size_t count, element type, int peer, communicator in, stream on))

struct functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name cannot stand in parentheses
#define DIOMP_NCCL_MEMBER(name, symbol, parameters) code(*name) parameters = nullptr
    DIOMP_NCCL_FUNCTIONS(DIOMP_NCCL_MEMBER);
#undef DIOMP_NCCL_MEMBER
    const char *(*get_error_string)(code) = nullptr;
    const char *(*get_last_error)(communicator) = nullptr;
};

} // namespace diomp::device_coll::vendor
