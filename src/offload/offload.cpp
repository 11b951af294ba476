// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device segments: created on first use; their memory is handed to libomptarget.
#include "offload/offload.h"

#include "base/log.h"
#include "base/sizes.h"
#include "offload/internal/segment_memory.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <limits>

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

/// Freed blocks of at least this size return their pages to the system, as the C library's
/// allocator does from the same size at the latest. Smaller blocks keep them: a map that is created
/// and removed with every region would pay a page fault per page each time.
constexpr std::size_t return_pages_bytes = std::size_t{32} << 20;

/// Segments begin at multiples of this size.
constexpr std::size_t heap_unit = std::size_t{1} << 16;

/// Address ranges of current and former accelerator segments, for devices::was_segment_memory. Each
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

bool devices::was_segment_memory(const void *address) {
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

devices::devices(memory::address_space &space, memory::segment &host, memory::directory &registered,
                 const transport::arena &arena, messaging::engine &engine,
                 messaging::call_service &calls, rma::transfers &transfers,
                 preregistered_segments &preregistered, const launch::job_info &job,
                 const options &chosen)
    : space_(space), host_(host), arena_(arena), engine_(engine), transfers_(transfers),
      self_(job.rank), local_rank_(job.local), num_local_(job.local_size),
      alloc_directory_(segments_, host, engine, calls, job.rank), options_(chosen),
      preregistered_(preregistered), accelerators_(preregistered.devices()),
      pinned_(host, chosen.min_pin_bytes), peers_(segments_, accelerators_, engine, calls),
      inflight_(transfers), variables_(alloc_directory_, registered, host, engine, calls),
      bounce_(segments_, variables_, space, host, engine, calls, transfers, job.rank) {
    transfers.set_device_idle_query([this] { return accelerators_.poll(); });
}

void devices::attach(const openmp &functions, std::atomic<std::uint64_t> &epoch) {
    openmp_ = functions;
    epoch_ = &epoch;
    alloc_directory_.set_own_devices(functions.driven_devices);
    variables_.attach(functions.variable_table, [this](const variable &of, int device) {
        return locate_own_copy(of, device);
    });
}

devices::~devices() {
    variables_.stop(); // its thread uses the members below
    engine_.transport().bind_device_context({});
    for (auto const &each : owned_segments_) {
        if (each->memory() != nullptr &&
            (each->num_allocations() > 0 || each->memory()->is_permanent())) {
            each->abandon_memory();
        }
    }
}

device_segment *devices::make_segment(const diomp_offload_request &request) {
    if (!segment_table::is_valid_number(request.device)) {
        return nullptr;
    }
    std::lock_guard const guard(creation_mutex_);
    if (device_segment *const there = segments_.find(request.device); there != nullptr) {
        return there;
    }
    if (refused_[static_cast<std::size_t>(request.device)]) {
        return nullptr;
    }
    auto made = is_host_plugin(request.plugin) ? make_host_segment(request)
                                               : make_accelerator_segment(request);
    if (made == nullptr) {
        return nullptr;
    }
    log(log_level::info, "device {} ({} {}): segment of {} at {}", request.device, request.plugin,
        request.plugin_device, format_size(made->size_bytes()),
        static_cast<const void *>(made->base()));
    owned_segments_.push_back(std::move(made));
    segments_.add(*owned_segments_.back());
    return owned_segments_.back().get();
}

std::unique_ptr<device_segment> devices::make_host_segment(const diomp_offload_request &request) {
    std::size_t const each = arena_.device_bytes() / num_host_devices / heap_unit * heap_unit;
    if (each == 0 || request.plugin_device >= num_host_devices) {
        return nullptr;
    }
    std::byte *const base = arena_.slot(self_) + arena_.device_offset() +
                            static_cast<std::size_t>(request.plugin_device) * each;
    return std::make_unique<device_segment>(request.device, base, each);
}

std::unique_ptr<device_segment>
devices::make_accelerator_segment(const diomp_offload_request &request) {
    accelerator const *const on = accelerators_.find(request.plugin, request.plugin_device);
    if (on == nullptr) {
        return nullptr;
    }
    std::unique_ptr<segment_memory> claimed = preregistered_.claim(*on);
    auto memory = claimed != nullptr
                      ? result<std::unique_ptr<segment_memory>>(std::move(claimed))
                      : segment_memory::create(*on, options_.segment_bytes, num_local_);
    if (!memory) {
        log(log_level::warn,
            "device {} gets no segment, so other ranks cannot access its memory: {} [remedy: set "
            "DIOMP_DEVICE_SEGMENT_SIZE to a size that fits on the device]",
            request.device, memory.failure().message());
        refused_.set(static_cast<std::size_t>(request.device));
        return nullptr;
    }
    record_range(memory.value()->base(), memory.value()->size_bytes());
    has_accelerators_.store(true, std::memory_order_release);
    transfers_.enable_device_copies();
    transport::memory_range const range{kind_of(on->made_by),
                                        reinterpret_cast<std::uintptr_t>(memory.value()->base()),
                                        memory.value()->size_bytes()};
    if (engine_.transport().supports_memory_range(range)) {
        engine_.transport().bind_device_context([on]() -> std::shared_ptr<void> {
            auto scope = on->backend->make_current(on->id);
            return scope ? std::shared_ptr<device::current_scope>(scope.take()) : nullptr;
        });
    }
    return std::make_unique<device_segment>(request.device, memory.take());
}

void *devices::allocate(const diomp_offload_request &request) {
    device_segment *segment = segments_.find(request.device);
    if (segment == nullptr) {
        segment = make_segment(request);
    }
    auto const nbytes = static_cast<std::size_t>(request.nbytes);
    if (segment != nullptr) {
        device_allocation const wanted{OMPX_MEM_LOCAL, true, 0, nbytes, request.host, 0};
        bool is_mapped_again = false;
        if (auto const offset =
                segment->allocate(wanted, memory::heap::granule_bytes, &is_mapped_again)) {
            // libomptarget removes a mapping before it frees its memory. If the same data is mapped
            // in between, threads must not use cached translations to the old copy.
            if (is_mapped_again && epoch_ != nullptr) {
                epoch_->fetch_add(1, std::memory_order_acq_rel);
            }
            if (segment->memory() != nullptr) {
                pinned_.pin_allocation(request.host, nbytes, *segment->memory()->on().backend);
            }
            return segment->base() + *offset;
        }
        if (!has_warned_.exchange(true)) {
            log(log_level::warn,
                "device {} has no space for {} bytes in its segment of {}, of which {} are used: "
                "such memory comes from the device's own allocator from now on, and other ranks "
                "cannot access it [remedy: set DIOMP_DEVICE_SEGMENT_SIZE above {}]",
                request.device, nbytes, format_size(segment->size_bytes()),
                format_size(segment->used_bytes()), format_size(segment->size_bytes()));
        }
    }
    num_unreachable_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

bool devices::release(int device, void *address) {
    device_segment *const segment = segment_containing(address);
    if (segment == nullptr) {
        return false;
    }
    wait_copies();
    std::uint64_t const offset = *segment->offset_of(address);
    wait_inflight_of(*segment, offset);
    if (segment->release_unshared(offset, return_pages_bytes)) {
        return true;
    }
    auto const found = segment->find(offset);
    if (found && !found->by_openmp) {
        log(log_level::warn,
            "{} on device {} is memory of ompx_target_alloc: it is not freed [remedy: free it with "
            "ompx_target_free, on all ranks if it is symmetric or asymmetric]",
            address, device);
    } else if (status const given = deallocate(*segment, offset); !given) {
        log(log_level::warn, "freeing {} on device {}: {}", address, device,
            given.failure().message());
    }
    return true;
}

void devices::before_release(const void *address) {
    if (!inflight_.empty()) {
        wait_inflight(static_cast<const std::byte *>(address),
                      std::numeric_limits<std::size_t>::max());
    }
}

/// Waits for transfers in flight that use the allocation at `offset`.
void devices::wait_inflight_of(const device_segment &segment, std::uint64_t offset) {
    if (inflight_.empty()) { // the usual case: no heap lookup for temporaries of target regions
        return;
    }
    if (auto const what = segment.find(offset)) {
        wait_inflight(segment.base() + what->offset, what->nbytes);
    }
}

status devices::deallocate(device_segment &segment, std::uint64_t offset) {
    wait_copies();
    wait_inflight_of(segment, offset);
    auto const sharers = segment.begin_release(offset);
    if (!sharers) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("no allocation of device {} starts there: it was freed before, or "
                                 "never made",
                                 segment.device()),
                     "free each allocation once, with the address that the allocation returned");
    }
    if (epoch_ != nullptr) {
        epoch_->fetch_add(1, std::memory_order_acq_rel);
    }
    if (sharers->is_used) {
        alloc_directory_.drop_cached(offset);
    }
    // If a sharer cannot be notified, the block is leaked rather than reused, because the sharer
    // may still write to it.
    DIOMP_TRY(alloc_directory_.invalidate(segment.device(), offset, *sharers));
    auto const what = segment.find(offset);
    if (what && what->nbytes >= return_pages_bytes && segment.memory() == nullptr) {
        // Before the block can be allocated again.
        arena_.release_pages(local_rank_,
                             static_cast<std::uint64_t>(segment.base() - arena_.slot(self_)) +
                                 what->offset,
                             what->nbytes);
    }
    segment.release(offset);
    return {};
}

