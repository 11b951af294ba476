// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libpmix, loaded at run time when a PMIx launcher has started this process, so that one build of
// libdiomp also runs where PMIx is not installed.
#pragma once

#include "base/result.h"

#include <pmix.h>

namespace diomp::launch::pmix {

/// The functions of PMIx in use.
struct library {
    decltype(&PMIx_Init) init = nullptr;
    decltype(&PMIx_Finalize) finalize = nullptr;
    decltype(&PMIx_Put) put = nullptr;
    decltype(&PMIx_Commit) commit = nullptr;
    decltype(&PMIx_Fence_nb) fence_nb = nullptr;
    decltype(&PMIx_Get) get = nullptr;
    decltype(&PMIx_Abort) abort = nullptr;
    decltype(&PMIx_Register_event_handler) register_event_handler = nullptr;
    decltype(&PMIx_Error_string) error_string = nullptr;
};

/// Loads libpmix. It is never unloaded, since it has threads.
result<library> load_library();

} // namespace diomp::launch::pmix
