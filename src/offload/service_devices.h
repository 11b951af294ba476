// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of services' devices that is not in the world of the services: that of GPUs, and variables
// of images. The process that uses a device carries out all copies, also for other ranks. What this
// module needs of the client of the services for it (remote/service_access.h).
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace diomp::offload {

/// `index`: of an own device among the remote devices of this rank. Addresses are those of the
/// device. Copies come after the device's regions that OpenMP treats as complete, and block until
/// they are complete. Thread-safe.
class service_devices {
public:
    virtual ~service_devices() = default;

    struct description {
        std::string name;
        std::size_t memory_bytes = 0;  ///< of the job's smallest GPU of a service; 0: unknown
        std::size_t segment_bytes = 0; ///< of its segment; equal on all ranks
    };
    /// Describes a GPU; nullopt: the device is a processor, or there is none.
    virtual std::optional<description> describe(int index) = 0;
    virtual int num_devices() = 0;

    /// Errors: OMPX_ERR_NOMEM.
    virtual result<std::uint64_t> allocate(int index, std::size_t nbytes) = 0;
    /// Allocates the device's segment, which calls in its regions reach, once; at `preferred` if
    /// the device can. 0: it has none.
    virtual std::uint64_t allocate_segment(int index, std::size_t nbytes,
                                           std::uint64_t preferred) = 0;
    virtual void release(int index, std::uint64_t address) = 0;

    virtual status write(int index, std::uint64_t to, const void *from, std::size_t nbytes) = 0;
    virtual status read(int index, void *to, std::uint64_t from, std::size_t nbytes) = 0;
    virtual status copy(int index, std::uint64_t to, std::uint64_t from, std::size_t nbytes) = 0;

protected:
    service_devices() = default;
    service_devices(const service_devices &) = default;
    service_devices &operator=(const service_devices &) = default;
};

} // namespace diomp::offload
