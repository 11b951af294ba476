// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime's kernels on one device.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace diomp::device::kernels {

/// Loads the module once, and looks up each kernel once. Thread-safe.
class kernel_module {
public:
    using handle = void *; ///< the vendor's handle of a module or kernel

    /// "CUDA device 0", for the log.
    explicit kernel_module(std::string device) : device_(std::move(device)) {}

    /// The vendor's names of the functions that are called, for errors.
    struct call_names {
        const char *load;
        const char *get;
    };
    /// Finds a kernel. Loads the module from `image` (null: not part of this build) on the first
    /// call; a failure is remembered and logged once. The device must be current.
    template <typename Library>
    result<handle> find(const Library &library, const std::string &name, const void *image,
                        call_names calls) {
        auto const load = [&]() -> result<handle> {
            if (image == nullptr) {
                return error(OMPX_ERR_UNSUPPORTED,
                             "this build of the runtime has no kernels for these devices");
            }
            handle made = nullptr;
            DIOMP_TRY(check(library, library.module_load_data(&made, image), calls.load));
            return made;
        };
        auto const get = [&](handle from) -> result<handle> {
            handle found = nullptr;
            DIOMP_TRY(
                check(library, library.module_get_function(&found, from, name.c_str()), calls.get));
            return found;
        };
        return find(name, load, get);
    }
    /// The module; null: not loaded. The owner of this object unloads it once, when no thread uses
    /// it.
    [[nodiscard]] handle loaded() const { return module_; }

private:
    result<handle> find(const std::string &name, function_ref<result<handle>()> load,
                        function_ref<result<handle>(handle)> get);

    std::string const device_;
    std::mutex mutex_; ///< guards the members below; held while the driver compiles
    handle module_ = nullptr;
    std::optional<error> failure_;
    std::map<std::string, handle> kernels_;
};

} // namespace diomp::device::kernels
