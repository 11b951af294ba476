// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels that reduce arrays on a device: which one does it, and the module that has them.
#pragma once

#include "device/cuda/library.h"
#include "device/device.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace diomp::device::cuda {

/// The kernel for a reduction, whose elements are parts of those of the type: a complex sum is one
/// of twice as many floats.
struct kernel_choice {
    std::string name;
    std::size_t element_bytes = 0;
    std::size_t per_element = 1;
};
/// nullopt: there is none.
std::optional<kernel_choice> choose_kernel(const reduction &how);

/// Of one device. The context that it is used in is current in every call. Any thread.
class kernel_module {
public:
    /// The module is loaded at the first question. An error is remembered, and logged once.
    result<kernel_handle> find(const library &driver, ordinal device, const std::string &name);
    [[nodiscard]] bool is_loaded() const { return module_ != nullptr; }
    /// Before the context ends, once, if it is loaded.
    void unload(const library &driver) noexcept;

private:
    status load(const library &driver);

    std::mutex mutex_; ///< over all; held while the driver compiles
    module_handle module_ = nullptr;
    std::optional<error> failure_;
    std::map<std::string, kernel_handle> known_;
};

} // namespace diomp::device::cuda
