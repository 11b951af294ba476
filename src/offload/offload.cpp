// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Segments of devices: made on first use, their memory handed to libomptarget.
#include "offload/offload.h"

#include "base/log.h"
#include "base/settings.h"
#include "offload/segment_memory.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <limits>

namespace diomp::offload {
namespace {

/// LLVM calls its host plugin by the processor.
bool is_host_plugin(const char *name) {
    constexpr const char *processors[] = {"x86_64", "aarch64", "ppc64", "s390x"};
    for (const char *const processor : processors) {
        if (std::strcmp(name, processor) == 0) {
            return true;
        }
    }
    return false;
}

/// Freed blocks from this size up give their pages back to the system, as the C library's allocator
/// does from the same size at the latest: below, a map that comes and goes with every region would
/// pay a page fault per page each time.
constexpr std::size_t return_pages_bytes = std::size_t{32} << 20;

/// Segments begin at multiples of this.
constexpr std::size_t heap_unit = std::size_t{1} << 16;

/// Where segments of accelerators are or were, for devices::was_ours. Written once, the base last.
struct range {
    std::atomic<std::uintptr_t> base{0};
    std::atomic<std::size_t> nbytes{0};
};
std::array<range, max_devices> g_ranges;

void remember_range(const std::byte *base, std::size_t nbytes) {
    for (range &each : g_ranges) {
        if (each.base.load(std::memory_order_relaxed) == 0) {
            each.nbytes.store(nbytes, std::memory_order_relaxed);
            each.base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_release);
            return;
        }
    }
}

} // namespace

bool devices::was_ours(const void *address) {
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
                 const conduit::window &window, conduit::engine &engine,
                 conduit::call_service &calls, rma::transfers &transfers, early_segments &early,
                 const launch::job_info &job, const options &chosen)
    : space_(space), host_(host), window_(window), engine_(engine), transfers_(transfers),
      self_(job.rank), place_(job.local), num_local_(job.local_size),
      ledger_(segments_, host, engine, calls, job.rank), options_(chosen), early_(early),
      accelerators_(early.devices()), pinned_(host, chosen.pin_from_bytes),
      peers_(segments_, accelerators_, engine, calls), uses_(transfers),
      variables_(ledger_, registered, host, engine, calls),
      bounce_(segments_, variables_, space, host, engine, calls, transfers, job.rank) {
    transfers.ask_devices([this] { return accelerators_.poll(); });
}

void devices::use(const openmp &functions, std::atomic<std::uint64_t> &epoch) {
    openmp_ = functions;
    epoch_ = &epoch;
    ledger_.know_own_devices(functions.driven);
    variables_.use(functions.variable_table,
                   [this](const variable &of, int device) { return own_copy_of(of, device); });
}

devices::~devices() {
    variables_.stop(); // its thread uses all of this
    engine_.transport().work_in({});
    for (auto const &each : made_) {
        if (each->memory() != nullptr &&
            (each->num_allocations() > 0 || each->memory()->is_kept())) {
            each->abandon_memory();
        }
    }
}

device_segment *devices::make_segment(const diomp_offload_request &request) {
    if (!segment_table::has_place_for(request.device)) {
        return nullptr;
    }
    std::lock_guard const guard(making_);
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
    made_.push_back(std::move(made));
    segments_.add(*made_.back());
    return made_.back().get();
}

std::unique_ptr<device_segment> devices::make_host_segment(const diomp_offload_request &request) {
    std::size_t const each = window_.device_bytes() / num_host_devices / heap_unit * heap_unit;
    if (each == 0 || request.plugin_device >= num_host_devices) {
        return nullptr;
    }
    std::byte *const base = window_.slot(self_) + window_.device_offset() +
                            static_cast<std::size_t>(request.plugin_device) * each;
    return std::make_unique<device_segment>(request.device, base, each);
}

