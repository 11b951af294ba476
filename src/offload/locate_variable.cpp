// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where copies of `declare target` variables are. Those of host devices are memory of a process
// like what it has registered; those of accelerators can be neither shared nor mapped, so only
// their owner copies from and to them.
#include "offload/offload.h"
#include "offload/segment_memory.h"

#include <fmt/core.h>

namespace diomp::offload {
namespace {

std::uint64_t inside(const variable &of, const void *pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(of.host);
}

} // namespace

result<end> devices::own_copy_of(const variable &of, int device) {
    // Makes the segment too: it says what sort of device this is.
    auto segment = segment_of(device);
    DIOMP_TRY(segment);
    if (openmp_.mapped_address == nullptr) {
        return no_segment(device);
    }
    void *copy = openmp_.mapped_address(of.host, device);
    if (copy == nullptr) {
        DIOMP_TRY(variables_.load(device));
        copy = openmp_.mapped_address(of.host, device);
    }
    if (copy == nullptr || segment.value()->offset_of(copy)) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the image of device {} has no copy of {}", device, of.name),
                     "declare it for this sort of device, and do not associate it with other "
                     "memory");
    }
    segment_memory const *const memory = segment.value()->memory();
    return end{static_cast<std::byte *>(copy), memory == nullptr ? nullptr : &memory->on()};
}

result<devices::local_side> devices::locate_own_variable(const variable &of, const void *pointer,
                                                         int device, std::size_t nbytes) {
    auto copy = own_copy_of(of, device);
    DIOMP_TRY(copy);
    std::uint64_t const left = of.nbytes - inside(of, pointer);
    if (nbytes > left) {
        return past_end(
            fmt::format("the variable {} of {} bytes on device {}", of.name, of.nbytes, device),
            left, nbytes);
    }
    return local_side{{copy.value().address + inside(of, pointer), copy.value().on}, {}};
}

result<devices::remote_side> devices::locate_variable(world_rank rank, const variable &of,
                                                      const void *pointer, int device,
                                                      std::size_t nbytes) {
    if (auto remote = why_remote(device)) {
        return std::move(*remote);
    }
    auto asked = variables_.ask(rank, device, of);
    DIOMP_TRY(asked);
    remote_copy const &there = asked.value();
    std::uint64_t const left = of.nbytes - inside(of, pointer);
    if (nbytes > left) {
        return past_end(fmt::format("rank {}'s variable {} of {} bytes on device {}", rank.value(),
                                    of.name, of.nbytes, there.device),
                        left, nbytes);
    }
    std::uint64_t const address = there.address + inside(of, pointer);
    remote_side found;
    found.is_constant = there.is_constant;
    if (there.on_accelerator) {
        found.far = far_memory{there.device, std::nullopt, address, conduit::memory_kind::host};
        return found;
    }
    // The owner has registered it, as long as it is there.
    auto place = space_.locate(rank, reinterpret_cast<const void *>(address), nbytes);
    if (!place) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("rank {} has no copy of {} any more: its program has ended",
                                 rank.value(), of.name),
                     "let a barrier follow the last transfer");
    }
    found.place = place.value();
    return found;
}

status devices::check_writable(const remote_side &there, rma::direction way) {
    return there.is_constant && way == rma::direction::put
               ? status(error(OMPX_ERR_ADDRESS, "the other rank's copy of the variable is constant",
                              "only get from it"))
               : status();
}

} // namespace diomp::offload
