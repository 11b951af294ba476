// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/translator.h"

#include "base/per_thread.h"
#include "memory/memory.h"
#include "offload/alloc_directory.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/own_variables.h"
#include "offload/internal/remote_variables.h"
#include "offload/internal/segment_memory.h"
#include "offload/internal/translation_errors.h"
#include "offload/remote_memory.h"
#include "offload/variables.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace diomp::offload {
namespace {

/// The range of pointers that one distance translates into the allocation. `pointer` translates to
/// `location`, which is `inside` bytes from the allocation's beginning. Device addresses: the whole
/// allocation. Host addresses: what was mapped when the memory was allocated, which may begin some
/// bytes inside, where libomptarget aligns a structure.
translated_range range_around(const device_allocation &what, const void *pointer,
                              bool is_device_address, const std::byte *location,
                              std::uint64_t inside) {
    auto const from = reinterpret_cast<std::uintptr_t>(pointer);
    auto const distance =
        static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(location) - from);
    if (is_device_address) {
        return {from - inside, what.nbytes, distance};
    }
    auto const host = reinterpret_cast<std::uintptr_t>(what.host);
    if (what.host == nullptr || from < host || inside < from - host) {
        return {};
    }
    return {host, what.nbytes - (inside - (from - host)), distance};
}

} // namespace

error past_end_error(const std::string &what, std::uint64_t left, std::size_t nbytes) {
    return {OMPX_ERR_RANGE,
            fmt::format("the {} bytes run past the end of {}, which has {} bytes from there on",
                        nbytes, what, left),
            "check the size and the offset of the transfer, and the mapped section"};
}

translator::translator(const openmp_devices &openmp, device_segments &segments,
                       alloc_directory &directory, variables &declared,
                       memory::address_space &space, const memory::segment &host,
                       const transport::arena &arena, world_rank self)
    : openmp_(openmp), segments_(segments), table_(segments.table()), directory_(directory),
      variables_(declared), space_(space), host_(host), arena_(arena), self_(self) {
    space.set_device_locator([this](world_rank rank, const void *address, std::size_t nbytes) {
        return locate_host_device(rank, address, nbytes);
    });
}

std::string translator::describe(const device_allocation &what) const {
    std::string const text = offload::describe(identify(what.host, host_));
    return fmt::format("{} bytes at offset {}{}", what.nbytes, what.offset,
                       text.empty() ? "" : " (" + text + ")");
}

result<std::byte *> translator::device_address(const void *pointer, int device) const {
    if (device_segment const *const around = table_.containing(pointer); around != nullptr) {
        if (around->device() != device) {
            return error(OMPX_ERR_ADDRESS,
                         fmt::format("{} is in the memory of device {}, not of device {}", pointer,
                                     around->device(), device),
                         "pass the number of the device that the address belongs to");
        }
        return static_cast<std::byte *>(const_cast<void *>(pointer));
    }
    void *const mapped = openmp_.mapped_address(pointer, device);
    if (mapped == nullptr) {
        auto remote = openmp_.remote_device_error(device);
        if (remote && !segments_.segment_of(device)) { // which makes it, on the first use
            return std::move(*remote);
        }
        return error(
            OMPX_ERR_ADDRESS,
            fmt::format("{} is neither mapped on device {} nor in its segment", pointer, device),
            table_.find(device) == nullptr
                ? "map it first (target enter data); if it is mapped, run with DiOMP's "
                  "libomptarget: compile with diompcc, or start with diomp-run"
                : "map it first (target enter data), or pass an address of omp_target_alloc or "
                  "ompx_target_alloc");
    }
    return static_cast<std::byte *>(mapped);
}

int translator::own_device_of(const void *pointer, int device) const {
    if (device_segment const *const around = table_.containing(pointer); around != nullptr) {
        return around->device();
    }
    auto const is_mapped = [&](int candidate) {
        return openmp_.mapped_address(pointer, candidate) != nullptr;
    };
    if (is_mapped(device)) {
        return device;
    }
    std::vector<int> const driven_devices = directory_.own_devices();
    auto const found = std::ranges::find_if(driven_devices, is_mapped);
    return found == driven_devices.end() ? device : *found;
}

