// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/pmix/library.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace diomp::launch::pmix {
namespace {

// The name is the same since PMIx 2, and newer versions keep the functions in use.
constexpr const char *library_name = "libpmix.so.2";

template <typename Function>
bool resolve(void *handle, const char *name, Function &into) {
    into = reinterpret_cast<Function>(dlsym(handle, name));
    return into != nullptr;
}

} // namespace

result<library> load_library() {
    void *const handle = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char *const why = dlerror();
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("this process was started by a PMIx launcher, but its library "
                                 "cannot be opened: {}",
                                 why != nullptr ? why : library_name),
                     fmt::format("install libpmix2 on every node, or put the folder of the "
                                 "launcher's own {} into LD_LIBRARY_PATH, or start with diomp-run",
                                 library_name));
    }
    library functions;
    bool const complete =
        resolve(handle, "PMIx_Init", functions.init) &&
        resolve(handle, "PMIx_Finalize", functions.finalize) &&
        resolve(handle, "PMIx_Put", functions.put) &&
        resolve(handle, "PMIx_Commit", functions.commit) &&
        resolve(handle, "PMIx_Fence_nb", functions.fence_nb) &&
        resolve(handle, "PMIx_Get", functions.get) &&
        resolve(handle, "PMIx_Abort", functions.abort) &&
        resolve(handle, "PMIx_Register_event_handler", functions.register_event_handler) &&
        resolve(handle, "PMIx_Error_string", functions.error_string);
    if (!complete) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} is too old: it lacks a function of PMIx 3", library_name),
                     "install PMIx 3 or newer, or start with diomp-run");
    }
    return functions;
}

} // namespace diomp::launch::pmix
