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
    auto const load = [&]() -> result<module_handle> {
        const void *const images = kernels::reduction_amdgpu();
        if (images == nullptr) {
            return error(OMPX_ERR_UNSUPPORTED, "this build of the runtime has no kernels for them");
        }
        module_handle loaded = nullptr;
        // The runtime takes the image of its device's architecture, or says that there is none.
        DIOMP_TRY(
            check(*runtime_, runtime_->module_load_data(&loaded, images), "hipModuleLoadData"));
        return loaded;
    };
    auto const find_in = [&](module_handle in) -> result<kernel_handle> {
        kernel_handle found = nullptr;
        DIOMP_TRY(check(*runtime_, runtime_->module_get_function(&found, in, name.c_str()),
                        "hipModuleGetFunction"));
        return found;
    };
    return module_.find(name, load, find_in);
}

} // namespace diomp::device::hip