result<local_side> translator::locate_local(const void *pointer, int device, int num,
                                            std::size_t nbytes) {
    if (openmp_.is_host(device, num)) {
        return local_side{{static_cast<std::byte *>(const_cast<void *>(pointer)), nullptr},
                          {0, std::numeric_limits<std::size_t>::max(), 0},
                          {}};
    }
    auto address = device_address(pointer, device);
    device_segment *const segment = table_.find(device);
    auto const offset =
        address && segment != nullptr ? segment->offset_of(address.value()) : std::nullopt;
    if (!offset) {
        if (auto const of = variables_.own().find(pointer)) {
            return locate_own_variable(*of, pointer, device, nbytes);
        }
    }
    DIOMP_TRY(address);
    if (segment == nullptr) {
        return segments_.no_segment_error(device);
    }
    device_ptr const at{address.value(),
                        segment->memory() == nullptr ? nullptr : &segment->memory()->on()};
    std::optional<int> const remote_index = segment->remote_index();
    if (!offset) {
        // libomptarget allocated this memory outside of the full segment. This process can still
        // access it; its size is unknown.
        if (at.on != nullptr && at.on->made_by == vendor::service) {
            return outside_segment_error(pointer, device);
        }
        return local_side{at, {}, remote_index};
    }
    auto const found = segment->find_and_use(*offset);
    if (!found) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("{} is in no allocation of device {}", pointer, device),
                     "the memory was freed or unmapped, or the address is wrong");
    }
    std::uint64_t const inside = *offset - found->offset;
    std::uint64_t const left = found->nbytes - std::min<std::uint64_t>(inside, found->nbytes);
    if (nbytes > left) {
        return past_end_error(
            fmt::format("the allocation of {} on device {}", describe(*found), device), left,
            nbytes);
    }
    local_side located{at, {}, remote_index};
    if (at.on == nullptr && !remote_index) {
        located.range = range_around(*found, pointer, pointer == at.address, at.address, inside);
    }
    return located;
}

result<remote_side> translator::locate_remote(world_rank rank, const void *pointer, int device,
                                              int num, std::size_t nbytes) {
    if (openmp_.is_host(device, num)) {
        auto location = space_.locate(rank, pointer, nbytes);
        DIOMP_TRY(location);
        return remote_side{location.value(), {}, nullptr, {}};
    }
    if (rank == self_) {
        auto here = locate_local(pointer, device, num, nbytes);
        DIOMP_TRY(here);
        device_ptr const &at = here.value().at;
        if (here.value().remote_index) {
            return remote_side::on_service(device, reinterpret_cast<std::uintptr_t>(at.address));
        }
        return remote_side{{at.address, reinterpret_cast<std::uintptr_t>(at.address), true},
                           here.value().range,
                           at.on,
                           {},
                           here.value().is_constant};
    }
    if (is_of_peer(rank, pointer)) {
        return locate_peer_address(rank, pointer, device, nbytes);
    }
    int const own_device = own_device_of(pointer, device);
    auto address = device_address(pointer, own_device);
    device_segment *const segment = table_.find(own_device);
    auto const offset =
        address && segment != nullptr ? segment->offset_of(address.value()) : std::nullopt;
    if (!offset) {
        if (auto const of = variables_.own().find(pointer)) {
            return locate_variable(rank, *of, pointer, device, nbytes);
        }
    }
    DIOMP_TRY(address);
    if (!offset) {
        auto remote = openmp_.remote_device_error(own_device);
        if (remote && segment == nullptr) {
            return std::move(*remote);
        }
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("{} is on device {} but not in its segment, so rank {} has no "
                                 "counterpart of it",
                                 pointer, own_device, rank.value()),
                     "other ranks cannot access memory that did not fit into the segment: set "
                     "DIOMP_DEVICE_SEGMENT_SIZE to a larger value; or run with DiOMP's "
                     "libomptarget");
    }
    auto const own = segment->find_and_use(*offset);
    if (!own) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("{} is in no allocation of device {}", pointer, own_device),
                     "the memory was freed or unmapped, or the address is wrong");
    }
    auto found = locate_counterpart(rank, device, *segment, *own, *offset, nbytes);
    DIOMP_TRY(found);
    remote_side &there = found.value();
    if (own->kind == OMPX_MEM_ASYMMETRIC && there.is_host()) {
        DIOMP_TRY(check_meaning(rank, device, pointer, there.location.remote_address));
    }
    // An asymmetric counterpart may be shorter than the own allocation, so its bounds are checked
    // each time.
    if (there.location.direct != nullptr && own->kind != OMPX_MEM_ASYMMETRIC) {
        there.range = range_around(*own, pointer, pointer == address.value(), there.location.direct,
                                   *offset - own->offset);
    }
    return found;
}

