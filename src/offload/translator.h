// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "offload/sides.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace diomp::memory {
class address_space;
class segment;
} // namespace diomp::memory

namespace diomp::transport {
class arena;
}

namespace diomp::offload {

struct device_allocation;
struct variable;
class alloc_directory;
class device_segment;
class device_segments;
class openmp_devices;
class segment_table;
class variables;

/// Translates a pointer and a device number to memory, on this rank and on another. `num` is
/// openmp_devices::count(). Thread-safe.
class translator {
public:
    translator(const openmp_devices &openmp, device_segments &segments, alloc_directory &directory,
               variables &declared, memory::address_space &space, const memory::segment &host,
               const transport::arena &arena, world_rank self);

    /// Locates [pointer, pointer + nbytes) of an own device.
    result<own_side> locate_own(const void *pointer, int device, std::size_t nbytes);

    /// Locates both sides of a transfer; sets `reusable` if the translation can be reused.
    result<located_sides> locate(world_rank rank, const transfer_side &remote,
                                 const transfer_side &local, int num, std::size_t nbytes,
                                 translation &reusable);
    result<local_side> locate_local(const void *pointer, int device, int num, std::size_t nbytes);
    result<remote_side> locate_remote(world_rank rank, const void *pointer, int device, int num,
                                      std::size_t nbytes);
    /// Locates the counterpart at `rank` of a device address of this rank, for processors.
    result<memory::location> locate_host_device(world_rank rank, const void *address,
                                                std::size_t nbytes);

private:
    /// The index among the remote devices of this rank if the side is memory of one, for a GPU in
    /// its segment.
    [[nodiscard]] std::optional<int> index_on_service(const local_side &side) const;
    /// The device address of a pointer: itself, or the address that it is mapped to.
    result<std::byte *> device_address(const void *pointer, int device) const;
    /// The own device to which a pointer belongs that names memory of another rank's device
    /// `device`.
    [[nodiscard]] int own_device_of(const void *pointer, int device) const;
    /// Locates the counterpart of own memory in `segment`; `device` is a number of `rank`, see
    /// alloc_directory::find.
    result<remote_side> locate_counterpart(world_rank rank, int device,
                                           const device_segment &segment,
                                           const device_allocation &own, std::uint64_t offset,
                                           std::size_t nbytes);
    [[nodiscard]] bool is_of_peer(world_rank rank, const void *pointer) const;
    status check_meaning(world_rank rank, int device, const void *pointer,
                         std::uint64_t counterpart);
    result<remote_side> locate_peer_address(world_rank rank, const void *pointer, int device,
                                            std::size_t nbytes);

    // `declare target` variables, which are outside of segments. Copies on host devices are process
    // memory, accessed like registered memory. Copies on accelerators can be neither shared nor
    // mapped, so only their owner copies from and to them.
    result<local_side> locate_own_variable(const variable &of, const void *pointer, int device,
                                           std::size_t nbytes);
    result<remote_side> locate_variable(world_rank rank, const variable &of, const void *pointer,
                                        int device, std::size_t nbytes);

    [[nodiscard]] std::string describe(const device_allocation &what) const;

    const openmp_devices &openmp_;
    device_segments &segments_;
    const segment_table &table_; ///< of segments_
    alloc_directory &directory_;
    variables &variables_;
    memory::address_space &space_;
    const memory::segment &host_;
    const transport::arena &arena_;
    world_rank self_;
};

} // namespace diomp::offload
