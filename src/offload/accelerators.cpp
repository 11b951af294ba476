// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/accelerators.h"

#include "base/log.h"

#include <algorithm>

namespace diomp::offload {

accelerators::maker *accelerators::load(vendor of, bool wanted) {
    maker &known = makers_[of];
    if (known.backend == nullptr && !known.failed) {
        auto made = of == vendor::cuda ? device::create_cuda({options_.cuda_library})
                                       : device::create_hip({options_.hip_library});
        if (!made && !wanted) {
            return nullptr;
        }
        if (!made) {
            known.failed = true;
            log(log_level::warn, "memory of {} devices is not in the global address space: {}",
                of == vendor::cuda ? "CUDA" : "HIP", made.failure().message());
            return nullptr;
        }
        known.backend = made.take();
        known.streams = std::make_unique<device::stream_pool>(
            *known.backend, device::stream_pool::options{options_.max_active_streams});
        for (int number = 0; number < known.backend->num_devices(); ++number) {
            known.devices.push_back(
                {of, device::device_id(number), known.backend.get(), known.streams.get()});
        }
        pools_[static_cast<std::size_t>(of)].store(known.streams.get(), std::memory_order_release);
    }
    return known.failed ? nullptr : &known;
}

const accelerator *accelerators::find(const std::string &plugin, int plugin_device) {
    vendor const of = plugin == "cuda"     ? vendor::cuda
                      : plugin == "amdgpu" ? vendor::hip
                                           : vendor::none;
    if (of == vendor::none) {
        return nullptr;
    }
    std::lock_guard const guard(mutex_);
    maker const *const with = load(of, true);
    return with == nullptr || plugin_device < 0 || plugin_device >= with->backend->num_devices()
               ? nullptr
               : &with->devices[static_cast<std::size_t>(plugin_device)];
}

const accelerator *accelerators::find(vendor made_by, const device::device_uuid &uuid) {
    std::lock_guard const guard(mutex_);
    maker const *const with = made_by == vendor::none ? nullptr : load(made_by, true);
    if (with == nullptr) {
        return nullptr;
    }
    auto const found = std::ranges::find_if(with->devices, [&](const accelerator &each) {
        auto const own = with->backend->uuid_of(each.id);
        return own && own.value() == uuid;
    });
    return found == with->devices.end() ? nullptr : &*found;
}

std::span<const accelerator> accelerators::all_of(vendor made_by) {
    std::lock_guard const guard(mutex_);
    maker const *const with = load(made_by, false);
    return with == nullptr ? std::span<const accelerator>() : with->devices;
}

result<bool> accelerators::poll() {
    bool idle = true;
    for (auto const &each : pools_) {
        device::stream_pool *const pool = each.load(std::memory_order_acquire);
        if (pool == nullptr) {
            continue;
        }
        auto quiet = pool->poll();
        DIOMP_TRY(quiet);
        idle = idle && quiet.value();
    }
    return idle;
}

} // namespace diomp::offload
