// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/accelerators.h"

#include "base/log.h"

namespace diomp::offload {

accelerators::maker *accelerators::load(vendor of) {
    maker &wanted = makers_[of];
    if (wanted.backend == nullptr && !wanted.failed) {
        auto made = of == vendor::cuda ? device::create_cuda({options_.cuda_library})
                                       : device::create_hip({options_.hip_library});
        if (!made) {
            wanted.failed = true;
            log(log_level::warn, "memory of {} devices is not in the global address space: {}",
                of == vendor::cuda ? "CUDA" : "HIP", made.failure().message());
            return nullptr;
        }
        wanted.backend = made.take();
        wanted.streams = std::make_unique<device::stream_pool>(
            *wanted.backend, device::stream_pool::options{options_.max_active_streams});
        wanted.known.resize(static_cast<std::size_t>(wanted.backend->num_devices()));
        pools_[static_cast<std::size_t>(of)].store(wanted.streams.get(), std::memory_order_release);
    }
    return wanted.failed ? nullptr : &wanted;
}

const accelerator *accelerators::describe(maker &with, vendor of, int number) {
    if (number < 0 || number >= with.backend->num_devices()) {
        return nullptr;
    }
    auto &entry = with.known[static_cast<std::size_t>(number)];
    if (entry == nullptr) {
        auto about = with.backend->describe(device::device_id(number));
        if (!about) {
            log(log_level::warn, "{} device {}: {}", with.backend->name(), number,
                about.failure().message());
            return nullptr;
        }
        entry = std::make_unique<accelerator>(accelerator{
            of, device::device_id(number), with.backend.get(), with.streams.get(), about.take()});
    }
    return entry.get();
}

const accelerator *accelerators::find(const std::string &plugin, int plugin_device) {
    vendor const of = plugin == "cuda"     ? vendor::cuda
                      : plugin == "amdgpu" ? vendor::hip
                                           : vendor::none;
    if (of == vendor::none) {
        return nullptr;
    }
    std::lock_guard const guard(mutex_);
    maker *const with = load(of);
    return with == nullptr ? nullptr : describe(*with, of, plugin_device);
}

const accelerator *accelerators::find(vendor made_by, const std::array<std::byte, 16> &uuid) {
    std::lock_guard const guard(mutex_);
    maker *const with = made_by == vendor::none ? nullptr : load(made_by);
    for (int number = 0; with != nullptr && number < with->backend->num_devices(); ++number) {
        auto const *const one = describe(*with, made_by, number);
        if (one != nullptr && one->about.uuid == uuid) {
            return one;
        }
    }
    return nullptr;
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
