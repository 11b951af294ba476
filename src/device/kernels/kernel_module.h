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

    /// The module is loaded at the first question. An error of `load` is remembered, and logged
    /// once. The device is current.
    result<handle> find(const std::string &name, function_ref<result<handle>()> load,
                        function_ref<result<handle>(handle)> find_in);
    /// Null: it has not been loaded. Whoever owns this unloads it, once, when no thread asks.
    [[nodiscard]] handle loaded() const { return module_; }

private:
    std::string const device_;
    std::mutex mutex_; ///< over the rest; held while the driver compiles
    handle module_ = nullptr;
    std::optional<error> failure_;
    std::map<std::string, handle> known_;
};

} // namespace diomp::device::kernels
