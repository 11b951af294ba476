// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The library's interfaces of a node and of a network, on simulated time. poll() of the network
// gives the core to the simulation until something has arrived for the rank, so every wait of the
// library lets simulated time pass.
#pragma once

#include "port.h"
#include "transport/network.h"
#include "transport/node_transport.h"

#include <memory>
#include <string>
#include <vector>

namespace diomp::simulation {

/// What the ranks of a simulated job share.
struct fabric {
    machine hardware;
    bool moves_data = false; ///< long messages carry their data; else only its size
    std::vector<std::unique_ptr<port>> ports; ///< [world rank]

    [[nodiscard]] port &of(world_rank rank) { return *ports[rank.index()]; }
};

/// Ranks of the own node. They wake each other after stores; messages take as long as a store.
class node final : public transport::node_transport {
public:
    node(fabric &shared, world_rank self);

    bool try_send(world_rank peer, transport::handler_id handler,
                  std::span<const std::byte> payload) override;
    /// The network's poll delivers what comes from the node too.
    int poll(transport::message_handler /*handle*/) override { return 0; }
    [[nodiscard]] bool has_messages() const override { return own_.has_packets(); }

    [[nodiscard]] std::uint32_t activity() const override { return 0; }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override;
    void wake() override { own_.notify(); }
    void begin_polling() override {}
    [[nodiscard]] bool end_polling() override { return false; }
    bool idle_wait(transport::wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                   function_ref<bool()> ready) override;
    void wake_idle_waiters() override {}
    void wake_for_store(world_rank peer) override;

    status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                         std::size_t nbytes) override;
    status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes) override;

private:
    fabric &shared_;
    world_rank self_;
    port &own_;
};

/// Ranks of other nodes. Messages, long messages up to the size of tcp's, and puts; no gets, which
/// no collective needs.
class network final : public transport::network {
public:
    network(fabric &shared, world_rank self);

    status put(world_rank peer, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, transport::completion &source_free) override;
    status get(world_rank peer, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               transport::completion &done) override;
    /// A put is complete when its source is free.
    status flush(world_rank /*peer*/, transport::completion & /*done*/) override { return {}; }
    status flush_all(transport::completion & /*done*/) override { return {}; }

    bool try_send(world_rank peer, transport::handler_id handler,
                  std::span<const std::byte> payload) override;
    int poll(transport::message_handler handle) override;
    [[nodiscard]] bool has_messages() const override { return own_.has_packets(); }

    result<bool> send_long(world_rank peer, transport::handler_id handler,
                           std::span<const std::byte> payload, std::span<const std::byte> data,
                           transport::completion &source_free) override;
    result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                  std::span<const std::byte> source, transport::handler_id handler,
                                  std::span<const std::byte> payload,
                                  transport::completion &source_free) override;
    void set_am_long_handler(const transport::am_long_handler &handle,
                             const transport::recv_buffer_callback &find_buffer) override;
    void revoke_recv_buffer(const std::byte * /*buffer*/) override {}

    void begin_polling() override {}
    void end_polling() override {}
    bool idle_wait(std::chrono::microseconds limit, function_ref<bool()> is_over) override;
    void wake_idle_waiters() override {}

    void report_failures_to(const transport::failure_handler & /*handle*/) override {}
    [[nodiscard]] std::string describe_path(world_rank /*peer*/) const override { return "sim"; }
    [[nodiscard]] std::string describe_outstanding() const override { return {}; }
    status close() override { return {}; }
    void freeze() override {}

private:
    /// Counts and charges a message, and starts it.
    void start(world_rank peer, std::size_t nbytes, std::function<void()> arrived);
    void handle_long(const packet &arrived);

    fabric &shared_;
    world_rank self_;
    port &own_;
    transport::am_long_handler handle_long_;
    transport::recv_buffer_callback find_buffer_;
};

} // namespace diomp::simulation
