// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A network reaches the ranks of other nodes. It is a conduit without what only shared memory can
// do: nothing is direct, and nobody sleeps on it. The composite conduit (composite.h) joins it with
// shared memory.
//
// All calls mean what they mean in conduit.h and may come from any thread.
#pragma once

#include "conduit/conduit.h"

namespace diomp::conduit {

/// Called, by any thread, when messages wait that nobody may be looking for: wakes a thread that
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
    /// By default not.
    [[nodiscard]] virtual bool reaches(memory_kind kind) const { return kind == memory_kind::host; }
    [[nodiscard]] virtual bool reaches_range(const memory_range &own) const {
        return reaches(own.kind);
    }
    [[nodiscard]] virtual bool works_between() const { return false; }
    [[nodiscard]] virtual bool joins(world_rank /*peer*/, const memory_range & /*remote*/,
                                     const memory_range &local) const {
        return reaches_range(local);
    }
    /// Of networks that reach more than the host's.
    virtual status put_between(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                               const void * /*source*/, std::size_t /*nbytes*/,
                               memory_ends /*ends*/, completion & /*source_free*/) {
        return error(OMPX_ERR_UNSUPPORTED, "this network does not reach memory of devices");
    }
    virtual status get_between(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                               void * /*destination*/, std::size_t /*nbytes*/, memory_ends /*ends*/,
                               completion & /*done*/) {
        return error(OMPX_ERR_UNSUPPORTED, "this network does not reach memory of devices");
    }
    virtual void work_in(const device_scope & /*scope*/) {}
    /// By default row by row is the only way.
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
    /// Of networks with atomics.
    virtual status atomic(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                          const atomic_call & /*call*/, void * /*result*/, completion & /*done*/) {
        return error(OMPX_ERR_UNSUPPORTED, "this network has no atomic operations");
    }
    virtual status flush(world_rank peer, completion &done) = 0;
    virtual status flush_all(completion &done) = 0;
    [[nodiscard]] virtual std::size_t max_message_bytes() const = 0;
    [[nodiscard]] virtual bool try_send(world_rank peer, handler_id handler,
                                        std::span<const std::byte> payload) = 0;
    virtual result<bool> send_bulk(world_rank peer, handler_id handler,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> data, completion &source_free) = 0;
    [[nodiscard]] virtual std::size_t sure_bulk_bytes() const { return 0; }
    /// By default this way does not exist.
    virtual result<bool> put_with_message(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                          std::span<const std::byte> /*source*/,
                                          handler_id /*handler*/,
                                          std::span<const std::byte> /*payload*/,
                                          completion & /*source_free*/) {
        return false;
    }
    virtual void receive_bulk_with(const bulk_sink &sink, const bulk_placer &placer) = 0;
    virtual void divert_bulk(const std::byte * /*place*/) {}
    virtual int poll(message_sink sink) = 0;
    /// While a thread is between these two the network leaves progress to it.
    virtual void begin_polling() = 0;
    virtual void end_polling() = 0;
    /// Sleeps until there is something to do, the time is over or wake_napping() is called, unless
    /// `is_over`, which a caller of that makes true before. False: this network cannot.
    virtual bool nap(std::chrono::microseconds limit, function_ref<bool()> is_over) = 0;
    /// Ends nap().
    virtual void wake_napping() = 0;
    /// Messages have arrived and wait for poll().
    [[nodiscard]] virtual bool has_messages() const = 0;
    virtual void report_failures_to(const failure_sink &sink) = 0;
    [[nodiscard]] virtual std::string describe_path(world_rank peer) const = 0;
    [[nodiscard]] virtual std::string describe_outstanding() const = 0;
    virtual status close() = 0;
    virtual void freeze() {}
};

} // namespace diomp::conduit
