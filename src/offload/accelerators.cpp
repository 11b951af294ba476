// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/accelerators.h"

#include "base/log.h"
#include "offload/device_names.h"
#include "offload/internal/service_backend.h"

#include <algorithm>

namespace diomp::offload {

void accelerators::use_services(service_devices &all) {
    std::lock_guard const guard(mutex_);
    services_ = &all;
}

result<std::unique_ptr<device::backend>> accelerators::make_backend(vendor of) {
    if (of != vendor::service) {
        return of == vendor::cuda ? device::create_cuda({options_.cuda_library})
                                  : device::create_hip({options_.hip_library});
    }
    if (services_ == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, "the job has no remote devices");
    }
    auto made = std::make_unique<service_backend>(*services_);
    of_services_ = made.get();
    return std::unique_ptr<device::backend>(std::move(made));
}

// The vendors' libraries know whose an address is.
result<std::byte *> accelerators::register_memory(const accelerator &on, void *address,
                                                  std::size_t nbytes) {
    if (on.made_by != vendor::service) {
        return static_cast<std::byte *>(address);
    }
    std::lock_guard const guard(mutex_);
    return of_services_->register_memory(on.id, reinterpret_cast<std::uintptr_t>(address), nbytes);
}

accelerators::vendor_state *accelerators::load(vendor of, bool warn_if_missing) {
    vendor_state &known = vendors_[of];
    if (known.backend == nullptr && !known.failed) {
        auto made = make_backend(of);
        if (!made && !warn_if_missing) {
            return nullptr;
        }
        if (!made) {
            known.failed = true;
            log(log_level::warn, "memory of {} devices is not in the global address space: {}",
                of == vendor::cuda  ? "CUDA"
                : of == vendor::hip ? "HIP"
                                    : "services'",
                made.failure().message());
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
    vendor const of = plugin == "cuda"                ? vendor::cuda
                      : plugin == "amdgpu"            ? vendor::hip
                      : plugin == DIOMP_REMOTE_PLUGIN ? vendor::service
                                                      : vendor::none;
    if (of == vendor::none) {
        return nullptr;
    }
    std::lock_guard const guard(mutex_);
    vendor_state const *const state = load(of, true);
    return state == nullptr || plugin_device < 0 || plugin_device >= state->backend->num_devices()
               ? nullptr
               : &state->devices[static_cast<std::size_t>(plugin_device)];
}

const accelerator *accelerators::find(vendor made_by, const device::device_uuid &uuid) {
    std::lock_guard const guard(mutex_);
    vendor_state const *const state = made_by == vendor::none ? nullptr : load(made_by, true);
    if (state == nullptr) {
        return nullptr;
    }
    auto const found = std::ranges::find_if(state->devices, [&](const accelerator &each) {
        auto const own = state->backend->uuid_of(each.id);
        return own && own.value() == uuid;
    });
    return found == state->devices.end() ? nullptr : &*found;
}

std::span<const accelerator> accelerators::all_of(vendor made_by) {
    std::lock_guard const guard(mutex_);
    vendor_state const *const state = load(made_by, false);
    return state == nullptr ? std::span<const accelerator>() : state->devices;
}

result<bool> accelerators::poll() {
    bool idle = true;
    for (auto const &each : pools_) {
        device::stream_pool *const pool = each.load(std::memory_order_acquire);
        if (pool == nullptr) {
            continue;
        }
        auto pool_idle = pool->poll();
        DIOMP_TRY(pool_idle);
        idle = idle && pool_idle.value();
    }
    return idle;
}

} // namespace diomp::offload
