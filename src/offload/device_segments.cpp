// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/device_segments.h"

#include "base/log.h"
#include "base/sizes.h"
#include "launch/launch.h"
#include "messaging/engine.h"
#include "offload/device_names.h"
#include "offload/device_segment.h"
#include "offload/internal/segment_memory.h"
#include "offload/preregistered_segments.h"
#include "offload/remote_memory.h"
#include "offload/service_devices.h"
#include "offload/table.h"
#include "rma/device_copies.h"
#include "rma/rma.h"
#include "transport/arena.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

namespace diomp::offload {
namespace {

/// LLVM names its host plugin after the processor.
bool is_host_plugin(const char *name) {
    constexpr const char *processors[] = {"x86_64", "aarch64", "ppc64", "s390x"};
    for (const char *const processor : processors) {
        if (std::strcmp(name, processor) == 0) {
            return true;
        }
    }
    return false;
}

/// Segments begin at multiples of this size.
constexpr std::size_t heap_unit = std::size_t{1} << 16;

/// Address ranges of current and former accelerator segments, for was_segment_memory. Each
/// entry is written once, its base last.
struct range {
    std::atomic<std::uintptr_t> base{0};
    std::atomic<std::size_t> nbytes{0};
};
std::array<range, max_devices> g_ranges;

void record_range(const std::byte *base, std::size_t nbytes) {
    for (range &each : g_ranges) {
        if (each.base.load(std::memory_order_relaxed) == 0) {
            each.nbytes.store(nbytes, std::memory_order_relaxed);
            each.base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_release);
            return;
        }
    }
}

} // namespace

