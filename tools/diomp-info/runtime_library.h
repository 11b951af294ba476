// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libdiomp.so, opened at run time: opening it starts the runtime, which may fail without ending
// --doctor.
#pragma once

#include "base/result.h"
#include "diomp.h"

#include <string>

namespace diomp::info {

/// Function pointers for diomp-info. The library stays open until the process ends.
struct runtime_library {
    std::string path;    ///< the file, links resolved
    std::string version; ///< from its name
    decltype(&ompx_init) init = nullptr;
    decltype(&ompx_rank_num) rank = nullptr;
    decltype(&ompx_num_ranks) num_ranks = nullptr;
    decltype(&ompx_local_rank_num) local_rank = nullptr;
    decltype(&ompx_num_local_ranks) num_local_ranks = nullptr;
    decltype(&ompx_segment_info) segment_info = nullptr;
    decltype(&ompx_path_info) path_info = nullptr;
    decltype(&ompx_get) get = nullptr;
    decltype(&ompx_alloc) alloc = nullptr;
    decltype(&ompx_put) put = nullptr;
    decltype(&ompx_barrier_group) barrier = nullptr;
    decltype(&ompx_finalize) finalize = nullptr;
};

/// Opens the library, which starts the runtime. The runtime may end this process with a message.
result<runtime_library> open_runtime();

/// Returns whether this process is a rank of a job, where all ranks must start and finalize the
/// runtime.
bool inside_job();

} // namespace diomp::info