result<memory::location> translator::locate_host_device(world_rank rank, const void *address,
                                                        std::size_t nbytes) {
    device_segment const *const around = table_.containing(address);
    if (around == nullptr) {
        return error(OMPX_ERR_ADDRESS,
                     "the address is in the part of the segment that is for devices, but no device "
                     "of this rank has its memory there",
                     "the address is wrong");
    }
    auto const own = around->find(*around->offset_of(address));
    if (own && own->kind == OMPX_MEM_LOCAL && !own->by_openmp && rank != self_) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the address is in local memory of device {}: rank {} has no "
                                 "counterpart of it",
                                 around->device(), rank.value()),
                     "use symmetric, asymmetric or mapped memory");
    }
    auto found =
        locate_remote(rank, address, around->device(), std::numeric_limits<int>::max(), nbytes);
    DIOMP_TRY(found);
    if (!found.value().is_host()) {
        return error(
            OMPX_ERR_UNSUPPORTED,
            fmt::format("rank {} has a GPU or a remote device where this rank has a host device",
                        rank.value()),
            "call ompx_target_put or ompx_target_get, which reach devices of all kinds");
    }
    return found.value().location;
}

status remote_side::check_writable(rma::direction dir) const {
    return is_constant && dir == rma::direction::put
               ? status(error(OMPX_ERR_ADDRESS, "the rank's copy of the variable is constant",
                              "only get from it"))
               : status();
}

namespace {

status refuse_constant(bool is_constant) {
    return is_constant
               ? status(error(OMPX_ERR_ADDRESS, "the destination is a constant", "pass a variable"))
               : status();
}

} // namespace

status local_side::check_writable(rma::direction dir) const {
    return refuse_constant(is_constant && dir == rma::direction::get);
}

status own_side::check_writable() const { return refuse_constant(is_constant); }

std::optional<int> translator::index_on_service(const local_side &side) const {
    device_ptr const &at = side.at;
    bool const is_gpu =
        at.on != nullptr && at.on->made_by == vendor::service && table_.containing(at.address);
    return is_gpu ? std::optional(at.on->id.value()) : side.remote_index;
}

result<own_side> translator::locate_own(const void *pointer, int device, std::size_t nbytes) {
    // OpenMP's lookup of a mapping takes a lock and a search. Results are cached per thread, since
    // a program passes few different arrays.
    struct cached_lookup {
        const translator *by = nullptr;
        std::uint64_t epoch = 0;
        int device = 0;
        translated_range range;
    };
    struct lookup_cache {
        std::array<cached_lookup, 8> all;
        std::size_t oldest = 0;
    };
    lookup_cache &lookups = per_thread<lookup_cache>::get();
    std::uint64_t const epoch = table_.epoch();
    for (cached_lookup const &each : lookups.all) {
        if (each.by == this && each.epoch == epoch && each.device == device &&
            each.range.contains(pointer, nbytes)) {
            return own_side{{each.range.translate(pointer), nullptr}, {}};
        }
    }
    int const num = openmp_.count();
    DIOMP_TRY(openmp_devices::check(device, num, "device"));
    auto found = locate_local(pointer, device, num, nbytes);
    DIOMP_TRY(found);
    if (auto const index = index_on_service(found.value())) {
        DIOMP_TRY(segments_.remote()->check(*index, {found.value().at.address, nbytes}));
    }
    if (epoch != 0 && found.value().range.nbytes > 0 && found.value().at.on == nullptr) {
        lookups.all[lookups.oldest] = {this, epoch, device, found.value().range};
        lookups.oldest = (lookups.oldest + 1) % lookups.all.size();
    }
    return own_side{found.value().at, found.value().remote_index, found.value().is_constant};
}

result<located_sides> translator::locate(world_rank rank, const transfer_side &remote,
                                         const transfer_side &local, int num, std::size_t nbytes,
                                         translation &reusable) {
    // Read before the lookups, so that later changes invalidate the translation.
    translation found;
    found.epoch = table_.epoch();
    found.peer_generation = directory_.generation_of(rank);
    if (found.peer_generation != nullptr) {
        found.generation = found.peer_generation->load(std::memory_order_acquire);
    }
    auto here = locate_local(local.pointer, local.device, num, nbytes);
    DIOMP_TRY(here);
    auto there = locate_remote(rank, remote.pointer, remote.device, num, nbytes);
    DIOMP_TRY(there);
    located_sides const sides{here.value(), there.value()};
    found.here = sides.here.range;
    found.there = sides.there.range;
    if (found.peer_generation != nullptr && found.here.nbytes > 0 && found.there.nbytes > 0) {
        reusable = found;
    }
    return sides;
}

} // namespace diomp::offload
