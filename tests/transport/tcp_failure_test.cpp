// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection of a peer that has failed meanwhile.
#include "base/secure/complete_handshake.h"
#include "base/secure/sockets.h"
#include "support/lone_launcher.h"
#include "transport/arena.h"
#include "transport/common/message_queue.h"
#include "transport/create.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/connector.h"
#include "transport/tcp/iface.h"
#include "transport/tcp/wire.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace {

namespace tcp = diomp::transport::tcp;
namespace secure = diomp::secure;
using diomp::unique_fd;
using diomp::world_rank;

class tcp_failure : public testing::Test {
protected:
    void SetUp() override {
        // With a slot for each rank: rank 1, which is on another node, publishes nothing.
        arena_ = diomp::transport::arena::create(
                     launcher_, {.usable_bytes = 1 << 20,
                                 .control_bytes = diomp::transport::control_bytes_per_rank(),
                                 .one_slot_per_rank = true})
                     .take();
        diomp::transport::conduit_options options;
        options.num_network_peers = 1;
        iface_ = tcp::iface::create(launcher_, *arena_, options, arrived_,
                                    [](tcp::peer & /*lost*/, const std::string & /*why*/) {})
                     .take();
    }

    /// Rank 1 connects and proves that it is. What it receives then, until a byte has come or the
    /// connection is closed.
    std::size_t received_by_rank_1() {
        auto const blob =
            tcp::decode_address_blob(launcher_.get(world_rank(0), tcp::address_key).take());
        auto const key =
            secure::secret::decode(launcher_.get(world_rank(0), "tcp.secret").value()).take();
        socket_ = secure::testing::connect_to(blob.port);
        std::atomic<bool> is_over{false};
        ssize_t got = -1;
        std::thread rank_1([&] {
            secure::handshake_options const own{.why = secure::purpose::transfers,
                                                .self = {secure::role::rank, 1},
                                                .version = tcp::protocol_version,
                                                .wanted = secure::protection::plain};
            auto const proven = secure::complete_handshake(
                socket_.get(), secure::handshake::initiate(key, own, {secure::role::rank, 0}), 20);
            EXPECT_TRUE(proven.ok());
            char byte = 0;
            got = ::recv(socket_.get(), &byte, 1, 0);
            is_over.store(true);
        });
        while (!is_over.load()) {
            iface_->advance();
        }
        rank_1.join();
        return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    }

    /// Rank 1 exists only as the test.
    diomp::test::lone_launcher launcher_{0, 2, "tcp-failure-" + std::to_string(::getpid())};
    diomp::transport::arrivals arrived_;
    std::unique_ptr<diomp::transport::arena> arena_;
    std::unique_ptr<tcp::iface> iface_;
    unique_fd socket_; ///< rank 1's
};

TEST_F(tcp_failure, a_peer_connects) {
    EXPECT_EQ(received_by_rank_1(), 1) << "the acknowledgement";
    auto const *const adopted = iface_->peer_of(world_rank(1)).active_connection();
    ASSERT_NE(adopted, nullptr);
    EXPECT_EQ(adopted->current_state(), tcp::connection::state::connected);
}

TEST_F(tcp_failure, a_connection_that_comes_after_the_failure_is_refused) {
    tcp::peer &lost = iface_->peer_of(world_rank(1));
    EXPECT_NE(lost.fail("it is gone"), "");
    iface_->disconnect(lost, "it is gone");
    EXPECT_EQ(received_by_rank_1(), 0);
    EXPECT_EQ(lost.active_connection(), nullptr);
    EXPECT_EQ(iface_->find_or_connect(lost), nullptr);
}

TEST_F(tcp_failure, the_connection_of_a_peer_that_fails_is_closed) {
    EXPECT_EQ(received_by_rank_1(), 1);
    tcp::peer &lost = iface_->peer_of(world_rank(1));
    EXPECT_NE(lost.fail("it is gone"), "");
    iface_->disconnect(lost, "it is gone");
    EXPECT_NE(lost.active_connection()->current_state(), tcp::connection::state::connected);
}

} // namespace
