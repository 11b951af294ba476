// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locates copies of `declare target` variables. Copies on host devices are process memory, accessed
// like registered memory. Copies on accelerators can be neither shared nor mapped, so only their
// owner copies from and to them.
#include "offload/internal/segment_memory.h"
#include "offload/offload.h"

#include <fmt/core.h>

namespace diomp::offload {
namespace {

std::uint64_t inside(const variable &of, const void *pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(of.host);
}

} // namespace

result<device_ptr> devices::locate_own_copy(const variable &of, int device) {
    // Also creates the segment, which determines the kind of the device.
    auto segment = segment_of(device);
    DIOMP_TRY(segment);
    if (openmp_.mapped_address == nullptr) {
        return no_segment_error(device);
    }
    void *copy = openmp_.mapped_address(of.host, device);
    if (copy == nullptr) {
        DIOMP_TRY(variables_.load(device));
        copy = openmp_.mapped_address(of.host, device);
    }
    if (copy == nullptr || segment.value()->offset_of(copy)) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the image of device {} has no copy of {}", device, of.name),
                     "declare it for this kind of device, and do not associate it with other "
                     "memory");
    }
    segment_memory const *const memory = segment.value()->memory();
    return device_ptr{static_cast<std::byte *>(copy), memory == nullptr ? nullptr : &memory->on()};
}

result<devices::local_side> devices::locate_own_variable(const variable &of, const void *pointer,
                                                         int device, std::size_t nbytes) {
    auto copy = locate_own_copy(of, device);
    DIOMP_TRY(copy);
    std::uint64_t const left = of.nbytes - inside(of, pointer);
    if (nbytes > left) {
        return past_end_error(
            fmt::format("the variable {} of {} bytes on device {}", of.name, of.nbytes, device),
            left, nbytes);
    }
    return local_side{{copy.value().address + inside(of, pointer), copy.value().on}, {}};
}

result<devices::remote_side> devices::locate_variable(world_rank rank, const variable &of,
                                                      const void *pointer, int device,
                                                      std::size_t nbytes) {
    if (auto remote = remote_device_error(device)) {
        return std::move(*remote);
    }
    auto located = variables_.locate_copy(rank, device, of);
    DIOMP_TRY(located);
    remote_copy const &there = located.value();
    std::uint64_t const left = of.nbytes - inside(of, pointer);
    if (nbytes > left) {
        return past_end_error(fmt::format("rank {}'s variable {} of {} bytes on device {}",
                                          rank.value(), of.name, of.nbytes, there.device),
                              left, nbytes);
    }
    std::uint64_t const address = there.address + inside(of, pointer);
    remote_side found;
    found.is_constant = there.is_constant;
    if (there.on_accelerator) {
        found.device_memory =
            remote_device_memory{there.device, std::nullopt, address, transport::memory_kind::host};
        return found;
    }
    // Registered by the owner while it exists.
    auto location = space_.locate(rank, reinterpret_cast<const void *>(address), nbytes);
    if (!location) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("rank {} no longer has a copy of {}: its program has ended",
                                 rank.value(), of.name),
                     "call a barrier after the last transfer");
    }
    found.location = location.value();
    return found;
}

status devices::check_writable(const remote_side &there, rma::direction dir) {
    return there.is_constant && dir == rma::direction::put
               ? status(error(OMPX_ERR_ADDRESS, "the other rank's copy of the variable is constant",
                              "only get from it"))
               : status();
}

} // namespace diomp::offload
