// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A network reaches the ranks of other nodes. It is a conduit without the parts that only shared
// memory has: direct access and sleeping. The composite conduit (composite.h) combines it with
// shared memory.
//
// All calls have the contracts of conduit.h and are thread-safe.
#pragma once

#include "transport/conduit.h"

namespace diomp::transport {

/// Called by any thread when messages wait that no thread may be polling for: wakes a thread that
/// polls.
using doorbell = std::function<void()>;

class network {
public:
    virtual ~network() = default;

    [[nodiscard]] virtual const char *name() const = 0;
    virtual status put(world_rank peer, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, completion &source_free) = 0;
    virtual status get(world_rank peer, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, completion &done) = 0;
    /// Default: host memory only.
    [[nodiscard]] virtual bool supports_memory_kind(memory_kind kind) const {
        return kind == memory_kind::host;
    }
    [[nodiscard]] virtual bool supports_memory_range(const memory_range &own) const {
        return supports_memory_kind(own.kind);
    }
    [[nodiscard]] virtual bool supports_device_transfers() const { return false; }
    [[nodiscard]] virtual bool can_transfer(world_rank /*peer*/, const memory_range & /*remote*/,
                                            const memory_range &local) const {
        return supports_memory_range(local);
    }
    /// Networks that support device memory override these two.
    virtual status put_device_memory(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                     const void * /*source*/, std::size_t /*nbytes*/,
                                     memory_kinds /*kinds*/, completion & /*source_free*/) {
        return error(OMPX_ERR_UNSUPPORTED, "this network does not support device memory");
    }
    virtual status get_device_memory(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                     void * /*destination*/, std::size_t /*nbytes*/,
                                     memory_kinds /*kinds*/, completion & /*done*/) {
        return error(OMPX_ERR_UNSUPPORTED, "this network does not support device memory");
    }
    virtual void bind_device_context(const device_context_binder & /*binder*/) {}
    /// Default: no operation for several rows; the caller transfers row by row.
    virtual result<bool> put_rows(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                  const void * /*source*/, const rows & /*shape*/,
                                  completion & /*source_free*/) {
        return false;
    }
    virtual result<bool> get_rows(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                  void * /*destination*/, const rows & /*shape*/,
                                  completion & /*done*/) {
        return false;
    }
    [[nodiscard]] virtual bool has_atomics() const { return false; }
    /// Networks with atomic operations override this.
    virtual status atomic(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                          const atomic_call & /*call*/, void * /*result*/, completion & /*done*/) {
        return error(OMPX_ERR_UNSUPPORTED, "this network has no atomic operations");
    }
    virtual status flush(world_rank peer, completion &done) = 0;
    virtual status flush_all(completion &done) = 0;
    [[nodiscard]] virtual std::size_t max_message_bytes() const = 0;
    [[nodiscard]] virtual bool try_send(world_rank peer, handler_id handler,
                                        std::span<const std::byte> payload) = 0;
    virtual result<bool> send_long(world_rank peer, handler_id handler,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> data, completion &source_free) = 0;
    [[nodiscard]] virtual std::size_t max_am_long() const { return 0; }
    /// Default: not supported.
    virtual result<bool> put_with_message(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                          std::span<const std::byte> /*source*/,
                                          handler_id /*handler*/,
                                          std::span<const std::byte> /*payload*/,
                                          completion & /*source_free*/) {
        return false;
    }
    virtual void set_am_long_handler(const am_long_handler &handle,
                                     const recv_buffer_callback &find_buffer) = 0;
    virtual void revoke_recv_buffer(const std::byte * /*buffer*/) {}
    virtual int poll(message_handler handle) = 0;
    /// Between these two calls the network leaves progress to the calling thread.
    virtual void begin_polling() = 0;
    virtual void end_polling() = 0;
    /// Sleeps until there is work, the time is over or wake_idle_waiters() is called. Does not
    /// sleep if is_over() is true; a thread that calls wake_idle_waiters() makes it true before.
    /// False: this network cannot sleep.
    virtual bool idle_wait(std::chrono::microseconds limit, function_ref<bool()> is_over) = 0;
    /// Ends idle_wait().
    virtual void wake_idle_waiters() = 0;
    /// True if messages wait for poll().
    [[nodiscard]] virtual bool has_messages() const = 0;
    virtual void report_failures_to(const failure_handler &handle) = 0;
    [[nodiscard]] virtual std::string describe_path(world_rank peer) const = 0;
    [[nodiscard]] virtual std::string describe_outstanding() const = 0;
    virtual status close() = 0;
    virtual void freeze() {}
};

} // namespace diomp::transport
