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

/// Asks the vendor's library once for the module, and once for each kernel. Any thread.
class kernel_module {
public:
    using handle = void *; ///< the vendor's, of a module or of a kernel

    /// "CUDA device 0", for the log.
    explicit kernel_module(std::string device) : device_(std::move(device)) {}

    /// What the vendor calls the functions that are asked, for errors.
    struct call_names {
        const char *load;
        const char *get;
    };
    /// The module is loaded from `image` (null: this build has none) at the first question. An
    /// error of that is remembered, and logged once. The device is current.
    template <typename Library>
    result<handle> find(const Library &library, const std::string &name, const void *image,
                        call_names calls) {
        auto const load = [&]() -> result<handle> {
            if (image == nullptr) {
                return error(OMPX_ERR_UNSUPPORTED,
                             "this build of the runtime has no kernels for them");
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
    /// Null: it has not been loaded. Whoever owns this unloads it, once, when no thread asks.
    [[nodiscard]] handle loaded() const { return module_; }

private:
    result<handle> find(const std::string &name, function_ref<result<handle>()> load,
                        function_ref<result<handle>(handle)> get);

    std::string const device_;
    std::mutex mutex_; ///< over the rest; held while the driver compiles
    handle module_ = nullptr;
    std::optional<error> failure_;
    std::map<std::string, handle> known_;
};

} // namespace diomp::device::kernels