std::optional<error> devices::remote_device_error(int device) const {
    if (openmp_.is_remote == nullptr || !openmp_.is_remote(device)) {
        return std::nullopt;
    }
    return error(OMPX_ERR_UNSUPPORTED,
                 fmt::format("device {} is a remote device: its memory is not in the address space "
                             "of the ranks",
                             device),
                 "exchange the data through host memory (target update from, ompx_put or "
                 "ompx_get, target update to), or use a device of the rank's own host; see "
                 "\"Several ranks\" in docs/remote.md");
}

error devices::no_segment_error(int device) const {
    if (auto remote = remote_device_error(device)) {
        return std::move(*remote);
    }
    return {OMPX_ERR_UNSUPPORTED,
            fmt::format("the memory of device {} is not in the global address space", device),
            num_unreachable_.load() == 0
                ? "run with DiOMP's libomptarget: compile with diompcc, or start with diomp-run"
                : "see the warnings of the runtime about this device"};
}

result<device_segment *> devices::segment_of(int device) {
    int const num = num_devices();
    DIOMP_TRY(check_device(device, num, "device"));
    if (is_host(device, num)) {
        return error(OMPX_ERR_ARG, fmt::format("device {} is the host", device),
                     "use omp_alloc with DiOMP's allocators for host memory");
    }
    if (segments_.find(device) == nullptr && openmp_.allocate != nullptr) {
        // An allocation makes libomptarget start the device and call allocate(), which creates the
        // segment.
        openmp_.free(openmp_.allocate(1, device), device);
    }
    device_segment *const segment = segments_.find(device);
    if (segment == nullptr) {
        return no_segment_error(device);
    }
    return segment;
}

