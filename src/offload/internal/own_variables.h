// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program's `declare target` variables. Their copies are in the images of devices, not in
// segments, so no offset identifies them. Their position in the program does (identity.h), which is
// equal on all ranks; name and size are compared in case programs differ.
#pragma once

#include "base/result.h"
#include "offload/accelerators.h"
#include "offload/internal/identity.h"
#include "offload/openmp.h"

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>

namespace diomp::memory {
class segment;
}

namespace diomp::offload {

class device_segments;

/// A variable on the host.
struct variable {
    const std::byte *host = nullptr;
    std::size_t nbytes = 0;
    identity what;
    std::string name;         ///< its symbol name
    bool is_constant = false; ///< in memory that is read-only
};

/// Thread-safe. The calls query libomptarget, so they are not allowed in handlers.
class own_variables {
public:
    own_variables(const openmp_devices &openmp, device_segments &segments,
                  const memory::segment &host)
        : openmp_(openmp), segments_(segments), host_(host) {}

    /// The variable that contains `host`.
    std::optional<variable> find(const void *host);
    /// The variable with this position in the program; `name` is the hash of its symbol name.
    std::optional<variable> find(const identity &what, std::uint32_t name);
    /// Locates the copy on an own device; loads the image if necessary.
    result<device_ptr> locate_copy(const variable &of, int device);

private:
    void refresh(const diomp_variable_table &from);
    /// Loads the program's images on an own device.
    status load(int device);

    const openmp_devices &openmp_;
    device_segments &segments_;
    const memory::segment &host_;
    std::shared_mutex mutex_;      ///< leaf lock; guards the members below
    std::uint64_t generation_ = 0; ///< of by_address_; see variable_table.h
    std::map<std::uintptr_t, variable> by_address_;
};

} // namespace diomp::offload
