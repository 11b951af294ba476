// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of the translator for `declare target` variables.
#include "memory/memory.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/own_variables.h"
#include "offload/internal/remote_variables.h"
#include "offload/internal/translation_errors.h"
#include "offload/openmp.h"
#include "offload/translator.h"
#include "offload/variables.h"

#include <fmt/core.h>

namespace diomp::offload {
namespace {

std::uint64_t offset_in(const variable &of, const void *pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(of.host);
}

} // namespace

result<local_side> translator::locate_own_variable(const variable &of, const void *pointer,
                                                   int device, std::size_t nbytes) {
    auto copy = variables_.own().locate_copy(of, device);
    DIOMP_TRY(copy);
    std::uint64_t const left = of.nbytes - offset_in(of, pointer);
    if (nbytes > left) {
        return past_end_error(
            fmt::format("the variable {} of {} bytes on device {}", of.name, of.nbytes, device),
            left, nbytes);
    }
    return local_side{{copy.value().address + offset_in(of, pointer), copy.value().on},
                      {},
                      std::nullopt,
                      of.is_constant};
}

error outside_segment_error(const void *pointer, int device) {
    return {
        OMPX_ERR_ADDRESS,
        fmt::format("{} is on device {}, a service's GPU, but not in its segment", pointer, device),
        "set DIOMP_DEVICE_SEGMENT_SIZE to a larger value"};
}

result<remote_side> translator::locate_variable(world_rank rank, const variable &of,
                                                const void *pointer, int device,
                                                std::size_t nbytes) {
    auto located = variables_.remote().locate_copy(rank, device, of);
    DIOMP_TRY(located);
    remote_copy const &there = located.value();
    std::uint64_t const left = of.nbytes - offset_in(of, pointer);
    if (nbytes > left) {
        return past_end_error(fmt::format("rank {}'s variable {} of {} bytes on device {}",
                                          rank.value(), of.name, of.nbytes, there.device),
                              left, nbytes);
    }
    std::uint64_t const address = there.address + offset_in(of, pointer);
    remote_side found;
    found.is_constant = there.is_constant;
    if (there.on_accelerator) {
        found.device_memory = remote_device_memory{there.device, std::nullopt, address,
                                                   transport::memory_kind::host, false};
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

} // namespace diomp::offload
