// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Default implementations for a conduit whose peers are all direct.
#include "transport/conduit.h"

#include "base/panic.h"

namespace diomp::transport {

status conduit::put(world_rank /*peer*/, std::uint64_t /*remote_address*/, const void * /*source*/,
                    std::size_t /*nbytes*/, completion & /*source_free*/) {
    panic("put through a conduit that maps all peers");
}

status conduit::get(world_rank /*peer*/, std::uint64_t /*remote_address*/, void * /*destination*/,
                    std::size_t /*nbytes*/, completion & /*done*/) {
    panic("get through a conduit that maps all peers");
}

status conduit::put_device_memory(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                  const void * /*source*/, std::size_t /*nbytes*/,
                                  memory_kinds /*kinds*/, completion & /*source_free*/) {
    panic("a put of device memory through a conduit that does not support it");
}

status conduit::get_device_memory(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                  void * /*destination*/, std::size_t /*nbytes*/,
                                  memory_kinds /*kinds*/, completion & /*done*/) {
    panic("a get of device memory through a conduit that does not support it");
}

result<bool> conduit::put_rows(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                               const void * /*source*/, const rows & /*shape*/,
                               completion & /*source_free*/) {
    return false;
}

result<bool> conduit::get_rows(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                               void * /*destination*/, const rows & /*shape*/,
                               completion & /*done*/) {
    return false;
}

status conduit::atomic(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                       const atomic_call & /*call*/, void * /*result*/, completion & /*done*/) {
    panic("an atomic operation through a conduit that has none");
}

bool conduit::idle_wait(wait_kind /*what*/, std::uint32_t seen, std::chrono::microseconds limit,
                        function_ref<bool()> ready) {
    if (ready()) {
        return true;
    }
    sleep(seen, limit);
    return false;
}

const std::atomic<std::uint32_t> &conduit::store_sleepers() const {
    static const std::atomic<std::uint32_t> none{0};
    return none;
}

result<bool> conduit::send_long(world_rank /*peer*/, handler_id /*handler*/,
                                std::span<const std::byte> /*payload*/,
                                std::span<const std::byte> /*data*/, completion & /*source_free*/) {
    return false;
}

result<bool> conduit::put_with_message(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                       std::span<const std::byte> /*source*/,
                                       handler_id /*handler*/,
                                       std::span<const std::byte> /*payload*/,
                                       completion & /*source_free*/) {
    return false;
}

status conduit::flush(world_rank /*peer*/, completion & /*done*/) { return {}; }

status conduit::flush_all(completion & /*done*/) { return {}; }

} // namespace diomp::transport