const accelerator *devices::accelerator_of(int device) {
    auto const segment = segment_of(device);
    return segment && segment.value()->memory() != nullptr ? &segment.value()->memory()->on()
                                                           : nullptr;
}

std::optional<device_allocation> devices::find_allocation_at(int device, const void *address) {
    device_segment *const segment = segments_.find(device);
    auto const offset = segment == nullptr ? std::nullopt : segment->offset_of(address);
    auto const found = offset ? segment->find(*offset) : std::nullopt;
    return found && found->offset == *offset ? found : std::nullopt;
}

result<std::uint64_t> devices::allocate_kind(int device, ompx_mem_kind_t kind, std::size_t nbytes,
                                             std::uint64_t number) {
    auto segment = segment_of(device);
    DIOMP_TRY(segment);
    device_segment &from = *segment.value();
    auto const offset =
        from.allocate({kind, false, 0, nbytes, nullptr, number}, memory::heap::granule_bytes);
    if (!offset) {
        return error(
            OMPX_ERR_NOMEM,
            fmt::format("no space for {} bytes in the segment of device {}: it has {}, of "
                        "which {} are used",
                        nbytes, device, format_size(from.size_bytes()),
                        format_size(from.used_bytes())),
            fmt::format("set DIOMP_DEVICE_SEGMENT_SIZE above {}", format_size(from.size_bytes())));
    }
    return *offset;
}

bool devices::in_use() const {
    for (int device = 0; device < max_devices; ++device) {
        device_segment const *const segment = segments_.find(device);
        if (segment != nullptr && segment->num_allocations() > 0) {
            return true;
        }
    }
    return false;
}

} // namespace diomp::offload
