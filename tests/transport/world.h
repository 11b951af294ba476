// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One rank's view of a job with a conduit and nothing above it, for the contract tests. The
// settings DIOMP_CONDUIT, DIOMP_NODE_SIZE, DIOMP_LOG and DIOMP_TIMEOUT mean what they mean for the
// runtime.
#pragma once

#include "launch/launch.h"
#include "messaging/internal/core_monitor.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/create.h"
#include "transport/device_ranges.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace diomp_test {

using diomp::world_rank;
using diomp::transport::completion;
using diomp::transport::handler_id;
using diomp::transport::message;

class world {
public:
    /// Joins the job. Ends the process with a message if that fails.
    world();
    /// Collective.
    void finish();

    [[nodiscard]] int rank() const { return launcher_->info().rank.value(); }
    [[nodiscard]] int size() const { return launcher_->info().size; }
    [[nodiscard]] diomp::transport::conduit &conduit() { return *conduit_; }
    [[nodiscard]] device_ranges &devices() { return *devices_; }
    [[nodiscard]] bool is_direct(int peer) const {
        return conduit_->direct_base(world_rank{peer}) != nullptr;
    }
    /// Where the tests' memory of a rank begins, in every process.
    [[nodiscard]] std::byte *memory_of(int owner) const;
    static constexpr std::size_t memory_bytes = std::size_t{320} << 20;

    /// What poll() does with messages. Set between meetings.
    void on_message(std::function<void(const message &)> handler) { handler_ = std::move(handler); }
    /// A message that comes from now on ends the job: a test that is over has left it behind.
    void expect_no_message();
    int poll();
    /// Polls until the condition holds. A wait that is too long is a failure and ends the job.
    void wait_until(const std::function<bool()> &condition, const char *what);
    void wait(const completion &done);
    /// Sends, polling while the queue is full.
    void send(int peer, handler_id handler, std::span<const std::byte> payload);
    /// Everybody is here. Serves nothing meanwhile.
    void meet();

    /// put, or a copy if the peer is direct; the source may be reused on return.
    void put(int peer, std::byte *remote, const void *source, std::size_t nbytes);
    void get(int peer, const std::byte *remote, void *destination, std::size_t nbytes);
    /// A get that is counted by `done`, or a copy if the peer is direct.
    void start_get(int peer, const std::byte *remote, void *destination, std::size_t nbytes,
                   completion &done);
    void flush(int peer);
    void flush_all();
    /// Counted by `done`; nothing to do if the peer is direct.
    diomp::status start_flush(int peer, completion &done);
    diomp::status start_flush_all(completion &done);
    /// false for direct peers.
    diomp::result<bool> send_long(int peer, handler_id handler, std::span<const std::byte> payload,
                                  std::span<const std::byte> data, completion &source_free);
    void set_am_long_handler(const diomp::transport::am_long_handler &handle,
                             const diomp::transport::recv_buffer_callback &find_buffer);

    [[noreturn]] void abort(const std::string &why);

private:
    std::unique_ptr<diomp::launch::launcher> launcher_;
    std::unique_ptr<diomp::transport::arena> arena_;
    std::unique_ptr<device_ranges> devices_;
    std::unique_ptr<diomp::transport::conduit> conduit_;
    std::function<void(const message &)> handler_;
    diomp::messaging::core_monitor core_{0, true};
};

/// The one world of this process.
world &ours();

} // namespace diomp_test
