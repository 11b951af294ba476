// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/context.h"

#include "device/kernels/embedded.h"

#include <algorithm>

namespace diomp::device::cuda {

result<std::shared_ptr<context>> context::retain(std::shared_ptr<const library> driver,
                                                 ordinal device) {
    context_handle handle = nullptr;
    DIOMP_TRY(check(*driver, driver->primary_context_retain(&handle, device),
                    "cuDevicePrimaryCtxRetain"));
    return std::shared_ptr<context>(new context(std::move(driver), device, handle));
}

context::~context() {
    for (void *const module : {kernels_.loaded(), updates_.loaded()}) {
        if (module != nullptr) {
            auto const scope = current::enter(*this);
            report(*driver_, driver_->module_unload(module), "cuModuleUnload");
        }
    }
    report(*driver_, driver_->primary_context_release(device_), "cuDevicePrimaryCtxRelease");
}

result<context::current> context::current::enter(const context &in) {
    DIOMP_TRY(check(*in.driver_, in.driver_->context_push(in.handle_), "cuCtxPushCurrent"));
    return current(in);
}

context::current::~current() {
    if (of_ != nullptr) {
        context_handle was = nullptr;
        report(*of_->driver_, of_->driver_->context_pop(&was), "cuCtxPopCurrent");
    }
}

result<kernel_handle> context::kernel(const std::string &name) {
    return kernels_.find(*driver_, name, kernels::reduction_ptx(),
                         {"cuModuleLoadData", "cuModuleGetFunction"});
}

result<kernel_handle> context::update_kernel() {
    return updates_.find(*driver_, "diomp_update", kernels::update_ptx(),
                         {"cuModuleLoadData", "cuModuleGetFunction"});
}

status context::open_to(const context &reader) {
    std::lock_guard const guard(mutex_);
    if (std::ranges::find(readers_, reader.device_) != readers_.end()) {
        return {};
    }
    {
        // Opens memory of cuMemAlloc and enables direct copies. The program may have done it
        // before.
        auto scope = current::enter(reader);
        DIOMP_TRY(scope);
        code const outcome = driver_->context_enable_peer_access(handle_, 0);
        if (outcome != peer_access_already_enabled) {
            DIOMP_TRY(check(*driver_, outcome, "cuCtxEnablePeerAccess"));
        }
    }
    for (mapped_memory *const each : mapped_) {
        DIOMP_TRY(each->grant_access(reader.device_));
    }
    readers_.push_back(reader.device_);
    return {};
}

status context::map_for_readers(mapped_memory &owner,
                                function_ref<status(std::span<const ordinal>)> map) {
    std::lock_guard const guard(mutex_);
    DIOMP_TRY(map(readers_));
    if (std::ranges::find(mapped_, &owner) == mapped_.end()) {
        mapped_.push_back(&owner);
    }
    return {};
}

void context::remove_mapped(mapped_memory &owner) {
    std::lock_guard const guard(mutex_);
    std::erase(mapped_, &owner);
}

} // namespace diomp::device::cuda