std::unique_ptr<device_segment>
devices::make_accelerator_segment(const diomp_offload_request &request) {
    accelerator const *const on = accelerators_.find(request.plugin, request.plugin_device);
    if (on == nullptr) {
        return nullptr;
    }
    std::unique_ptr<segment_memory> ready = early_.take(*on);
    auto memory = ready != nullptr
                      ? result<std::unique_ptr<segment_memory>>(std::move(ready))
                      : segment_memory::create(*on, options_.segment_bytes, num_local_);
    if (!memory) {
        log(log_level::warn,
            "device {} gets no segment, other ranks cannot reach its memory: {} [remedy: set "
            "DIOMP_DEVICE_SEGMENT_SIZE to what the device has room for]",
            request.device, memory.failure().message());
        refused_.set(static_cast<std::size_t>(request.device));
        return nullptr;
    }
    remember_range(memory.value()->base(), memory.value()->size_bytes());
    has_accelerators_.store(true, std::memory_order_release);
    transfers_.expect_device_copies();
    conduit::memory_range const range{kind_of(on->made_by),
                                      reinterpret_cast<std::uintptr_t>(memory.value()->base()),
                                      memory.value()->size_bytes()};
    if (engine_.transport().reaches_range(range)) {
        engine_.transport().work_in([on]() -> std::shared_ptr<void> {
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
        bool again = false;
        if (auto const offset = segment->allocate(wanted, memory::heap::granule_bytes, &again)) {
            // libomptarget forgets a mapping before it frees its memory. If the same data is mapped
            // in between, what threads know of the old copy must not serve for it.
            if (again && epoch_ != nullptr) {
                epoch_->fetch_add(1, std::memory_order_acq_rel);
            }
            if (segment->memory() != nullptr) {
                pinned_.pin_around(request.host, nbytes, *segment->memory()->on().backend);
            }
            return segment->base() + *offset;
        }
        if (!has_warned_.exchange(true)) {
            log(log_level::warn,
                "device {} has no room for {} bytes in its segment of {}, of which {} are used: "
                "such memory comes from the device's own allocator from now on, and other ranks "
                "cannot reach it [remedy: set DIOMP_DEVICE_SEGMENT_SIZE above {}]",
                request.device, nbytes, format_size(segment->size_bytes()),
                format_size(segment->used_bytes()), format_size(segment->size_bytes()));
        }
    }
    num_foreign_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

bool devices::release(int device, void *address) {
    device_segment *const segment = segment_around(address);
    if (segment == nullptr) {
        return false;
    }
    finish_copies();
    std::uint64_t const offset = *segment->offset_of(address);
    finish_uses_of(*segment, offset);
    if (segment->release_unknown(offset, return_pages_bytes)) {
        return true;
    }
    auto const found = segment->find(offset);
    if (found && !found->by_openmp) {
        log(log_level::warn,
            "{} on device {} is memory of ompx_target_alloc: it is not freed [remedy: free it with "
            "ompx_target_free, on all ranks if it is symmetric or asymmetric]",
            address, device);
    } else if (status const given = give_back(*segment, offset); !given) {
        log(log_level::warn, "freeing {} on device {}: {}", address, device,
            given.failure().message());
    }
    return true;
}

void devices::before_release(const void *address) {
    if (!uses_.none()) {
        finish_uses(static_cast<const std::byte *>(address),
                    std::numeric_limits<std::size_t>::max());
    }
}

/// Of what begins there.
void devices::finish_uses_of(const device_segment &segment, std::uint64_t offset) {
    if (uses_.none()) { // as a rule: the temporaries of target regions cost no look into the heap
        return;
    }
    if (auto const what = segment.find(offset)) {
        finish_uses(segment.base() + what->offset, what->nbytes);
    }
}

status devices::give_back(device_segment &segment, std::uint64_t offset) {
    finish_copies();
    finish_uses_of(segment, offset);
    auto const known_by = segment.retire(offset);
    if (!known_by) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("no allocation of device {} starts there: it was freed before, or "
                                 "never made",
                                 segment.device()),
                     "free each allocation once, with the address that the allocation returned");
    }
    if (epoch_ != nullptr) {
        epoch_->fetch_add(1, std::memory_order_acq_rel);
    }
    if (known_by->is_used) {
        ledger_.forget(offset);
    }
    // If somebody cannot be told, the block is never used again: better lost than written to.
    DIOMP_TRY(ledger_.withdraw(segment.device(), offset, *known_by));
    auto const what = segment.find(offset);
    if (what && what->nbytes >= return_pages_bytes && segment.memory() == nullptr) {
        // Before anybody else can have it.
        window_.release_pages(
            place_, static_cast<std::uint64_t>(segment.base() - window_.slot(self_)) + what->offset,
            what->nbytes);
    }
    segment.release(offset);
    return {};
}

std::optional<error> devices::why_remote(int device) const {
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

error devices::no_segment(int device) const {
    if (auto remote = why_remote(device)) {
        return std::move(*remote);
    }
    return {OMPX_ERR_UNSUPPORTED,
            fmt::format("the memory of device {} is not in the global address space", device),
            num_foreign_.load() == 0
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
        // libomptarget starts the device and asks us; then we know what it is.
        openmp_.free(openmp_.allocate(1, device), device);
    }
    device_segment *const segment = segments_.find(device);
    if (segment == nullptr) {
        return no_segment(device);
    }
    return segment;
}

const accelerator *devices::accelerator_of(int device) {
    auto const segment = segment_of(device);
    return segment && segment.value()->memory() != nullptr ? &segment.value()->memory()->on()
                                                           : nullptr;
}

std::optional<device_allocation> devices::find_start(int device, const void *address) {
    device_segment *const segment = segments_.find(device);
    auto const offset = segment == nullptr ? std::nullopt : segment->offset_of(address);
    auto const found = offset ? segment->find(*offset) : std::nullopt;
    return found && found->offset == *offset ? found : std::nullopt;
}

result<std::uint64_t> devices::take(int device, ompx_mem_kind_t kind, std::size_t nbytes,
                                    std::uint64_t number) {
    auto segment = segment_of(device);
    DIOMP_TRY(segment);
    device_segment &from = *segment.value();
    auto const offset =
        from.allocate({kind, false, 0, nbytes, nullptr, number}, memory::heap::granule_bytes);
    if (!offset) {
        return error(
            OMPX_ERR_NOMEM,
            fmt::format("no room for {} bytes in the segment of device {}: it has {}, of "
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
