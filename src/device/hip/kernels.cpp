// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/hip/kernels.h"

#include "device/kernels/embedded.h"

namespace diomp::device::hip {

device_kernels::~device_kernels() {
    for (void *const module : {module_.loaded(), updates_.loaded()}) {
        if (module != nullptr) {
            auto const scope = current_device::enter(*runtime_, device_);
            report(*runtime_, runtime_->module_unload(module), "hipModuleUnload");
        }
    }
}

result<kernel_handle> device_kernels::find(const std::string &name) {
    // HIP's runtime selects the image for its device's architecture, or fails if there is none.
    return module_.find(*runtime_, name, kernels::reduction_amdgpu(),
                        {"hipModuleLoadData", "hipModuleGetFunction"});
}

result<kernel_handle> device_kernels::find_update() {
    return updates_.find(*runtime_, "diomp_update", kernels::update_amdgpu(),
                         {"hipModuleLoadData", "hipModuleGetFunction"});
}

} // namespace diomp::device::hip
