// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two sides of a transfer between device or host memory of any two ranks: as the program names
// them, and as they are located.
//
// Glossary. device: OpenMP's device number in this process; the number of devices (OpenMP's initial
// device) and -1 mean the host. device address: an address in the memory of a device. mapped
// address: a host address for which the device has a copy (`map`, omp_target_associate_ptr). device
// segment: the part of a device's memory that other ranks can access. counterpart: the allocation
// of another rank at the same offset of its segment on the device of the same number.
#pragma once

#include "memory/location.h"
#include "offload/accelerators.h"
#include "rma/box.h"
#include "rma/path.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::offload {

/// One side of a transfer, in device or host memory. The pointer is not null unless the transfer is
/// empty.
struct transfer_side {
    const void *pointer = nullptr;
    int device = 0;
    const char *argument = ""; ///< "dst" or "src"
};

/// A range [begin, begin + nbytes) of pointers and the distance that translates them into loadable
/// addresses.
struct translated_range {
    std::uintptr_t begin = 0;
    std::size_t nbytes = 0; ///< 0: no range
    std::ptrdiff_t distance = 0;

    [[nodiscard]] bool contains(const void *pointer, std::size_t count) const {
        std::uintptr_t const offset = reinterpret_cast<std::uintptr_t>(pointer) - begin;
        return offset < nbytes && count <= nbytes - offset;
    }
    [[nodiscard]] std::byte *translate(const void *pointer) const {
        return reinterpret_cast<std::byte *>(reinterpret_cast<std::uintptr_t>(pointer) +
                                             static_cast<std::uintptr_t>(distance));
    }
};

/// The result of locating both sides of a transfer, reusable for later transfers between the same
/// allocations. Valid while the epoch (segment_table::attach) equals `epoch` and, read after that,
/// *peer_generation equals `generation`.
struct translation {
    std::uint64_t epoch = 0; ///< 0: not valid
    const std::atomic<std::uint64_t> *peer_generation = nullptr;
    std::uint64_t generation = 0;
    translated_range here;
    translated_range there;
};

/// An address in the memory of a rank's accelerator or remote device.
struct remote_device_memory {
    int device = 0;
    std::optional<std::uint64_t>
        offset;                ///< offset in its segment; nullopt: in a variable of an image
    std::uint64_t address = 0; ///< address, as the owner sees it
    /// Memory kind for the network; host: the network cannot access it.
    transport::memory_kind kind = transport::memory_kind::host;
    /// The device is a remote one of the owner: the address is valid in the world of the services.
    bool is_on_service = false;
    std::optional<int> session_index{}; ///< as in remote_allocation
};

/// Own memory.
struct local_side {
    device_ptr at;
    translated_range range; ///< around the pointer, as far as one distance holds
    /// The device, if it is a remote one: remote_memory.
    std::optional<int> remote_index;
    bool is_constant{}; ///< a variable in read-only memory

    /// Fails for a get into read-only memory.
    [[nodiscard]] status check_writable(rma::direction dir) const;
};
/// Own memory in a call that all members of a group make.
struct own_side {
    device_ptr at;
    std::optional<int> remote_index; ///< as in local_side
    bool is_constant{};              ///< as in local_side

    /// Fails for read-only memory.
    [[nodiscard]] status check_writable() const;
};
/// Memory of any rank.
struct remote_side {
    memory::location location;
    translated_range range;          ///< around the pointer, as far as one distance holds
    const accelerator *on = nullptr; ///< device of this rank
    std::optional<remote_device_memory> device_memory;
    bool is_constant = false; ///< a variable in memory that is read-only for its owner

    /// Memory of a remote device of some rank.
    [[nodiscard]] static remote_side on_service(int device, std::uint64_t address) {
        remote_side made;
        made.device_memory =
            remote_device_memory{device, std::nullopt, address, transport::memory_kind::host, true};
        return made;
    }
    [[nodiscard]] bool is_host() const { return on == nullptr && !device_memory; }
    [[nodiscard]] bool is_on_service() const {
        return device_memory && device_memory->is_on_service;
    }
    /// Fails for a put to read-only memory.
    [[nodiscard]] status check_writable(rma::direction dir) const;
};
struct located_sides {
    local_side here;
    remote_side there;

    [[nodiscard]] bool has_remote_processor() const {
        return here.remote_index || there.is_on_service();
    }
};

} // namespace diomp::offload
