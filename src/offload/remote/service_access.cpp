// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/service_access.h"

#include "base/log.h"
#include "offload/remote/client.h"
#include "offload/remote/queue.h"

#include <utility>

namespace diomp::offload::remote {
namespace {

remote_device &own_device(client &of, int index) {
    return of.device(static_cast<std::size_t>(index));
}

/// Gives a queue of the device to `issue`, after the deferred regions, and waits for what it has
/// issued.
template <typename Issue>
status complete(client &by, int index, Issue issue) {
    remote_device &device = own_device(by, index);
    DIOMP_TRY(by.wait_for_deferred(device));
    queue &carrier = by.acquire_queue(device);
    status done = issue(carrier, device);
    if (status waited = carrier.synchronize(); done && !waited) {
        done = std::move(waited);
    }
    by.release_queue(carrier);
    return done;
}

} // namespace

std::optional<service_devices::description> describe_gpu(client &of, int index) {
    if (index < 0 || static_cast<std::size_t>(index) >= of.num_devices()) {
        return std::nullopt;
    }
    device_description const &about = own_device(of, index).description();
    if (about.has_memory_in_slot()) {
        return std::nullopt;
    }
    return service_devices::description{own_device(of, index).label(),
                                        of.ranks().gpus().least_bytes, of.segments().of_gpu};
}

result<std::uint64_t> allocate_memory(client &of, int index, std::size_t nbytes) {
    return own_device(of, index).allocate(nbytes);
}

std::uint64_t allocate_segment(client &of, int index, std::size_t nbytes, std::uint64_t preferred) {
    return of.has_runtime(index) ? own_device(of, index).allocate_segment(nbytes, preferred) : 0;
}

bool lends_segment(client &of, int index) {
    return index >= 0 && static_cast<std::size_t>(index) < of.num_devices() &&
           own_device(of, index).has_segment();
}

void release_memory(client &of, int index, std::uint64_t address) {
    if (!own_device(of, index).release(address)) {
        log(log_level::debug, "{} does not release its segment", own_device(of, index).label());
    }
}

status write_memory(client &by, int index, std::uint64_t to, const void *from, std::size_t nbytes) {
    return complete(by, index, [&](queue &carrier, remote_device & /*device*/) {
        return carrier.put(to, from, nbytes);
    });
}

status read_memory(client &by, int index, void *to, std::uint64_t from, std::size_t nbytes) {
    return complete(by, index, [&](queue &carrier, remote_device & /*device*/) {
        return carrier.get(to, from, nbytes);
    });
}

status copy_memory(client &by, int index, std::uint64_t to, std::uint64_t from,
                   std::size_t nbytes) {
    return complete(by, index, [&](queue &carrier, remote_device &device) {
        return carrier.copy(device.rank(), to, from, nbytes);
    });
}

} // namespace diomp::offload::remote
