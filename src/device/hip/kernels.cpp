// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/kernels.h"

#include "device/kernels/embedded.h"

namespace diomp::device::hip {

device_kernels::~device_kernels() {
    if (module_.loaded() != nullptr) {
        auto const inside = current_device::enter(*runtime_, device_);
        report(*runtime_, runtime_->module_unload(module_.loaded()), "hipModuleUnload");
    }
}

result<kernel_handle> device_kernels::find(const std::string &name) {
    // The runtime takes the image of its device's architecture, or says that there is none.
    return module_.find(*runtime_, name, kernels::reduction_amdgpu(),
                        {"hipModuleLoadData", "hipModuleGetFunction"});
}

} // namespace diomp::device::hip
