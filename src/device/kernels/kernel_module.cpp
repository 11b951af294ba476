// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/kernels/kernel_module.h"

#include "base/log.h"

namespace diomp::device::kernels {

result<kernel_module::handle> kernel_module::find(const std::string &name,
                                                  function_ref<result<handle>()> load,
                                                  function_ref<result<handle>(handle)> get) {
    std::lock_guard const guard(mutex_);
    if (module_ == nullptr && !failure_) {
        if (auto loaded = load(); loaded) {
            module_ = loaded.value();
        } else {
            failure_ = loaded.take_failure();
            log(log_level::info, "{} does not run the kernels: {}", device_, failure_->message());
        }
    }
    if (failure_) {
        return error(failure_->code(), failure_->message(), failure_->remedy());
    }
    auto const known = kernels_.find(name);
    if (known != kernels_.end()) {
        return known->second;
    }
    auto found = get(module_);
    DIOMP_TRY(found);
    return kernels_[name] = found.value();
}

} // namespace diomp::device::kernels