bool device_segments::was_segment_memory(const void *address) {
    for (range const &each : g_ranges) {
        std::uintptr_t const base = each.base.load(std::memory_order_acquire);
        if (base == 0) {
            return false;
        }
        if (reinterpret_cast<std::uintptr_t>(address) - base <
            each.nbytes.load(std::memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

device_segments::device_segments(const openmp_devices &openmp, const memory::address_space &space,
                                 const transport::arena &arena, messaging::engine &engine,
                                 rma::transfers &transfers, preregistered_segments &preregistered,
                                 const launch::job_info &job, std::size_t accelerator_bytes)
    : openmp_(openmp), table_(space), engine_(engine), transfers_(transfers),
      preregistered_(preregistered), num_local_(job.local_size),
      accelerator_bytes_(accelerator_bytes),
      host_area_(arena.slot(job.rank) + arena.device_offset(), arena.device_bytes()) {
    transfers.device_copies().set_idle_query([&all = preregistered.devices(),
                                              this]() -> result<bool> {
        auto own = all.poll();
        DIOMP_TRY(own);
        auto of_services = remote() == nullptr ? result<bool>(true)
                                               : remote()->poll(remote_memory::errors::reported);
        DIOMP_TRY(of_services);
        return own.value() && of_services.value();
    });
}

device_segments::~device_segments() {
    engine_.transport().bind_device_context({});
    for (auto const &each : owned_) {
        if (each->memory() != nullptr &&
            (each->num_allocations() > 0 || each->memory()->is_permanent())) {
            each->abandon_memory();
        }
    }
}

accelerators &device_segments::devices() { return preregistered_.devices(); }

device_segment *device_segments::make(const diomp_offload_request &request,
                                      std::uint64_t preferred) {
    if (!segment_table::is_valid_number(request.device)) {
        return nullptr;
    }
    std::lock_guard const guard(creation_mutex_);
    if (device_segment *const there = table_.find(request.device); there != nullptr) {
        return there;
    }
    if (refused_[static_cast<std::size_t>(request.device)]) {
        return nullptr;
    }
    auto made = is_host_plugin(request.plugin) ? make_on_host(request)
                : std::string_view(request.plugin) == DIOMP_REMOTE_PLUGIN
                    ? make_on_remote_device(request)
                    : make_on_accelerator(request, preferred);
    if (made == nullptr) {
        return nullptr;
    }
    log(log_level::info, "device {} ({} {}): segment of {} at {}", request.device, request.plugin,
        request.plugin_device, format_size(made->size_bytes()),
        static_cast<const void *>(made->base()));
    owned_.push_back(std::move(made));
    table_.add(*owned_.back());
    return owned_.back().get();
}

std::unique_ptr<device_segment>
device_segments::make_on_host(const diomp_offload_request &request) {
    std::size_t const each = host_area_.size() / num_host_devices / heap_unit * heap_unit;
    if (each == 0 || request.plugin_device >= num_host_devices) {
        return nullptr;
    }
    auto const area =
        host_area_.subspan(static_cast<std::size_t>(request.plugin_device) * each, each);
    return std::make_unique<device_segment>(request.device, area.data(), each);
}

std::unique_ptr<device_segment>
device_segments::make_on_remote_device(const diomp_offload_request &request) {
    if (remote() != nullptr) {
        devices().use_services(remote()->devices());
        if (remote()->devices().describe(request.plugin_device)) {
            return make_on_accelerator(request, 0); // service_backend chooses
        }
    }
    auto const memory =
        remote() == nullptr ? std::nullopt : remote()->claim_segment(request.plugin_device);
    if (!memory) {
        refused_.set(static_cast<std::size_t>(request.device));
        return nullptr;
    }
    record_range(memory->base, memory->nbytes);
    return std::make_unique<device_segment>(request.device, memory->base, memory->nbytes,
                                            remote_device_index{request.plugin_device});
}

std::unique_ptr<device_segment>
device_segments::make_on_accelerator(const diomp_offload_request &request,
                                     std::uint64_t preferred) {
    accelerator const *const on =
        preregistered_.devices().find(request.plugin, request.plugin_device);
    if (on == nullptr) {
        return nullptr;
    }
    bool const is_on_service = on->made_by == vendor::service;
    auto const on_service =
        is_on_service ? remote()->devices().describe(request.plugin_device) : std::nullopt;
    std::size_t const wanted_bytes = on_service ? on_service->segment_bytes : accelerator_bytes_;
    std::unique_ptr<segment_memory> claimed = preregistered_.claim(*on);
    auto memory = claimed != nullptr
                      ? result<std::unique_ptr<segment_memory>>(std::move(claimed))
                      : segment_memory::create(*on, wanted_bytes, num_local_, preferred);
    if (!memory) {
        log(log_level::warn,
            "device {} gets no segment, so other ranks cannot access its memory: {} [remedy: set "
            "DIOMP_DEVICE_SEGMENT_SIZE to a size that fits on the device]",
            request.device, memory.failure().message());
        refused_.set(static_cast<std::size_t>(request.device));
        return nullptr;
    }
    record_range(memory.value()->base(), memory.value()->size_bytes());
    transfers_.device_copies().enable();
    transport::memory_range const range{kind_of(on->made_by),
                                        reinterpret_cast<std::uintptr_t>(memory.value()->base()),
                                        memory.value()->size_bytes()};
    if (!is_on_service && engine_.transport().supports_memory_range(range)) {
        engine_.transport().bind_device_context([on]() -> std::shared_ptr<void> {
            auto scope = on->backend->make_current(on->id);
            return scope ? std::shared_ptr<device::current_scope>(scope.take()) : nullptr;
        });
    }
    auto made = std::make_unique<device_segment>(request.device, memory.take());
    // A service's GPU has its own runtime, which uses them.
    if (status const reserved = is_on_service ? status() : made->set_up_barrier_words();
        !reserved) {
        log(log_level::warn, "barriers in target regions on device {} fail: {}", request.device,
            reserved.failure().message());
    }
    return made;
}

error device_segments::no_segment_error(int device) const {
    if (auto remote = openmp_.remote_device_error(device)) {
        return std::move(*remote);
    }
    return {OMPX_ERR_UNSUPPORTED,
            fmt::format("the memory of device {} is not in the global address space", device),
            num_unreachable_.load() == 0
                ? "run with DiOMP's libomptarget: compile with diompcc, or start with diomp-run"
                : "see the warnings of the runtime about this device"};
}

result<device_segment *> device_segments::segment_of(int device) {
    int const num = openmp_.count();
    DIOMP_TRY(openmp_devices::check(device, num, "device"));
    if (openmp_.is_host(device, num)) {
        return error(OMPX_ERR_ARG, fmt::format("device {} is the host", device),
                     "use omp_alloc with DiOMP's allocators for host memory");
    }
    device_segment *segment = table_.find(device);
    if (segment == nullptr) {
        openmp_.start(device); // its first allocation creates the segment
        segment = table_.find(device);
    }
    return segment != nullptr ? result<device_segment *>(segment) : no_segment_error(device);
}

const accelerator *device_segments::accelerator_of(int device) {
    auto const segment = segment_of(device);
    return segment && segment.value()->memory() != nullptr ? &segment.value()->memory()->on()
                                                           : nullptr;
}

} // namespace diomp::offload
